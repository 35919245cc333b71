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
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa

from tieline.conf.schema import Settings
from tieline.core.record import Occurrence, Record
from tieline.net.logserver import columns
from tieline.net.logserver.offsets import readable
from tieline.net.logserver.question import MOST_OFFSET, Question
from tieline.net.logserver.selection import Remembered, Selection
from tieline.net.logserver.span import Span, portions, settle
from tieline.net.store.reading import Damaged, Gap, Log

#: Rows and bytes of one batch; Spark itself makes batches of 10,000 rows.
MOST_ROWS: Final = 8_192
MOST_BYTES: Final = 4 << 20
#: Records looked at before a batch leaves, however little is in it: a reader should hear something, and may have gone.
MOST_SEEN: Final = 65_536
#: What a row costs beside its payload, about.
_ROW_BYTES: Final = 128
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

    kind: Any
    sees: Callable[[Any], bool]
    takes: Callable[[Any], bool]
    weight: Callable[[Any], int]
    batch: Callable[[Sequence[Any]], pa.RecordBatch]


def _way(question: Question, selection: Selection, sight: Sight, schema: pa.Schema) -> _Way:
    if question.stream == "events":
        return _Way(
            Occurrence,
            sight.occurrence,
            selection.takes_occurrence,
            lambda _each: 2 * _ROW_BYTES,
            lambda some: columns.events_batch(some, schema),
        )
    sees = Remembered(sight.record)
    return _Way(
        Record,
        lambda record: sees(record.topic),
        selection.takes,
        lambda record: len(record.payload) + len(record.properties) + len(record.topic) + _ROW_BYTES,
        lambda some: columns.log_batch(some, schema, selection.event_of),
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
                writer.write_batch(way.batch(some))
                yield sink.take()
        except (Gap, Damaged) as problem:
            writer.write_batch(way.batch([]), custom_metadata={KEY: msgspec.json.encode(trouble(problem))})
            yield sink.take()
            raise Interrupted(str(problem)) from None
        told = {"from": span.first, "to": span.last, "rows": count.rows, "withheld": count.withheld}
        writer.write_batch(way.batch([]), custom_metadata={KEY: msgspec.json.encode(told)})
        writer.close()
        yield sink.take()


class _Count:
    """Rows sent so far, and records withheld."""

    rows = 0
    withheld = 0


def _batched(
    log: Log[Any], span: Span, way: _Way, count: _Count, *, has_rules: bool, asks: bool
) -> Iterator[list[Any]]:
    """The records that are sent, as many at a time as go into one batch."""
    some: list[Any] = []
    weight = seen = 0
    for portion in portions(log, way.kind, span):
        visible = [each for each in portion if way.sees(each)] if has_rules else portion
        count.withheld += len(portion) - len(visible)
        for each in filter(way.takes, visible) if asks else visible:
            some.append(each)
            weight += way.weight(each)
            if len(some) >= MOST_ROWS or weight >= MOST_BYTES:
                count.rows += len(some)
                yield some
                some, weight, seen = [], 0, 0
        seen += len(portion)
        if seen >= MOST_SEEN:
            count.rows += len(some)
            yield some
            some, weight, seen = [], 0, 0
    if some:
        count.rows += len(some)
        yield some


def trouble(problem: Gap | Damaged) -> dict[str, object]:
    """What went wrong, for programs and for people."""
    if isinstance(problem, Gap):
        first, last = problem.first, problem.last
        return {"error": "gap", "text": str(problem), "from": first, "to": last, "missing": last - first}
    return {"error": "damaged", "text": str(problem)}


def _said(question: Question, span: Span, broker: str) -> dict[bytes, bytes]:
    said = {
        "version": columns.VERSION,
        "broker": broker,
        "stream": question.stream,
        "from": span.first,
        "to": span.last,
        "topics": question.topics,
        "where": None if question.where is None else question.where.text,
    }
    return {KEY: msgspec.json.encode(said)}
