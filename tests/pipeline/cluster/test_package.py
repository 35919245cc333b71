"""A cluster whose machines have Spark and a bare Python: what executors import comes as an archive."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.pipeline.cluster.test_distributed import RECORDS
from tieline.bench.pipeline.processes import cluster, driver_environment, our_path, our_program
from tieline.bench.pipeline.readings import readings
from tieline.bench.pipeline.sources import publish, running
from tieline.pipeline.lake import Lake
from tieline.pipeline.package import pack, settings

#: The interpreter that this environment was made from; its own libraries are not those of the environment.
BARE = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")


def lacks_libraries(program: Path) -> bool:
    return program.exists() and (
        subprocess.run([program, "-c", "import pyarrow"], capture_output=True, check=False).returncode != 0
    )


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.skipif(not lacks_libraries(BARE), reason="needs a Python without pyarrow")
def test_executors_of_another_environment_work_with_the_archive(tmp_path: Path) -> None:
    archive = tmp_path / "executors.tar.gz"
    packed = pack(archive)
    with tarfile.open(archive) as opened:
        names = set(opened.getnames())
    assert {"tieline/__init__.py", "pyspark_tieline/__init__.py", "msgspec/__init__.py"} <= names
    assert packed.files == len(names) and not list(tmp_path.glob(".*"))
    # only what the cluster was set up with: no path into this environment
    bare = {"PYSPARK_PYTHON": str(BARE), "PYTHONPATH": ""}
    with running(tmp_path / "station") as station, cluster(tmp_path / "cluster", more=bare) as made:
        publish(station, readings(0, RECORDS))

        def ingest(place: Path, *more: str) -> subprocess.CompletedProcess[str]:
            command = our_program(
                "pipeline", "ingest", "--lake", str(place), "--config", str(station.config), "--url", station.url,
                "--once", "--quiet", "--master", made.url, "--conf", f"spark.pyspark.python={BARE}", *more,
            )  # fmt: skip
            environment = {**os.environ, **our_path(), **driver_environment()}
            return subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                check=False,
            )  # fmt: skip

        without = ingest(tmp_path / "without")
        assert without.returncode == 1
        assert without.stderr.startswith("tieline: Spark's tasks have no module '")
        with_it = ingest(
            tmp_path / "with", *(word for each in settings(archive).items() for word in ("--conf", "=".join(each)))
        )
        assert with_it.returncode == 0, with_it.stderr
    assert Lake.open(tmp_path / "with").status().tables[0].rows == RECORDS
