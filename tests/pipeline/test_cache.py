"""A directory for our own scripts: ours alone, made in one step, found wherever something can be written."""

from __future__ import annotations

import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tieline.pipeline import cache

FILES = {"bin/tool": "#!/bin/sh\necho tool\n", "note": "text"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def modes(place: Path) -> dict[str, int]:
    return {str(path.relative_to(place)): stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*")}


def test_files_are_placed_once_and_closed_to_others(tmp_path: Path) -> None:
    place = cache.place("tool", FILES, runs="bin/tool")
    assert place.parent == tmp_path / "home" / ".cache" / "tieline"
    assert modes(place.parent) == {
        place.name: 0o700, f"{place.name}/bin": 0o700, f"{place.name}/bin/tool": 0o700, f"{place.name}/note": 0o600
    }  # fmt: skip
    written = (place / "note").stat().st_mtime_ns
    assert cache.place("tool", FILES, runs="bin/tool") == place
    assert (place / "note").stat().st_mtime_ns == written
    assert cache.place("tool", {**FILES, "note": "other"}, runs="bin/tool") != place


def test_what_was_changed_is_made_again() -> None:
    place = cache.place("tool", FILES, runs="bin/tool")
    (place / "bin" / "tool").write_text("#!/bin/sh\nrm -rf /\n")
    assert cache.place("tool", FILES, runs="bin/tool") == place
    assert (place / "bin" / "tool").read_text() == FILES["bin/tool"]
    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_many_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: cache.place("tool", FILES, runs="bin/tool"), range(64)))
    assert len(found) == 1
    (place,) = found
    assert (place / "bin" / "tool").read_text() == FILES["bin/tool"]
    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_the_users_own_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "stated"))
    assert cache.directory() == tmp_path / "stated" / "tieline"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.directory() == tmp_path / "home" / ".cache" / "tieline"


@pytest.mark.parametrize("home", ["/proc/nothing", "/nonexistent/home", ""])
def test_without_a_home_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """A file below /proc cannot be made by anybody, root included."""
    monkeypatch.setenv("HOME", home)
    if not home:
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    place = cache.place("tool", FILES, runs="bin/tool")
    assert place.parent == tmp_path / "temporary" / f"tieline-{os.getuid()}"
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_somebody_elses_directory_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open to others, or a link: whoever made it could put a script of their own there."""
    monkeypatch.setenv("HOME", "/nonexistent/home")
    ours = tmp_path / "temporary" / f"tieline-{os.getuid()}"
    ours.mkdir()
    ours.chmod(0o777)
    place = cache.place("tool", FILES, runs="bin/tool")
    assert place.parent != ours and place.parent.parent == tmp_path / "temporary"
    ours.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    ours.symlink_to(tmp_path / "theirs")
    assert cache.directory() != ours


def test_nowhere_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent/home")
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    with pytest.raises(OSError, match="can be written"):
        cache.place("tool", FILES, runs="bin/tool")


def test_a_file_system_that_runs_no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access

    def access(path: Path, mode: int) -> bool:
        return not (str(path).endswith("bin/tool") and str(tmp_path / "home") in str(path)) and real(path, mode)

    monkeypatch.setattr(os, "access", access)
    assert cache.place("tool", FILES, runs="bin/tool").parent == tmp_path / "temporary" / f"tieline-{os.getuid()}"
