"""Classes that one run leaves for the next: by Java and jars, made by one at a time, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tieline.pipeline import cache, class_archive
from tieline.pipeline.class_archive import SWITCH, Sharing, sharing
from tieline.pipeline.java import Java, NoJava, find_java

pytestmark = pytest.mark.timeout(300)

#: Like a JVM with the option: writes what it was told to when its input ends, and ends with a code.
_WRITES = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write('classes'); sys.exit(int(sys.argv[2]))"


@pytest.fixture(name="java")
def _java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java with an archive of its own, a Spark of one jar, and an empty cache."""
    home = tmp_path / "jdk"
    (home / "lib" / "server").mkdir(parents=True)
    for name in ("modules", "server/libjvm.so", "server/classes.jsa"):
        (home / "lib" / name).write_text(name)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_text("1")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SPARK_CONF_DIR", SWITCH, "JDK_JAVA_OPTIONS", *class_archive._MORE_PLACES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(class_archive, "_ROOM", 0)
    return Java(home=home, launcher=home, version=17, found_in="PATH")


def run(shared: Sharing, code: int = 0) -> None:
    """The life of a JVM that makes the archive."""
    assert shared.making is not None
    words = [sys.executable, "-c", _WRITES, str(shared.making.part), str(code)]
    shared.making.keep(subprocess.Popen(words, stdin=subprocess.PIPE))


def made(java: Java) -> Path:
    """The archive, made by a first run."""
    first = sharing(java, {}, makes=True)
    run(first)
    assert first.making is not None
    return first.making.archive


def files(tmp_path: Path) -> list[str]:
    return sorted(each.suffix for each in (tmp_path / "cache" / "tieline").iterdir() if not each.is_dir())


def test_the_first_run_makes_it_and_the_next_uses_it(java: Java, tmp_path: Path) -> None:
    first = sharing(java, {}, makes=True)
    assert first.making is not None
    assert f"-XX:ArchiveClassesAtExit={first.making.part}" in first.options
    assert not first.making.archive.exists()
    run(first)
    assert first.making.archive.read_text() == "classes"
    assert files(tmp_path) == [".jsa", ".lock"]
    for makes in (True, False):
        later = sharing(java, {}, makes=makes)
        assert later.making is None and f"-XX:SharedArchiveFile={first.making.archive}" in later.options


def test_what_runs_until_it_is_stopped_makes_none(java: Java) -> None:
    assert sharing(java, {}, makes=False) == Sharing()


def test_one_run_at_a_time_makes_it(java: Java) -> None:
    first = sharing(java, {}, makes=True)
    code = (
        "import sys; from pathlib import Path; from tieline.pipeline import class_archive as it\n"
        "it._ROOM = 0\n"
        "from tieline.pipeline.java import Java\n"
        "home = Path(sys.argv[1])\n"
        "java = Java(home=home, launcher=home, version=17, found_in='PATH')\n"
        "print(it.sharing(java, {}, makes=True) == it.Sharing())\n"
    )
    words = [sys.executable, "-c", code, str(java.home)]
    assert subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout == "True\n"
    run(first)


def test_a_run_that_ended_badly_leaves_nothing_in_use(java: Java, tmp_path: Path) -> None:
    failed = sharing(java, {}, makes=True)
    run(failed, code=1)
    assert ".jsa" not in files(tmp_path)
    # what was left of it, and of one that was killed, goes with the next
    assert failed.making is not None
    failed.making.archive.with_suffix(".1.part").write_text("half")
    assert made(java).is_file()
    assert files(tmp_path) == [".jsa", ".lock"]


def test_a_jvm_that_wrote_nothing_is_no_trouble(java: Java, tmp_path: Path) -> None:
    shared = sharing(java, {}, makes=True)
    assert shared.making is not None
    shared.making.keep(subprocess.Popen([sys.executable, "-c", "input"], stdin=subprocess.PIPE))
    assert files(tmp_path) == [".lock"]
    assert made(java).is_file()


def test_another_java_or_another_jar_has_another_archive(java: Java, tmp_path: Path) -> None:
    first = made(java)
    (tmp_path / "spark" / "jars" / "core.jar").write_text("12")
    second = made(java)
    (java.home / "lib" / "server" / "libjvm.so").write_text("newer")
    third = made(java)
    (tmp_path / "spark" / "jars" / "more.jar").write_text("1")
    assert len({first, second, third, made(java)}) == 4


