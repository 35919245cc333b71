"""The log: readable by people or by programs, and never in the way of the broker."""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from queue import Queue

import pytest

from tieline.core.account import Account, Drop, Event
from tieline.net import log as logs


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """The logger as it was before."""
    log = logs.log
    before = (log.handlers, log.level, log.propagate)
    yield
    log.handlers, log.propagate = before[0], before[2]
    log.setLevel(before[1])


def _written(level: str, style: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What one of each kind of line looks like."""
    account = Account()
    account.tell(Event("connected", "client", "127.0.0.1:1", "MQTT 5"))
    account.tell(Event("closed", "", "127.0.0.1:2", "malformed_packet", is_trouble=True))
    listener = logs.start(level, style)
    logs.tell_events(account)
    try:
        raise ZeroDivisionError("a fault of ours")
    except ZeroDivisionError:
        logs.log.exception("internal error")
    listener.stop()
    assert not account.events
    output, errors = capsys.readouterr()
    assert output == ""
    return errors.splitlines()


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    connected, closed, fault, *trace = _written("info", "human", capsys)
    assert connected.endswith(" info    connected client (127.0.0.1:1): MQTT 5")
    assert closed.endswith(" warning closed - (127.0.0.1:2): malformed_packet")
    assert fault.endswith(" error   internal error")
    assert trace[-1] == "ZeroDivisionError: a fault of ours"


def test_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    connected, closed, fault = (json.loads(line) for line in _written("info", "json", capsys))
    assert (connected["event"], connected["client"], connected["peer"]) == ("connected", "client", "127.0.0.1:1")
    assert (connected["level"], connected["detail"]) == ("info", "MQTT 5")
    assert (closed["level"], closed["client"]) == ("warning", "")
    assert "ZeroDivisionError: a fault of ours" in fault["exception"]


def _dropped(style: str, capsys: pytest.CaptureFixture[str]) -> str:
    account = Account()
    account.drop(12.5, Drop.QUEUE_FULL, "client", b"a/b", messages=2, queued=7, level=0, since=10.0)
    listener = logs.start("info", style)
    logs.tell_drops(account, Counter())
    listener.stop()
    return capsys.readouterr().err


def test_drops_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    line = _dropped("human", capsys)
    assert line.endswith(" warning dropped 2 messages: queue_full, last for client on a/b\n")


def test_drops_for_programs_have_the_severity_of_the_line_and_the_level_of_the_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = json.loads(_dropped("json", capsys))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "text": "dropped 2 messages: queue_full, last for client on a/b",
        "event": "dropped",
        "why": "queue_full",
        "messages": 2,
        "client": "client",
        "topic": "a/b",
        "message_level": 0,
        "queued": 7,
        "age_s": 2.5,
    }


def test_the_level_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(_written("warning", "json", capsys)) == 2
    assert len(_written("error", "json", capsys)) == 1


def test_drops_are_summed_up(caplog: pytest.LogCaptureFixture) -> None:
    account, told = Account(), Counter[Drop]()
    for number in range(3):
        account.drop(0.0, Drop.QUEUE_FULL, f"client {number}", b"a/b", messages=2)
    logs.tell_drops(account, told)
    assert caplog.messages == ["dropped 6 messages: queue_full, last for client 2 on a/b"]
    logs.tell_drops(account, told)
    assert len(caplog.messages) == 1
    account.drop(0.0, Drop.QUEUE_FULL, "client", b"a")
    logs.tell_drops(account, told)
    assert caplog.messages[1:] == ["dropped 1 messages: queue_full, last for client on a"]


def test_lines_that_do_not_fit_are_counted_and_told() -> None:
    output = StringIO()
    writer = logs.LineWriter(output, logging.Formatter("%(message)s"), most=4)
    logs.log.handlers = [writer]
    logs.log.setLevel("INFO")
    for number in range(7):
        logs.log.info("line %d", number)
    assert writer.lost == 3
    writer.write()
    logs.log.info("line 7")
    writer.write()
    assert output.getvalue().splitlines() == [
        *(f"line {number}" for number in (0, 1, 2, 3, 7)),
        "3 log lines were lost: the log could not be written fast enough",
    ]


def test_lines_that_cannot_be_written_are_counted_and_told() -> None:
    class Full(StringIO):
        is_full = True

        def write(self, text: str) -> int:
            if self.is_full:
                raise OSError("no space left on device")
            return super().write(text)

    output = Full()
    writer = logs.LineWriter(output, logging.Formatter("%(message)s"))
    logs.log.handlers = [writer]
    logs.log.setLevel("INFO")
    logs.log.info("one")
    logs.log.info("two")
    writer.write()
    output.is_full = False
    logs.log.info("three")
    writer.write()
    assert output.getvalue().splitlines() == [
        "three",
        "2 log lines were lost: the log could not be written fast enough",
    ]


def test_a_slow_terminal_does_not_stop_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck:
        """A terminal on which somebody pressed Ctrl-S."""

        def __init__(self) -> None:
            self.gate: Queue[None] = Queue()
            self.lines = 0

        def write(self, text: str) -> None:
            self.gate.get()
            self.lines += text.count("\n")

        def flush(self) -> None:
            pass

    stuck = Stuck()
    monkeypatch.setattr(sys, "stderr", stuck)
    listener = logs.start("info", "human")
    for _ in range(10):
        logs.log.info("said at once")
    assert stuck.lines == 0
    for _ in range(10):
        stuck.gate.put(None)
    listener.stop()
    assert stuck.lines == 10


def test_lines_that_wait_are_bounded_in_length_too() -> None:
    output = StringIO()
    writer = logs.LineWriter(output, logging.Formatter())
    for number in range(1_000):
        writer.emit(logging.LogRecord("tieline", logging.INFO, "", 0, f"{number}".zfill(60_000), (), None))
    assert sum(map(len, writer._lines)) < 9_000_000 and writer.lost > 800
    writer.write()
    writer.emit(logging.LogRecord("tieline", logging.INFO, "", 0, "short", (), None))
    assert list(writer._lines)[-1] == "short", "what was written takes no room"
