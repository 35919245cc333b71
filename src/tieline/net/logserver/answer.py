"""The answer to a question as an Arrow IPC stream, a bounded piece at a time.

Theory of operation
-------------------
The schema's metadata says what was asked: broker, stream, range, topics, condition.  Batches follow, each bounded by
rows and bytes, so that memory does not grow with the range.  The last batch is empty, and its own metadata says how it
went: how many rows were sent, and how many records of the range were withheld because the reader's user may not read
their topics.  Who has read that knows that the range was complete, though rows are missing that were not asked for.

When something goes wrong on the way (retention was faster, a record is damaged), the last batch says so in place of
the counts, and :class:`Interrupted` is raised: the connection has to break, so that a reader who looks at nothing
but rows does not take the answer for whole.

Withheld records are counted before topics and condition are looked at.  Otherwise the count would tell what a condition
finds in messages that its author may not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa

from tieline.conf.schema import Settings
from tieline.core.log_columns import VERSION
from tieline.core.record import Occurrence, record_up_to
from tieline.net.logserver import columns
from tieline.net.logserver.offsets import readable
from tieline.net.logserver.question import MOST_OFFSET, Question
from tieline.net.logserver.selection import Remembered, Selection
from tieline.net.logserver.span import Span, decoded, settle
from tieline.net.store.reading import Damaged, Gap, Log

#: Rows and bytes of one batch; Spark itself makes batches of 10,000 rows.
MOST_ROWS: Final = 8_192
MOST_BYTES: Final = 4 << 20
#: Records looked at before a batch leaves, however little is in it: a reader should hear something, and may have gone.
MOST_SEEN: Final = 65_536
#: What a row costs beside the fields that may be long, about; and which these are.
_ROW_BYTES: Final = 128
_LONG: Final = ("topic", "payload", "properties")
#: The key of our metadata, in the schema and in the last batch; its value is a JSON object.
KEY: Final = b"tieline"


class Interrupted(Exception):
    """The answer is not whole, and ends here."""


class Sight(Protocol):
    """What the reader's user may see."""

    @property
    def is_open(self) -> bool:
        """Everything."""

    def record(self, topic: str) -> bool:
        """Messages of a topic?"""

    def occurrence(self, occurrence: Occurrence) -> bool:
        """An event of the broker?"""


class _Sink:
    """Collects what Arrow writes, until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class _Way(NamedTuple):
    """How the records of one stream are looked at; they are of one type, which the stream decides."""

    kind: type[msgspec.Struct]
    sees: Callable[[Any], bool]
    takes: Callable[[Any], bool]
    batch: Callable[[Sequence[int], Sequence[Any]], pa.RecordBatch]


def _way(question: Question, selection: Selection, sight: Sight, schema: pa.Schema) -> _Way:
    if question.stream == "events":
        return _Way(
            Occurrence,
            sight.occurrence,
            selection.takes_occurrence,
            lambda offsets, some: columns.events_batch(some, schema, offsets),
        )
    sees = Remembered(sight.record)
    needed = columns.fields_of(schema) | selection.fields
    return _Way(
        record_up_to(needed if sight.is_open else needed | {"topic"}),
        lambda record: sees(record.topic),
        selection.takes,
        lambda offsets, some: columns.log_batch(some, schema, selection.event_of, offsets),
    )


class Answer:
    """One question on its way to being answered; opened, read and closed in one and the same thread."""

    def __init__(
        self, data: str | Path, question: Question, settings: Settings, sight: Sight, *, most: int = MOST_OFFSET
    ) -> None:
        """``most`` offsets may be asked for at once."""
        self._data = data
        self._question = question
        self._settings = settings
        self._sight = sight
        self._most = most
        self._schema = columns.schema_of(question.stream, question.columns)
        self._log: Log[Any] | None = None

    def open(self) -> Iterator[bytes]:
        """Settle the range, and give the bytes of the stream; what is wrong with the range is raised here."""
        return readable(self._begin)

    def close(self) -> None:
        """Let go of the store."""
        if self._log is not None:
            self._log.close()

    def _begin(self) -> Iterator[bytes]:
        log: Log[Any] = Log(self._data) if self._question.stream == "log" else Log(self._data, stream="events")
        self._log = log
        return self._pieces(log, settle(log, self._question, most=self._most))

    def _pieces(self, log: Log[Any], span: Span) -> Iterator[bytes]:
        selection = Selection(self._question, self._settings)
        schema = self._schema.with_metadata(_said(self._question, span, self._settings.name))
        way = _way(self._question, selection, self._sight, schema)
        sink = _Sink()
        writer = pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema)
        count = _Count()
        batches = _batched(log, span, way, count, has_rules=not self._sight.is_open, asks=not selection.is_everything)
        try:
            while (some := readable(lambda: next(batches, None))) is not None:
                writer.write_batch(way.batch(some.offsets, some.records))
                yield sink.take()
        except (Gap, Damaged) as problem:
            writer.write_batch(way.batch([], []), custom_metadata={KEY: msgspec.json.encode(trouble(problem))})
            yield sink.take()
            raise Interrupted(str(problem)) from None
        told = {"from": span.first, "to": span.last, "rows": count.rows, "withheld": count.withheld}
        writer.write_batch(way.batch([], []), custom_metadata={KEY: msgspec.json.encode(told)})
        writer.close()
        yield sink.take()


class _Count:
    """Rows sent so far, and records withheld."""

    rows = 0
    withheld = 0


class _Rows:
    """What goes into one batch: records and their offsets, up to the bounds of a batch."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.records: list[Any] = []
        self._weight = 0

    @property
    def is_full(self) -> bool:
        """Nothing more goes into it."""
        return len(self.records) >= MOST_ROWS or self._weight >= MOST_BYTES

    def add(self, offsets: Sequence[int], records: Sequence[Any], size: int) -> int:
        """Take as many as there is room for, and say how many; together they are not larger than ``size``."""
        count = min(len(records), MOST_ROWS - len(self.records))
        weight = self._weight + size + count * _ROW_BYTES
        if weight >= MOST_BYTES:
            # only then is it worth looking at each of them
            weights = accumulate(_weights(records), initial=self._weight)
            next(weights)
            for place, weight in zip(range(1, count + 1), weights, strict=False):
                if weight >= MOST_BYTES:
                    count = place
                    break
        self._weight = weight
        self.offsets += offsets[:count]
        self.records += records[:count]
        return count


