"""Ranges of numbers as closed intervals: the one place that says where a comparison begins and ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from tieline.match.box import GREATEST, LEAST, above, below
from tieline.match.where.terms import Range

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
