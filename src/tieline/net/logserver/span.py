"""A range of offsets, held against what the log has: settled, or refused with what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from tieline.log.record import Occurrence, Record
from tieline.net.logserver.question import Question, Unanswerable
from tieline.net.store.reading import Gap, Group, Log
from tieline.net.store.schema import Damaged

R = TypeVar("R", Record, Occurrence)


class Beyond(Exception):
    """Offsets were asked for that no record has yet."""

    def __init__(self, asked: int, latest: int) -> None:
        super().__init__(f"offset {asked} lies beyond the end of the stream: the next record will get {latest}")
        self.asked = asked
        self.latest = latest


class Span(NamedTuple):
    """The offsets from ``first`` up to, and without, ``last``: all of them are in the log."""

    first: int
    last: int


def meant(log: Log[R], first: int, last: int | None) -> Span:
    """A range that ends, if not said otherwise, where the stream ends now; raises :class:`Beyond` for a later end."""
    latest = log.latest()
    if last is not None and last < first:
        raise Unanswerable("to", f"to = {last} is refused: it lies before from = {first}")
    if max(first, last or 0) > latest:
        raise Beyond(max(first, last or 0), latest)
    return Span(first, latest if last is None else last)


def settle(log: Log[R], question: Question, *, most: int) -> Span:
    """The range that a question means, all of which is there; raises :class:`Gap` if it is not."""
    span = meant(log, question.first, question.last)
    if span.last - span.first > most:
        raise Unanswerable("to", f"{span.last - span.first} offsets are refused: one request may span {most}")
    earliest = log.earliest()
    if span.first < min(earliest, span.last):
        raise Gap(span.first, earliest)
    return span


class Portion(NamedTuple):
    """Those records of one group commit that lie in a range."""

    #: The offset of the first one; the others follow without a gap.
    first: int
    records: list[Any]


def portions(log: Log[R], kind: type[R], span: Span) -> Iterator[list[R]]:
    """The records of a range with their offsets, a group commit at a time.

    Raises :class:`Gap` where retention was faster, and what :func:`decoded` does.
    """
    for portion in decoded(log.groups(span.first, span.last), kind, span):
        for place, record in enumerate(portion.records, portion.first):
            record.offset = place
        yield portion.records


def decoded(groups: Iterable[Group], kind: type[msgspec.Struct], span: Span) -> Iterator[Portion]:
    """The records of a range, a group commit at a time; raises :class:`Damaged` where they cannot be read.

    They are of any type that reads the arrays of the stream; nobody sets their offsets.
    """
    decoder = msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]  # mypy wants a type that stands there
    for group in groups:
        try:
            records: list[Any] = decoder.decode(group.blob)
        except msgspec.DecodeError as problem:
            raise Damaged(f"the records from offset {group.first_offset} on cannot be read: {problem}") from None
        if len(records) != group.records:
            raise Damaged(
                f"there should be {group.records} records from offset {group.first_offset} on, not {len(records)}"
            )
        begin = max(0, span.first - group.first_offset)
        yield Portion(group.first_offset + begin, records[begin : span.last - group.first_offset])
