"""What a reader asks for: a range of a stream, some topics, a condition, some columns; or why that makes no sense."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from tieline.conf.filters import flaw
from tieline.match.where import ExpressionError, Predicate, parse

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
