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

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final  # Any: the stream decides what its records are

import msgspec
import pyarrow as pa

from tieline.conf.schema import Settings
from tieline.log.columns import VERSION
from tieline.net.logserver import columns
from tieline.net.logserver.batches import Batches, Way
from tieline.net.logserver.by_row import ByRow
from tieline.net.logserver.offsets import readable
from tieline.net.logserver.question import MOST_OFFSET, OffsetSpan, Question, settle
from tieline.net.logserver.selection import Selection, Visibility
from tieline.net.store.reading import Gap, Log
from tieline.net.store.schema import Damaged

#: The key of our metadata, in the schema and in the last batch; its value is a JSON object.
KEY: Final = b"tieline"


class Interrupted(Exception):
    """The answer is not whole, and ends here."""


class _Sink:
    """Collects what Arrow writes, until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes | pa.Buffer] = []

    def write(self, part: bytes | pa.Buffer) -> int:
        # Arrow hands over columns as they are, and nobody changes them: they are copied once, when they are taken
        self._parts.append(part)
        return len(part)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _way(question: Question, selection: Selection, visibility: Visibility, schema: pa.Schema, *, is_fast: bool) -> Way:
    if question.stream == "events":
        return ByRow.of_events(schema, selection, visibility)
    by_row = ByRow.of_messages(schema, selection, visibility)
    if not is_fast or question.where is not None:
        return by_row
    # imports numba
    from tieline.net.logserver.by_column import ByColumn

    return ByColumn(schema, selection, visibility, by_row)


class Answer:
    """One question on its way to being answered; opened, read and closed in one and the same thread."""

    def __init__(
        self,
        data: str | Path,
        question: Question,
        settings: Settings,
        visibility: Visibility,
        *,
        most: int = MOST_OFFSET,
        is_fast: bool = False,
    ) -> None:
        """``most`` offsets may be asked for at once; ``is_fast`` says that the compiled loops are there."""
        self._data = data
        self._question = question
        self._settings = settings
        self._visibility = visibility
        self._most = most
        self._is_fast = is_fast
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

    def _pieces(self, log: Log[Any], span: OffsetSpan) -> Iterator[bytes]:
        # behind the range, so that they cover all of it
        types = log.types() if self._question.stream == "log" else None
        selection = Selection(self._question, self._settings, types)
        schema = self._schema.with_metadata(_said(self._question, span, self._settings.name))
        way = _way(self._question, selection, self._visibility, schema, is_fast=self._is_fast)
        nothing = pa.RecordBatch.from_pylist([], schema)
        sink = _Sink()
        writer = pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema)
        found = Batches(way, span)
        batches = found.of(log.groups(span.first, span.last))
        try:
            while (batch := readable(lambda: next(batches, None))) is not None:
                writer.write_batch(batch)
                yield sink.take()
        except (Gap, Damaged) as problem:
            writer.write_batch(nothing, custom_metadata={KEY: msgspec.json.encode(trouble(problem))})
            yield sink.take()
            raise Interrupted(str(problem)) from None
        told = {"from": span.first, "to": span.last, "rows": found.rows, "withheld": found.withheld}
        writer.write_batch(nothing, custom_metadata={KEY: msgspec.json.encode(told)})
        writer.close()
        yield sink.take()


def trouble(problem: Gap | Damaged) -> dict[str, object]:
    """What went wrong, for programs and for people."""
    if isinstance(problem, Gap):
        first, last = problem.first, problem.last
        return {"error": "gap", "text": str(problem), "from": first, "to": last, "missing": last - first}
    return {"error": "damaged", "text": str(problem)}


def _said(question: Question, span: OffsetSpan, broker: str) -> dict[bytes, bytes]:
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
