"""What answers on the management socket is believed only where nobody else can answer, and paints no terminal."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from tieline.cli.management import Management, shown
from tieline.cli.trouble import Trouble


def _answering(path: Path, answer: object) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        with listening:
            speaking, _ = listening.accept()
        with speaking:
            speaking.recv(65_536)
            speaking.sendall(json.dumps(answer).encode() + b"\n")

    threading.Thread(target=serve, daemon=True).start()


def test_texts_that_clients_chose_cannot_move_the_cursor(tmp_path: Path) -> None:
    name = "\x1b]0;owned\x07\x9b2J\u202eabc\r\n"
    _answering(tmp_path / "s", {"client": name, "steps": [{name: name}], "count": 3, "grün": "größer ✓"})
    with Management(tmp_path / "s") as broker:
        answer = broker.ask("why")
    assert answer["client"] == name, "programs get it as it is"
    found = shown(answer)
    assert found["grün"] == "größer ✓" and found["count"] == 3
    harmless = r"\x1b]0;owned\x07\x9b2J\u202eabc\r\n"
    assert found["client"] == harmless and found["steps"] == [{harmless: harmless}]


def test_an_error_cannot_either(tmp_path: Path) -> None:
    _answering(tmp_path / "s", {"error": "\x1b[2J"})
    with Management(tmp_path / "s") as broker, pytest.raises(Trouble) as trouble:
        broker.ask("reload")
    assert "\x1b" not in str(trouble.value) and r"\x1b[2J" in str(trouble.value)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o755, 0o720])
def test_a_socket_where_anybody_could_have_put_it_is_not_believed(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "open"
    place.mkdir()
    _answering(place / "s", {})
    place.chmod(mode)
    with pytest.raises(Trouble, match="not believed"):
        Management(place / "s")


def test_no_broker_is_still_no_broker(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="no broker answers"):
        Management(tmp_path / "s")
