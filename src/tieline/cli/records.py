"""Records of the log on standard output, as they are and as they come: lines for people, or one JSON object each."""

from __future__ import annotations

import base64
import select
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal  # Any: the stream decides what its records are

import msgspec

from tieline.conf.schema import Settings
from tieline.log.record import Occurrence, Record
from tieline.net.log import printable
from tieline.net.logserver.question import OffsetSpan, Question, portions
from tieline.net.logserver.selection import Selection
from tieline.net.store.reading import Gap, Log
from tieline.wire.properties import user_properties

Format = Literal["human", "json"]
#: How many records are looked at first for the last few that are asked for.
_LAST: Final = 1_000
#: How long to wait before looking for more records: at first, and when there have been none for a while.
_SOON_S: Final = 0.05
_LATER_S: Final = 1.0


def line(record: Record | Occurrence, style: Format) -> str:
    """One record as one line, whatever bytes are in it."""
    if isinstance(record, Record):
        return _message_json(record) if style == "json" else _message(record)
    return _event_json(record) if style == "json" else _event(record)


def _message(record: Record) -> str:
    marks = f"q{record.qos}{' dup' if record.dup else ''}{' retain' if record.retain else ''}"
    who = printable(record.publisher) or "-"
    return (
        f"{record.offset:>8}  {_time(record.received)}  {marks}  {record.class_}  {who}  {printable(record.topic)}  "
        f"{_payload(record.payload)}"
    )


def _payload(payload: bytes) -> str:
    try:
        return printable(payload.decode())
    except UnicodeDecodeError:
        return f"0x{payload.hex()}"


def _message_json(record: Record) -> str:
    shown: dict[str, object] = {
        "offset": record.offset,
        "received": _time(record.received),
        "received_ns": record.received,
        "publisher": record.publisher,
        "epoch": record.epoch,
        "packet_id": record.packet_id,
        "dup": record.dup,
        "qos": record.qos,
        "retain": record.retain,
        "level": record.level,
        "class": record.class_,
        "topic": record.topic,
        **_bytes("payload", record.payload),
        "properties": user_properties(record.properties),
        "raw_properties": record.properties.hex(),
        "digest": record.digest.hex(),
        "attributes": record.attributes,
    }
    return msgspec.json.encode(shown).decode()


def _bytes(name: str, value: bytes) -> dict[str, str]:
    """Text as it is; other bytes under another name, so that neither is taken for the other."""
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _event(event: Occurrence) -> str:
    who, about = printable(event.client) or "-", printable(event.topic) or "-"
    detail = printable(msgspec.json.encode(event.detail).decode()) if event.detail else ""
    return f"{event.offset:>8}  {_time(event.time)}  {event.kind}  {who}  {about}  {detail}".rstrip()


def _event_json(event: Occurrence) -> str:
    shown = {
        "offset": event.offset,
        "time": _time(event.time),
        "time_ns": event.time,
        "kind": event.kind,
        "client": event.client,
        "topic": event.topic,
        "detail": event.detail,
    }
    return msgspec.json.encode(shown).decode()


def _time(nanoseconds: int) -> str:
    """To the microsecond, in UTC."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000:06d}Z"


class Output:
    """Prints those records of a log that are asked for."""

    def __init__(self, log: Log[Any], asked: Question, settings: Settings, style: Format, *, allow_gap: bool) -> None:
        self._selection = Selection(asked, settings)
        self._log = log
        self._is_log = asked.stream == "log"
        self._style: Format = style
        self._allow_gap = allow_gap

    def print(self, span: OffsetSpan, *, since_s: float = 0.0) -> None:
        """Print those records of a range that are asked for, and that came at or after a time."""
        while span.first < span.last:
            try:
                for portion in self._portions(span):
                    sys.stdout.writelines(f"{each}\n" for each in self._lines(portion, since_s))
                break
            except Gap as gap:
                sys.stdout.flush()
                if not self._allow_gap:
                    raise
                print(f"tieline: {gap}; {gap.last - gap.first} records are missing.", file=sys.stderr)
                span = OffsetSpan(gap.last, span.last)
        sys.stdout.flush()

    def print_last(self, count: int) -> None:
        """Print the last few of those that are asked for, in their order; from the end on, as far back as it takes."""
        earliest, end = self._log.earliest(), self._log.latest()
        found: deque[list[str]] = deque()
        size = max(count, _LAST)
        while end > earliest and sum(map(len, found)) < count:
            begin = max(earliest, end - size)
            lines = [each for portion in self._portions(OffsetSpan(begin, end)) for each in self._lines(portion)]
            found.appendleft(lines[-count:])
            end, size = begin, 2 * size
        printed = [each for lines in found for each in lines][-count:]
        sys.stdout.writelines(f"{each}\n" for each in printed)
        sys.stdout.flush()

    def _portions(self, span: OffsetSpan) -> Iterator[list[Any]]:
        if self._is_log:
            # a broker may have started with other event types since the last range
            self._selection.types = self._log.types()
        kind: Any = Record if self._is_log else Occurrence
        return portions(self._log, kind, span)

    def _lines(self, records: Sequence[Record] | Sequence[Occurrence], since_s: float = 0.0) -> Iterator[str]:
        """Those that are asked for, as lines."""
        selection, since_ns = self._selection, int(since_s * 1e9)
        for each in records:
            if isinstance(each, Occurrence):
                if each.time >= since_ns and selection.takes_occurrence(each):
                    yield line(each, self._style)
            elif each.received >= since_ns and selection.takes(each):
                if self._style == "json":
                    # people see the payload itself
                    selection.types.complete(each)
                yield line(each, self._style)


def follow(output: Output, log: Log[Any], place: int) -> None:
    """Print what comes; look less often while nothing does."""
    gone = select.poll()
    gone.register(sys.stdout.fileno(), 0)  # only that it has broken
    wait_s = _SOON_S
    while True:
        latest = log.latest()
        if latest > place:
            output.print(OffsetSpan(place, latest))
            place, wait_s = latest, _SOON_S
        elif gone.poll(wait_s * 1_000):
            raise BrokenPipeError
        else:
            wait_s = min(2 * wait_s, _LATER_S)
