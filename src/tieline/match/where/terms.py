"""Terms: what an expression says, once it no longer matters how it was spelled.

Four kinds of leaf, each about one attribute, joined by ``Not``, ``And`` and ``Or``.  ``=``, ``!=``, ``in`` and
``not in`` are all a :class:`OneOf` or its negation; ``<`` and its like, and chains of two, are all a :class:`Range`.

Ranges of numbers become closed intervals here and nowhere else, so that there is one place that says where a comparison
begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from tieline.match.box import GREATEST, LEAST, above, below

#: What an attribute can be: numbers and times, categories, truth values.
Value: TypeAlias = float | str | bool


class End(NamedTuple):
    """One end of a range."""

    value: float | str
    is_open: bool


class Range(Struct, frozen=True):
    """``low < name <= high``, either end open or closed, or not there at all; both ends are of one kind."""

    name: str
    low: End | None
    high: End | None


class OneOf(Struct, frozen=True):
    """``name = value``, or ``name in (…)``: the values are all of one kind, no two the same, at least one."""

    name: str
    values: tuple[Value, ...]


class Changed(Struct, frozen=True):
    """``changed(name)``: not the value that was delivered last."""

    name: str


class Delta(Struct, frozen=True):
    """``delta(name) > distance``, or ``>=`` when closed: so far from the value that was delivered last."""

    name: str
    distance: float
    is_open: bool


class Not(Struct, frozen=True):
    """What is within does not hold."""

    term: Term


class And(Struct, frozen=True):
    """All of them hold; at least two, and none of them an ``And``."""

    terms: tuple[Term, ...]


class Or(Struct, frozen=True):
    """One of them holds; at least two, and none of them an ``Or``."""

    terms: tuple[Term, ...]


Leaf: TypeAlias = Range | OneOf | Changed | Delta
Term: TypeAlias = Leaf | Not | And | Or


def negation(term: Term) -> Term:
    """The opposite of a term; the opposite of an opposite is the term itself, in Kleene's logic too."""
    return term.term if isinstance(term, Not) else Not(term)


def conjunction(terms: Sequence[Term]) -> Term:
    """All of these, without an ``And`` directly inside another."""
    flat = tuple(part for term in terms for part in (term.terms if isinstance(term, And) else (term,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(terms: Sequence[Term]) -> Term:
    """One of these, without an ``Or`` directly inside another."""
    flat = tuple(part for term in terms for part in (term.terms if isinstance(term, Or) else (term,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def leaves(term: Term) -> Iterator[Leaf]:
    """The leaves from left to right."""
    if isinstance(term, Not):
        yield from leaves(term.term)
    elif isinstance(term, And | Or):
        for part in term.terms:
            yield from leaves(part)
    else:
        yield term


Interval: TypeAlias = tuple[float, float]

#: Every value that is there.
PRESENT: Final[Interval] = (LEAST, GREATEST)


def closed(term: Range) -> Interval | None:
    """The numbers of a range, an empty interval where there are none; None when its ends are not numbers."""
    low, high = PRESENT
    if term.low is not None:
        if isinstance(term.low.value, str):
            return None
        low = above(term.low.value) if term.low.is_open else term.low.value
    if term.high is not None:
        if isinstance(term.high.value, str):
            return None
        high = below(term.high.value) if term.high.is_open else term.high.value
    return low, high


def complement(intervals: Iterable[Interval]) -> list[Interval]:
    """Every value that is there and in none of the intervals; they are disjoint, in order, and none is empty."""
    gaps: list[Interval] = []
    start = LEAST
    for low, high in intervals:
        if start < low:
            gaps.append((start, below(low)))
        start = above(high)
    if start <= GREATEST:
        gaps.append((start, GREATEST))
    return gaps