def _weights(records: Sequence[Any]) -> Iterator[int]:
    """About how much memory each record takes: of a short record, fewer fields were decoded."""
    held = [name for name in _LONG if name in records[0].__struct_fields__]
    lengths = (map(len, map(attrgetter(name), records)) for name in held)
    return map(sum, zip(repeat(_ROW_BYTES, len(records)), *lengths, strict=True))


def _batched(log: Log[Any], span: Span, way: _Way, count: _Count, *, has_rules: bool, asks: bool) -> Iterator[_Rows]:
    """The records that are sent, as many at a time as go into one batch."""
    rows = _Rows()
    seen = 0
    for portion in decoded(log, way.kind, span):
        records = portion.records
        offsets: Sequence[int] = range(portion.first, portion.first + len(records))
        if has_rules:
            offsets, records = _those(way.sees, offsets, records)
            count.withheld += len(portion.records) - len(records)
        if asks:
            offsets, records = _those(way.takes, offsets, records)
        begin = 0
        while begin < len(records):
            begin += rows.add(offsets[begin:], records[begin:], portion.size)
            if rows.is_full:
                count.rows += len(rows.records)
                yield rows
                rows, seen = _Rows(), 0
        seen += len(portion.records)
        if seen >= MOST_SEEN:
            count.rows += len(rows.records)
            yield rows
            rows, seen = _Rows(), 0
    if rows.records:
        count.rows += len(rows.records)
        yield rows


def _those(test: Callable[[Any], bool], offsets: Sequence[int], records: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The records that pass a test, and their offsets."""
    passed = list(map(test, records))
    return list(compress(offsets, passed)), list(compress(records, passed))


def trouble(problem: Gap | Damaged) -> dict[str, object]:
    """What went wrong, for programs and for people."""
    if isinstance(problem, Gap):
        first, last = problem.first, problem.last
        return {"error": "gap", "text": str(problem), "from": first, "to": last, "missing": last - first}
    return {"error": "damaged", "text": str(problem)}


def _said(question: Question, span: Span, broker: str) -> dict[bytes, bytes]:
    said = {
        "version": VERSION,
        "broker": broker,
        "stream": question.stream,
        "from": span.first,
        "to": span.last,
        "topics": question.topics,
        "where": None if question.where is None else question.where.text,
    }
    return {KEY: msgspec.json.encode(said)}
