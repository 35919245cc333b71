"""The pipeline behind a Spark Connect server: the same commands, and the same tables as without one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.kits.patience import until
from tests.net.logserver.writing import record as logged
from tests.pipeline.decode.records import prop
from tests.pipeline.lake import kit
from tests.pipeline.source.conftest import Serve
from tieline.pipeline.java import find_java
from tieline.pipeline.jobs.ingest import Filling
from tieline.pipeline.jobs.ingest_batch import Logs
from tieline.pipeline.lake import Lake

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT: Final = Path(__file__).resolve().parents[2]
TOML: Final = """
[event.reading]
topic = "grid/+/pcc"
attributes = [{name = "number", kind = "integer"}, {name = "voltage", bounds = [0.0, 500.0]}]
"""
#: What a program of a user's own does with the tables.
PROGRAM: Final = """
import json, sys
from tieline.pipeline.lake import Lake
from tieline.pipeline.session import make_session

spark = make_session("test", remote=sys.argv[1])
rows = Lake.open(sys.argv[2]).read(spark, "reading").groupBy("_topic").avg("voltage").collect()
print(json.dumps(sorted(map(list, rows))))
spark.stop()
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server that has never heard of us."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "JAVA_HOME": str(find_java().launcher), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    said = tmp_path_factory.mktemp("connect") / "server.log"
    with said.open("wb") as output:
        # spark-submit puts Java in its own place, so that this is the process to end
        process = subprocess.Popen(
            [
                Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]", *words,
                "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            ],
            env=environment, cwd=said.parent, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        until(lambda: "Spark Connect server started" in said.read_text(), "the server's start", within_s=200)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Run:
    """Runs a Python program to its end, from a directory that is not the server's."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths}
        return subprocess.run(
            [sys.executable, *map(str, words)], env=environment, cwd=tmp_path, capture_output=True, text=True,
            check=False, timeout=200,
        )  # fmt: skip

    return run


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    """A table as a reader of plain files finds it."""
    found = ds.dataset([str(path) for path in sorted(lake.glob(f"{table}/**/*.parquet"))]).to_table().to_pylist()
    return sorted(found, key=lambda row: row.get("_offset", row.get("offset", 0)))


def test_the_same_tables_and_answers(server: str, run: Run, spark: SparkSession, serve: Serve, tmp_path: Path) -> None:
    served = serve(records=20)
    repeats = [logged(number, publisher="meter", properties=prop("seq", "1")) for number in (20, 21)]
    served.writer.append([*repeats, logged(22, payload=b"?")])
    (tmp_path / "grid.toml").write_text(TOML)
    ingest = ("-m", "tieline", "pipeline", "ingest", "--once", "--lake", "lake", "--url", served.url)

    first = run(*ingest, "--config", "grid.toml", "--max-rows", 15, "--master", server)
    assert first.returncode == 0, first.stderr
    assert first.stderr.endswith("23 records brought into lake\n")
    again = run(*ingest, "--master", server)
    assert (again.returncode, again.stderr) == (0, "0 records brought into lake\n")
    assert kit.debris(tmp_path / "lake") == []

    here = Lake.create(tmp_path / "here", kit.settings(TOML))
    running = Filling(spark, here, Logs([served.url], max_rows=15))
    running.start(once=True)
    assert running.wait(200)
    for table in ("events/reading", "quarantine", "duplicates"):
        assert rows(tmp_path / "lake", table) == rows(tmp_path / "here", table)

    wish = "grid/+/pcc?number > 17"
    matched = run(
        "-m", "tieline", "pipeline", "match", "--lake", "lake", "-s", wish, "--format", "csv", "--master", server
    )
    assert matched.returncode == 0, matched.stderr
    assert [line.split(",")[:3] for line in matched.stdout.splitlines()[1:]] == [
        [wish, "edge", "18"], [wish, "edge", "19"], [wish, "edge", "20"],
    ]  # fmt: skip

    (tmp_path / "program.py").write_text(PROGRAM)
    read = run("program.py", server, "lake")
    assert read.returncode == 0, read.stderr
    means = here.read(spark, "reading").groupBy("_topic").avg("voltage").collect()
    assert json.loads(read.stdout) == sorted(map(list, means))


def test_delta_tables_that_go_on_here(server: str, run: Run, spark: SparkSession, serve: Serve, tmp_path: Path) -> None:
    """Begun behind the server, continued in this process, and read by both."""
    served = serve(records=20)
    (tmp_path / "grid.toml").write_text(TOML)
    first = run(
        "-m", "tieline", "pipeline", "ingest", "--once", "--delta", "--lake", "lake", "--url", served.url,
        "--config", "grid.toml", "--max-rows", 8, "--master", server,
    )  # fmt: skip
    assert first.returncode == 0, first.stderr
    served.writer.append([logged(20, payload=b'{"number": 20, "voltage": 100.0}')])
    lake = Lake.open(tmp_path / "lake")
    assert (lake.document.format, lake.state().batch) == ("delta", 2)
    running = Filling(spark, lake, Logs([served.url]))
    running.start(once=True)
    assert running.wait(200)
    assert sorted(pq.read_table(lake.files("events/reading"))["_offset"].to_pylist()) == list(range(21))
    (tmp_path / "program.py").write_text(PROGRAM)
    read = run("program.py", server, "lake")
    assert read.returncode == 0, read.stderr
    means = lake.read(spark, "reading").groupBy("_topic").avg("voltage").collect()
    assert json.loads(read.stdout) == sorted(map(list, means))


def test_a_mistake_is_one_sentence(server: str, run: Run, serve: Serve) -> None:
    served = serve(records=1)
    told = run(
        "-m", "tieline", "pipeline", "ingest", "--once", "--lake", "lake", "--url", served.url, "--where", "((",
        "--master", server,
    )  # fmt: skip
    assert told.returncode == 1
    assert told.stderr == f"tieline: {served.url}: column 3: expected an attribute, a value, 'not' or '('\n"
