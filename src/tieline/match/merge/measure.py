"""How much of all events a box takes: by volume of the declared space, or by a sample of events.

Volume believes that events are spread evenly, which they are not: a grid is in its normal zone nearly always, whatever
the size of that zone.  A sample of events knows.  Both are measures in the mathematical sense, additive over disjoint
boxes; the bound on false positives in :mod:`tieline.match.merge.budget` rests on that and on nothing else.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

from tieline.match.box import Box

#: Events of a sample, at most: it costs so many bits for every event and attribute.
MAX_SAMPLE: Final = 4_096
#: Where an interval begins and ends as a share of its attribute, both 0 to 1.
Side = tuple[float, float]


class Measure(Protocol):
    """A share of all events."""

    def share(self, box: Box) -> float:
        """The share of all events that lie in a box, 0 to 1; an empty box has none."""

    def sides(self, box: Box) -> list[Side]:
        """Where a box lies along each attribute."""


class Volume:
    """The share of the declared space; what lies outside of it has none."""

    def __init__(self, bounds: Sequence[tuple[float, float]]) -> None:
        self._bounds = tuple(bounds)

    def share(self, box: Box) -> float:
        return math.prod(max(0.0, end - begin) for begin, end in self.sides(box))

    def sides(self, box: Box) -> list[Side]:
        return [
            ((min(max(lo, low), high) - low) / (high - low), (min(max(hi, low), high) - low) / (high - low))
            for lo, hi, (low, high) in zip(box.lo, box.hi, self._bounds, strict=True)
        ]


class Sample:
    """The share of some events that happened."""

    def __init__(self, rows: Sequence[Sequence[float]]) -> None:
        if not 0 < len(rows) <= MAX_SAMPLE:
            raise ValueError(f"a sample has 1 to {MAX_SAMPLE} events, not {len(rows)}")
        self._size = len(rows)
        #: Per attribute the values in order.
        self._values: list[list[float]] = []
        #: Per attribute and number of values, the rows that have the first so many values, as bits.
        self._firsts: list[list[int]] = []
        for column in zip(*rows, strict=True):
            ranked = sorted(range(self._size), key=column.__getitem__)
            firsts = [0]
            for row in ranked:
                firsts.append(firsts[-1] | 1 << row)
            self._values.append([column[row] for row in ranked])
            self._firsts.append(firsts)

    def share(self, box: Box) -> float:
        inside = -1
        for lo, hi, values, firsts in zip(box.lo, box.hi, self._values, self._firsts, strict=True):
            inside &= firsts[bisect_right(values, hi)] & ~firsts[bisect_left(values, lo)]
        return inside.bit_count() / self._size if self._values else 1.0

    def sides(self, box: Box) -> list[Side]:
        return [
            (bisect_left(values, lo) / self._size, bisect_right(values, hi) / self._size)
            for lo, hi, values in zip(box.lo, box.hi, self._values, strict=True)
        ]