def test_archives_that_nothing_uses_go(java: Java, tmp_path: Path) -> None:
    first = made(java)
    old = time.time() - class_archive._UNUSED_S - 60
    os.utime(first, (old, old))
    sharing(java, {}, makes=False)  # a use
    (tmp_path / "spark" / "jars" / "core.jar").write_text("12")
    second = made(java)
    assert first.exists()
    os.utime(first, (old, old))
    (tmp_path / "spark" / "jars" / "core.jar").write_text("123")
    made(java)
    assert not first.exists() and not first.with_suffix(".lock").exists() and second.exists()


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({SWITCH: "off"}, {}),
        ({"HADOOP_CONF_DIR": "/etc/hadoop"}, {}),
        ({}, {"spark.driver.extraClassPath": "/more.jar"}),
        ({}, {"spark.driver.extraJavaOptions": "-Xshare:off"}),
        ({}, {"spark.driver.extraJavaOptions": "-XX:SharedArchiveFile=/own.jsa"}),
    ],
)
def test_neither_made_nor_used(
    java: Java, monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], settings: Mapping[str, str]
) -> None:
    made(java)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert sharing(java, settings, makes=True) == Sharing()


def test_not_made_where_java_cannot(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.ui.enabled true\n")
    with monkeypatch.context() as there:
        there.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
        assert sharing(java, {}, makes=True) == Sharing()
    with monkeypatch.context() as there:
        there.setattr(class_archive, "_ROOM", 1 << 62)
        assert sharing(java, {}, makes=True) == Sharing()
    (java.home / "lib" / "server" / "classes.jsa").unlink()
    assert sharing(java, {}, makes=True) == Sharing()


def test_not_in_the_way_where_nothing_is_found_or_can_be_written(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as there:
        there.setenv("SPARK_HOME", str(tmp_path / "nothing"))
        assert sharing(java, {}, makes=True) == Sharing()
    with monkeypatch.context() as there:
        there.setenv("XDG_CACHE_HOME", str(tmp_path / "with a space"))
        assert sharing(java, {}, makes=True) == Sharing()

    def no_directory() -> Path:
        raise PermissionError("none can be written")

    monkeypatch.setattr(cache, "directory", no_directory)
    assert sharing(java, {}, makes=True) == Sharing()


def test_a_newer_java_is_told_to_be_quiet_in_its_own_words(java: Java) -> None:
    newer = Java(home=java.home, launcher=java.home, version=25, found_in="PATH")
    made(java)
    made(newer)
    assert "-Xlog:aot*=off" in sharing(newer, {}, makes=True).options
    assert "aot" not in sharing(java, {}, makes=True).options  # which would not start then


_PROGRAM = """
from pathlib import Path
from tieline.pipeline.session import BRIEF, make_session
spark = make_session("x", master="local[1]", settings={**BRIEF, "spark.driver.memory": "512m"}, makes_archive=True)
print(spark.range(3).count())
process = spark.sparkContext._gateway.proc.pid
maps = Path(f"/proc/{process}/maps")
print("mapped" if maps.exists() and "spark-classes-" in maps.read_text() else "not mapped")
spark.stop()
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what is mapped is looked up in /proc")
def test_a_real_java_maps_what_a_run_before_has_left(tmp_path: Path) -> None:
    try:
        java = find_java()
    except NoJava:
        pytest.skip("there is no Java")
    if not (java.home / "lib" / "server" / "classes.jsa").is_file():
        pytest.skip("this Java has no archive of its own, on which ours would stand")
    names = (SWITCH, "JDK_JAVA_OPTIONS", "SPARK_CONF_DIR", *class_archive._MORE_PLACES)
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    told = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=140
        )
        for _ in range(2)
    ]
    assert [each.stdout for each in told] == ["3\nnot mapped\n", "3\nmapped\n"]
    assert "warning" not in told[0].stderr.lower() + told[1].stderr.lower()
    assert len(list(tmp_path.glob("tieline/spark-classes-*.jsa"))) == 1
    assert not list(tmp_path.glob("tieline/*.part"))
