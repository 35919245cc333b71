"""Every example runs, and prints what it says at its top."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.kits.interpreted import skip_if_compiled
from tests.kits.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Those that start Spark run where the cluster does.
ON_SPARK = {"read_the_lake.py", "spark_query.py"}
TESTS = {"test_alarm.py"}
#: What has to be done before an example can run: commands, in the directory where it runs.
_A_DAY = (
    "sim microgrid --history week --start 2026-03-02 --days 1 --step 60",
    "sim microgrid --config broker.toml",
    "pipeline ingest --history week --config broker.toml --lake lake --once",
)
#: For how many programs a test waits at most: each may start a Java runtime on a busy machine.
_PROGRAMS = 4


def _docstring(program: Path) -> str:
    return ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""


def _promised(program: Path) -> str:
    """The indented block at the end of the docstring, after a line that ends with two colons."""
    found = re.search(r"^It prints.*::\n\n((?:    .*\n?|\n)+)\Z", _docstring(program), re.MULTILINE)
    assert found, f"{program.name} does not say what it prints"
    return textwrap.dedent(found[1]).strip()


def _run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=_PROGRAMS * PATIENCE_S, check=False
    )


def _compare(program: Path, directory: Path) -> None:
    done = _run(directory, "-W", "error", str(program))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == _promised(program)


PROGRAMS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize(
    "program", [path for path in PROGRAMS if path.name not in ON_SPARK | TESTS], ids=lambda path: path.stem
)
def test_it_prints_what_it_says(program: Path, tmp_path: Path) -> None:
    if program.name == "custom_policy.py":
        skip_if_compiled("compiled classes have no interpreted children")
    _compare(program, tmp_path)


@pytest.mark.slow
def test_spark_prints_what_it_says(tmp_path: Path) -> None:
    _compare(EXAMPLES / "spark_query.py", tmp_path)


@pytest.mark.slow
def test_the_lake_holds_what_it_says(tmp_path: Path) -> None:
    program = EXAMPLES / "read_the_lake.py"
    for command in _A_DAY:
        assert f"tieline {command}" in _docstring(program)
        done = _run(tmp_path, "-m", "tieline", *command.split())
        assert done.returncode == 0, done.stderr
    _compare(program, tmp_path)


@pytest.mark.parametrize("name", sorted(TESTS))
def test_a_test_passes(name: str, tmp_path: Path) -> None:
    done = _run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / name))
    assert done.returncode == 0, done.stdout


def test_the_page_lists_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in PROGRAMS} == set(re.findall(r"^\| \[(\w+\.py)\]\(\1\)", page, re.MULTILINE))
