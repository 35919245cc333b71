"""What spark-defaults.conf and spark-submit decide holds unless a command says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tieline.bench.pipeline.processes import our_path
from tieline.pipeline.decided import decided

DEFAULTS = """# of the cluster
spark.master              local[1]
spark.executor.memory=4g
spark.ui.port: 5050
spark.sql.shuffle.partitions 7
  spark.driver.extraJavaOptions -XX:+UseSerialGC -Dx=y
not.of.spark 3
spark.empty
"""

SHOW = """
import sys
from tieline.pipeline.session import make_session
spark = make_session("shown", settings=dict(each.split("=", 1) for each in sys.argv[1:]))
print(spark.sparkContext.master, spark.sparkContext.appName, *(
    spark.conf.get(name, "-") for name in ("spark.sql.shuffle.partitions", "spark.app.id", "spark.sql.session.timeZone")
))
print(spark.range(3).mapInArrow(lambda batches: batches, "id bigint").count())
"""


def test_a_file_of_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert decided() == {
        "spark.master": "local[1]",
        "spark.executor.memory": "4g",
        "spark.ui.port": "5050",
        "spark.sql.shuffle.partitions": "7",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Dx=y",
    }
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "nothing"))
    assert decided() == {}


def shown(command: list[str], folder: Path) -> list[str]:
    # spark-submit runs a program with whatever python3 is on the path, unless it is told
    environment = {**os.environ, **our_path(), "PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(folder)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [word for line in done.stdout.splitlines()[-2:] for word in line.split()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_they_hold_in_a_session_and_ours_only_where_they_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    program = tmp_path / "show.py"
    program.write_text(SHOW)
    master, name, partitions, _app, zone, count = shown([sys.executable, str(program)], tmp_path)
    assert (master, name, partitions, zone, count) == ("local[1]", "shown", "7", "UTC", "3")
    words = ["spark.sql.shuffle.partitions=3", "spark.master=local[2]"]
    master, _name, partitions, *_ = shown([sys.executable, str(program), *words], tmp_path)
    assert (master, partitions) == ("local[2]", "3")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_spark_submit_chooses_the_master(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    program = tmp_path / "show.py"
    program.write_text(SHOW)
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    submit = [str(Path(spark.origin).parent / "bin" / "spark-submit"), "--master", "local[3]"]
    master, _name, partitions, *_ = shown([*submit, str(program)], tmp_path)
    assert (master, partitions) == ("local[3]", "7")
