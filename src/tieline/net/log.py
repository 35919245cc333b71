"""The broker's story as log lines, written by a thread so that a slow terminal never stops the loop."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections import Counter

    from tieline.core.account import Account, Drop

log = logging.getLogger("tieline")

#: Lines that may wait for the terminal, and their characters; more are counted, not kept.
_WAITING: Final = 10_000
_WAITING_LENGTH: Final = 8_388_608
#: Lines that are written in one go, and how long they are gathered before.
_AT_ONCE: Final = 256
_GATHERED_S: Final = 0.02


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        text = f"{when}.{int(record.msecs):03d} {record.levelname.lower():7} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "text": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class LineWriter(logging.Handler):
    """Collects lines, and lets a thread write what has come together; a full one loses them, and says how many.

    A thread that is woken for every line takes the interpreter away from the loop each time, which cost more than all
    the rest of a connection that comes and goes.  So it is woken once, and waits a moment before it writes.
    """

    def __init__(self, output: TextIO, formatter: logging.Formatter, most: int = _WAITING) -> None:
        super().__init__()
        self._output = output
        self.formatter = formatter
        self._most = most
        self._lines: deque[str] = deque()
        #: Characters that were taken over and that were written or lost; each is changed by one thread alone.
        self._taken = self._gone = 0
        #: Lines lost since that was last told.
        self.lost = 0
        self._is_called = threading.Event()
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._is_ending.set()
        self._is_called.set()
        self._thread.join()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line over."""
        if len(self._lines) >= self._most or self._taken - self._gone > _WAITING_LENGTH:
            # a client may give itself a name of 64 KiB
            self.lost += 1
            return
        line = self.format(record)
        self._taken += len(line)
        self._lines.append(line)
        if self.lost and len(self._lines) < self._most // 2:
            lost, self.lost = self.lost, 0
            log.warning("%d log lines were lost: the log could not be written fast enough", lost)
        if not self._is_called.is_set():
            self._is_called.set()

    def write(self) -> None:
        """Write every line that waits."""
        while self._lines:
            # not all at once: what a slow reader has not taken still counts as waiting
            some = [self._lines.popleft() for _ in range(min(len(self._lines), _AT_ONCE))]
            try:
                self._output.write("\n".join(some) + "\n")
                self._output.flush()
            except (OSError, ValueError):
                # whoever read the log has gone, or the disk is full: told if a line can be written again
                self.lost += len(some)
                return
            finally:
                self._gone += sum(map(len, some))

    def _run(self) -> None:
        while not self._is_ending.is_set():
            self._is_called.wait()
            self._is_ending.wait(_GATHERED_S)
            self._is_called.clear()
            self.write()
        self.write()


def start(level: str, style: str) -> LineWriter:
    """Write the log to standard error; the caller stops the returned writer at the end."""
    writer = LineWriter(sys.stderr, _Json() if style == "json" else _Human())
    log.handlers = [writer]
    log.setLevel(level.upper())
    log.propagate = False
    writer.start()
    return writer


def printable(text: str) -> str:
    """A client chooses its id and its topics; it does not choose what our log and terminal do."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def tell_events(account: Account) -> None:
    """Write what happened since the last call."""
    while account.events:
        event = account.events.popleft()
        level = logging.WARNING if event.is_trouble else logging.INFO
        if log.isEnabledFor(level):
            who = f"{printable(event.client) or '-'} ({event.peer})"
            fields = {
                "event": event.kind,
                "client": event.client,
                "peer": event.peer,
                "why": event.why,
                "detail": event.text,
            }
            text = f"{event.kind} {who}: {printable(event.text)}"
            # not by log.log(), which would look for the line of code that calls it, and longer than all the rest takes
            log.handle(log.makeRecord(log.name, level, __file__, 0, text, (), None, extra={"fields": fields}))


def tell_drops(account: Account, told: Counter[Drop]) -> None:
    """Write a summary of the messages dropped since the last call; ``told`` remembers the counts."""
    for why, count in account.drops.items():
        new = count - told[why]
        if new:
            told[why] = count
            example = next((dropped for dropped in reversed(account.last_drops) if dropped.why is why), None)
            last = f", last for {printable(example.client)} on {printable(example.topic)}" if example else ""
            fields: dict[str, object] = {"event": "dropped", "why": why.value, "messages": new}
            if example is not None:
                # of the last one; the others are in the ring that `tieline why` reads
                fields |= {"client": example.client, "topic": example.topic, "message_level": example.level}
                fields |= {"queued": example.queued, "age_s": round(example.age_s, 3)}
            log.warning("dropped %d messages: %s%s", new, why.value, last, extra={"fields": fields})
