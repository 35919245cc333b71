"""The broker and `tieline top` find the same socket, in a place that belongs to one user."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tieline.conf.paths import management_socket, prepare_directory


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
