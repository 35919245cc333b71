"""Brokers of this user find each other's management sockets, and forget those of the dead."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from tieline.net.running import Note, leave_note, running
from tieline.pytest_plugin import BrokerThread


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def test_a_running_broker_is_found_wherever_its_data_are(tmp_path: Path) -> None:
    assert running() == []
    data = tmp_path / "data"
    with BrokerThread(data=str(data), name="east", manage=True):
        (note,) = running()
        assert (note.name, note.socket, note.words) == ("east", str(data / "tieline.sock"), f"--data {data}")
        with BrokerThread(name="west", manage=True):
            assert [each.words for each in running()] == [f"--data {data}", "--name west"]
    assert running() == []
    assert not [*(tmp_path / "run" / "tieline").glob("*.running")], "its note is removed when it stops"


def test_the_note_of_a_dead_broker_is_removed_by_who_looks(tmp_path: Path) -> None:
    dead = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(dead))
    place = leave_note(Note(name="dead", socket=str(dead)))
    assert running() == [] and not place.exists()


def test_what_is_no_note_is_passed_over(tmp_path: Path) -> None:
    directory = leave_note(Note(name="x", socket=str(tmp_path / "none"))).parent
    (directory / "a.running").write_bytes(b"\xff")
    assert running() == []
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_directory_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    place = leave_note(Note(name="x", socket=str(tmp_path / "none")))
    place.parent.chmod(0o777)
    assert running() == [] and place.exists(), "nothing of it is read"
    with pytest.raises(PermissionError):
        leave_note(Note(name="y", socket=str(tmp_path / "none")))
