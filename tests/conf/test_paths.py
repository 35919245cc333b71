"""The broker and `tieline top` find the same socket, in a place that belongs to one user."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tieline.conf.paths import distrust, management_socket, prepare_directory


@pytest.fixture(name="shared_temp")
def _shared_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_data_directory_comes_first(tmp_path: Path) -> None:
    assert management_socket(str(tmp_path), "any") == tmp_path / "tieline.sock"


def test_then_the_runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert management_socket(None, "edge") == tmp_path / "tieline" / "edge.sock"


def test_then_a_private_directory(shared_temp: Path) -> None:
    socket = management_socket(None, "edge")
    assert socket == shared_temp / f"tieline-{os.getuid()}" / "edge.sock"
    prepare_directory(socket)
    prepare_directory(socket)
    assert socket.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_enter_is_refused(shared_temp: Path) -> None:
    socket = management_socket(None, "edge")
    socket.parent.mkdir()
    socket.parent.chmod(0o755)
    with pytest.raises(PermissionError, match="not a private directory"):
        prepare_directory(socket)


def test_a_link_laid_by_somebody_else_is_refused(shared_temp: Path) -> None:
    socket = management_socket(None, "edge")
    (shared_temp / "elsewhere").mkdir(mode=0o700)
    socket.parent.symlink_to(shared_temp / "elsewhere")
    with pytest.raises(PermissionError):
        prepare_directory(socket)


def test_a_path_too_long_for_a_socket_is_refused() -> None:
    with pytest.raises(OSError, match="longer than 107 bytes"):
        prepare_directory(Path("/") / ("x" * 120) / "tieline.sock")


@pytest.mark.parametrize("mode", [0o701, 0o704, 0o702, 0o755, 0o777, 0o720, 0o1777])
def test_a_data_directory_that_is_open_to_others_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    with pytest.raises(PermissionError, match=rf"open to others .* chmod 700 {data}"):
        prepare_directory(management_socket(str(data), ""))


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o500])
def test_a_data_directory_that_is_closed_to_the_world_is_used(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    assert distrust(data) is None


def test_a_directory_of_somebody_else_is_not_believed(
    tmp_path: Path, shared_temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not by whoever only asks: a stranger could answer there as the broker does."""
    data, shared = tmp_path / "data", management_socket(None, "edge").parent
    for directory in (data, shared):
        directory.mkdir(mode=0o700)
    ours = data.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: ours + 1)
    # in the name of the directory the number stays: the stranger has made one with ours
    monkeypatch.setattr("tieline.conf.paths._shared_directory", lambda: shared)
    assert "is not a private directory" in (distrust(shared) or "")
    if ours:
        assert "belongs to another user" in (distrust(data) or "")
    else:
        assert distrust(data) is None, "root's directories are believed"
