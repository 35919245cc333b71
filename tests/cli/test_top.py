"""`tieline top` asks over the management socket and shows who is slow and what was dropped."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Served, Tieline

ANSWER: dict[str, Any] = {
    "name": "edge", "version": "0.1.0", "uptime_s": 7500.0,
    "rates": {"received_per_s": 12_000.4, "sent_per_s": 3.0, "bytes_in_per_s": 2e6, "bytes_out_per_s": 5.0},
    "totals": {"received": 5},
    "clients": {"connected": 42, "sessions": 60}, "subscriptions": 1234, "retained": 9, "queued_bytes": 123_456,
    "loop_lag_ms": 0.31, "drops": {"queue_full": 12, "expired": 0}, "closed": {"keep_alive": 77},
    "slowest": [
        {"client": "lame\x1b[2J[red]", "peer": "10.0.0.1:5", "queued": 5, "queued_bytes": 2048, "oldest_s": 90.0,
         "paused": "inflight_full", "dropped": 3},
        {"client": "gone", "peer": "", "queued": 1, "queued_bytes": 1, "paused": "away"},
        {"client": "idle", "peer": "10.0.0.2:6", "paused": "caught_up"},
    ],
}  # fmt: skip


@pytest.fixture(name="answers")
def _answers(tmp_path: Path) -> Iterator[Callable[[bytes], Path]]:
    """A program behind a management socket that answers every line with the given bytes."""
    path = tmp_path / "tieline.sock"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    threads: list[threading.Thread] = []

    def serve(answer: bytes) -> None:
        connection, _address = listening.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                assert json.loads(line) == {"do": "top"}
                connection.sendall(answer)
                if not answer:
                    return

    def start(answer: bytes) -> Path:
        threads.append(threading.Thread(target=serve, args=(answer,), daemon=True))
        threads[-1].start()
        return path

    yield start
    for thread in threads:
        thread.join(5)
    listening.close()


def test_one_frame(tieline: Tieline, answers: Callable[[bytes], Path]) -> None:
    path = answers(json.dumps(ANSWER).encode() + b"\n")
    shown = tieline("top", "--once", "--data", str(path.parent))
    assert (shown.returncode, shown.stderr) == (0, "")
    for expected in ("edge", "up 2.1 h", "12,000 msg/s", "2.0 MB/s", "42", "60", "1,234", "123.5 kB", "0.3 ms"):
        assert expected in shown.stdout
    assert "queue full" in shown.stdout and "expired" not in shown.stdout
    assert "1.5 min" in shown.stdout and "inflight full" in shown.stdout and "away" in shown.stdout
    assert "keep alive" in shown.stdout and "77" in shown.stdout
    assert "idle" not in shown.stdout, "a client that keeps up is not slow"


def test_conditions_are_shown_where_there_are_any(tieline: Tieline, answers: Callable[[bytes], Path]) -> None:
    content = {"subscriptions": 321, "sifted": 6_543, "unreadable": 17, "references": 1_001, "forgotten": 0}
    path = answers(json.dumps({**ANSWER, "content": content}).encode() + b"\n")
    shown = tieline("top", "--once", "--data", str(path.parent)).stdout
    for expected in ("conditions", "321", "6,543 msg", "17 msg", "1,001"):
        assert expected in shown


def test_logins_that_were_not_heard_are_shown_where_there_are_any(
    tieline: Tieline, answers: Callable[[bytes], Path]
) -> None:
    path = answers(json.dumps({**ANSWER, "logins": {"throttled": 4_321, "turned_away": 87}}).encode() + b"\n")
    shown = tieline("top", "--once", "--data", str(path.parent)).stdout
    for expected in ("logins throttled", "4,321", "turned away", "87"):
        assert expected in shown


def test_without_conditions_nothing_is_said_about_them(tieline: Tieline, answers: Callable[[bytes], Path]) -> None:
    path = answers(json.dumps(ANSWER).encode() + b"\n")
    assert "conditions" not in tieline("top", "--once", "--data", str(path.parent)).stdout


def test_a_client_cannot_steer_the_terminal(tieline: Tieline, answers: Callable[[bytes], Path]) -> None:
    path = answers(json.dumps(ANSWER).encode() + b"\n")
    shown = tieline("top", "--once", "--socket", str(path)).stdout
    assert "\x1b[2J" not in shown
    assert "lame\\x1b[2J[red]" in shown


def test_json(tieline: Tieline, answers: Callable[[bytes], Path]) -> None:
    path = answers(json.dumps(ANSWER).encode() + b"\n")
    assert json.loads(tieline("top", "--once", "--json", "--socket", str(path)).stdout) == ANSWER


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "has stopped"),
        (b"hello\n", "does not speak the management protocol"),
        (b'{"error": "unknown request"}\n', "refused: unknown request"),
        (b'{"name": 5}\n', "of another version"),
    ],
)
def test_other_answers(tieline: Tieline, answers: Callable[[bytes], Path], answer: bytes, said: str) -> None:
    shown = tieline("top", "--once", "--socket", str(answers(answer)))
    assert shown.returncode == 1
    assert said in shown.stderr and shown.stderr.count("\n") == 1


def test_a_live_broker(tieline: Tieline, served: Served) -> None:
    shown = tieline("top", "--once", "--data", str(served.data))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "edge" in shown.stdout and "Every client keeps up." in shown.stdout
    answer = json.loads(tieline("top", "--once", "--json", "--data", str(served.data)).stdout)
    assert answer["name"] == "edge"
    assert set(ANSWER) <= set(answer)
