"""What a reader asks for: a range of a stream, some topics, a condition, some columns; or why that makes no sense."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args  # Any: the stream decides what its records are

import msgspec

from tieline.conf.filters import flaw
from tieline.log.record import Occurrence, Record
from tieline.match.where import ExpressionError, Predicate, parse
from tieline.net.store.reading import Gap, Group, Log
from tieline.net.store.schema import Damaged

Stream = Literal["log", "events"]
STREAMS: Final[tuple[Stream, ...]] = get_args(Stream)

#: Topic filters of one request; one that needs more wants a filter with a wildcard.
MOST_TOPICS: Final = 100
#: Offsets are 64-bit, and positive.
MOST_OFFSET: Final = 2**63 - 1

_STATEFUL: Final = re.compile(r"\b(?:changed|delta)\s*\(", re.IGNORECASE)


class Unanswerable(ValueError):
    """A request that cannot be meant as it stands: which rule it breaks, in a sentence, and in which column."""

    def __init__(self, rule: str, text: str, column: int | None = None) -> None:
        super().__init__(text)
        self.rule = rule
        self.text = text
        #: Of the expression, counted from 1; None where there is no expression.
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request that was understood."""

    stream: Stream = "log"
    #: The first offset asked for, and the one behind the last; None for whatever is the latest by then.
    first: int = 0
    last: int | None = None
    #: Filters of which one has to match; none at all for every topic.
    topics: tuple[str, ...] = ()
    where: Predicate | None = None
    #: Names of columns, in their order; None for all.
    columns: tuple[str, ...] | None = None


def offset(rule: str, text: str) -> int:
    """An offset as a text."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MOST_OFFSET:
        raise Unanswerable(rule, f'{rule} = "{text}" is refused: an offset is a whole number from 0 up')
    return int(text)


def stream(text: str) -> Stream:
    """The name of a stream."""
    for name in STREAMS:
        if text == name:
            return name
    raise Unanswerable("stream", f'stream = "{text}" is refused: the streams are {" and ".join(STREAMS)}')


def topics(filters: Sequence[str]) -> tuple[str, ...]:
    """Topic filters, as somebody would subscribe to them."""
    if len(filters) > MOST_TOPICS:
        raise Unanswerable("topics", f"{len(filters)} topic filters are refused: at most {MOST_TOPICS} are taken")
    for each in filters:
        if problem := flaw(each):
            raise Unanswerable("topics", problem)
        if each.startswith(("$share/", "$where/")):
            raise Unanswerable("topics", f'"{each}" is a subscription: name the topic filter alone')
    return tuple(dict.fromkeys(filters))


def where(text: str) -> Predicate:
    """A condition, as somebody would subscribe with it."""
    try:
        predicate = parse(text)
    except ExpressionError as problem:
        raise Unanswerable("where", str(problem), problem.column) from None
    if predicate.watched:
        # The answer must not depend on how a reader cuts the log into ranges, and "delivered last" would.
        found = _STATEFUL.search(text)
        raise Unanswerable(
            "where",
            "changed() and delta() compare with what a subscriber was sent before, which a range of the log has not",
            found.start() + 1 if found else 1,
        )
    return predicate


R = TypeVar("R", Record, Occurrence)


class Beyond(Exception):
    """Offsets were asked for that no record has yet."""

    def __init__(self, asked: int, latest: int) -> None:
        super().__init__(f"offset {asked} lies beyond the end of the stream: the next record will get {latest}")
        self.asked = asked
        self.latest = latest


class OffsetSpan(NamedTuple):
    """The offsets from ``first`` up to, and without, ``last``: all of them are in the log."""

    first: int
    last: int


def meant(log: Log[R], first: int, last: int | None) -> OffsetSpan:
    """A range that ends, if not said otherwise, where the stream ends now; raises :class:`Beyond` for a later end."""
    latest = log.latest()
    if last is not None and last < first:
        raise Unanswerable("to", f"to = {last} is refused: it lies before from = {first}")
    if max(first, last or 0) > latest:
        raise Beyond(max(first, last or 0), latest)
    return OffsetSpan(first, latest if last is None else last)


def settle(log: Log[R], question: Question, *, most: int) -> OffsetSpan:
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


def portions(log: Log[R], kind: type[R], span: OffsetSpan) -> Iterator[list[R]]:
    """The records of a range with their offsets, a group commit at a time.

    Raises :class:`Gap` where retention was faster, and what :func:`decoded` does.
    """
    for portion in decoded(log.groups(span.first, span.last), kind, span):
        for place, record in enumerate(portion.records, portion.first):
            record.offset = place
        yield portion.records


def decoded(groups: Iterable[Group], kind: type[msgspec.Struct], span: OffsetSpan) -> Iterator[Portion]:
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
