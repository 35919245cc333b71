"""The broker's story as log lines, written by a thread so that a slow terminal never stops the loop."""

from __future__ import annotations

import json
import logging
import sys
import time
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

    from tieline.core.account import Account, Drop

log = logging.getLogger("tieline")

#: Lines that may wait for the terminal; more are counted, not kept.
_WAITING = 10_000


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


class _Waiting(QueueHandler):
    """Puts records in a bounded queue; a full one loses them, and the next line says how many."""

    lost = 0
    queue: Queue[logging.LogRecord]

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record  # same process: nothing to pickle

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except Full:
            self.lost += 1
        else:
            if self.lost and self.queue.qsize() < _WAITING // 2:
                lost, self.lost = self.lost, 0
                log.warning("%d log lines were lost: the log could not be written fast enough", lost)


def start(level: str, style: str) -> QueueListener:
    """Write the log to standard error; the caller stops the returned listener at the end."""
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(_Json() if style == "json" else _Human())
    waiting: Queue[logging.LogRecord] = Queue(_WAITING)
    listener = QueueListener(waiting, output)
    handler = _Waiting(waiting)
    log.handlers = [handler]
    log.setLevel(level.upper())
    log.propagate = False
    listener.start()
    return listener


def printable(text: str) -> str:
    """A client chooses its id and its topics; it does not choose what our log and terminal do."""
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
            log.log(level, "%s %s: %s", event.kind, who, printable(event.text), extra={"fields": fields})


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
