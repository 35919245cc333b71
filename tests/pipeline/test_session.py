"""The session: what it sets, what it leaves alone, and what it says when Spark does not start."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.test_java import fake
from tieline.cli.pipeline.flags import Login, TimeSpan
from tieline.cli.pipeline.sources import Messages
from tieline.cli.trouble import Trouble
from tieline.pipeline import session
from tieline.pipeline.session import BRIEF, NoSpark, cores, heap_mebibytes, make_session, memory_bytes

pytestmark = pytest.mark.timeout(300)


def test_what_is_set(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.master == "local[2]"


def test_workers_run_this_interpreter_and_find_our_modules(spark: SparkSession) -> None:
    def look(_number: int) -> tuple[str, str]:
        import tieline

        return sys.executable, str(tieline.__file__)

    ((program, module),) = spark.sparkContext.parallelize([1], 1).map(look).collect()
    assert Path(program).samefile(sys.executable)
    assert Path(module).resolve().parent.parent == session._root()


def test_the_environment_is_as_before(spark: SparkSession) -> None:
    """Variables are for the JVM's start alone: a JAVA_HOME left behind would be found as the user's own."""
    with session._environment({"TIELINE_A": "1", "PATH": "/x"}):
        assert os.environ["TIELINE_A"] == "1" and os.environ["PATH"] == "/x"
    assert "TIELINE_A" not in os.environ and os.environ["PATH"] != "/x"


def test_what_short_sessions_set_comes_behind_what_was_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    adaptive = "spark.sql.adaptive.enabled"
    monkeypatch.setattr(session, "decided", lambda: {adaptive: "true", "spark.ui.port": "1"})
    assert dict(session.brief()) == {name: value for name, value in BRIEF.items() if name != adaptive}
    monkeypatch.setattr(session, "decided", dict)
    assert dict(session.brief()) == dict(BRIEF)
    monkeypatch.setattr(session, "is_submitted", lambda: True)
    assert session.brief() == {}


def test_a_master_or_a_server() -> None:
    with pytest.raises(NoSpark, match="not both"):
        make_session("x", master="local[1]", remote="sc://a")


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoSpark, match=f"no Spark Connect server answers at 127.0.0.1:{port}: connection refused"):
        make_session("x", remote=f"sc://127.0.0.1:{port}")
    for wrong in ("sc://", "localhost:15002", "sc://host:port"):
        with pytest.raises(NoSpark, match="one is written sc://HOST or sc://HOST:PORT"):
            make_session("x", remote=wrong)


def test_without_the_libraries_of_connect(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nsys.modules['grpc'] = None\nfrom tieline.pipeline.session import make_session, NoSpark\n"
        "try:\n    make_session('x', remote='sc://127.0.0.1:1')\nexcept NoSpark as problem:\n    print(problem)\n"
    )
    told = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=120).stdout
    assert told == "Spark Connect needs libraries that are not here: pip install 'tieline[connect]'\n"


def test_memory_by_the_machine(tmp_path: Path) -> None:
    assert heap_mebibytes(2 << 30) == 1_024
    assert heap_mebibytes(16 << 30) == 4_096
    assert heap_mebibytes(1 << 40) == 8_192
    assert cores() >= 1
    (tmp_path / "max").write_text("max\n")
    whole = memory_bytes(tmp_path / "max")
    assert whole == memory_bytes(tmp_path / "nothing") > 1 << 20
    (tmp_path / "limit").write_text("1048576\n")
    assert memory_bytes(tmp_path / "limit") == 1 << 20


@pytest.mark.parametrize(
    ("master", "partitions"), [("local[3]", "3"), ("local[1]", "2"), ("local[4,2]", "4"), ("local", None)]
)
def test_partitions_by_the_master(master: str, partitions: str | None) -> None:
    expected = partitions or str(max(2, cores()))
    assert session._on_this_machine(master)["spark.sql.shuffle.partitions"] == expected


def test_our_modules_in_a_zip_can_be_imported(tmp_path: Path) -> None:
    packed = session._packed()
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
    assert {"tieline/__init__.py", "pyspark_tieline/__init__.py", "pyspark_mqtt/__init__.py"} <= names
    assert not any("__pycache__" in name for name in names)
    code = "import tieline.pipeline.source.ranges as ranges; print(ranges.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(packed)}, cwd=tmp_path, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    assert told.startswith(str(packed))


def test_a_java_that_does_not_start_spark(tmp_path: Path) -> None:
    """It states its version and ends at once: Spark alone would say nothing about Java."""
    home = fake(tmp_path, "17")
    code = (
        "from tieline.pipeline.session import make_session, NoJava\n"
        "try:\n    make_session('x')\nexcept NoJava as problem:\n    print(problem)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "JAVA_HOME": str(home)}, capture_output=True, text=True,
        check=True, timeout=120,
    ).stdout  # fmt: skip
    assert told == (
        f"Java ({home}) ended before Spark had started; what it said itself is above. "
        "`tieline doctor` shows which Java was taken and why.\n"
    )


def test_a_spark_without_sources_in_python_gets_our_modules_alone() -> None:
    class Old:
        """What Spark 3.5 has of it."""

        version = "3.5.9"

        def __init__(self) -> None:
            self.sent: list[str] = []

        @property
        def sparkContext(self) -> Old:  # noqa: N802 - Spark's name
            return self

        def addPyFile(self, path: str) -> None:  # noqa: N802 - Spark's name
            self.sent.append(path)

    old = Old()
    session._send_modules(old)  # type: ignore[arg-type]
    (packed,) = map(Path, old.sent)
    assert "tieline/__init__.py" in zipfile.ZipFile(packed).namelist()
    shutil.rmtree(packed.parent)
    with pytest.raises(Trouble, match=r"Spark 3\.5\.9 cannot read log servers by itself, as Spark 4\.0 can"):
        Messages(span=TimeSpan(), login=Login()).read_log(old, ["topic"])  # type: ignore[arg-type]
