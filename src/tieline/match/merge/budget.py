"""Merging with a bounded error: the pair of boxes whose bounding box adds least becomes one, again and again.

Theory of operation
-------------------
Joining ``a`` and ``b`` into their bounding box ``m`` adds ``share(m) - share(a) - share(b) + share(a and b)`` of all
events: the false positives of that step.  What a box has added is the sum over the steps that made it, an upper bound,
because steps may add the same points twice or points that another box wants anyway.  So the sum over all boxes never
understates the false positives, and a budget for it is kept.

The best pair is at the top of a heap; pairs with a box that is gone are skipped when they come up.  All pairs of many
boxes would be too many: boxes are put in the order of the Hilbert curve through their centres, and each is paired with
``WINDOW`` neighbours on either side; up to ``WINDOW + 1`` boxes that is every pair.

How much of all events a box takes is measured by volume of the declared space, or by a sample of events.  Volume
believes that events are spread evenly, which they are not: a grid is in its normal zone nearly always, whatever the
size of that zone.  A sample of events knows.  Both are measures in the mathematical sense, additive over disjoint
boxes; the bound on false positives rests on that and on nothing else.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, NamedTuple, Protocol

from tieline.match.box import Box
from tieline.match.curve import key
from tieline.match.merge.union import bounding

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


#: Neighbours that a box is paired with on either side.
WINDOW: Final = 64
#: Cells per attribute of the curve that puts boxes in order, as a power of two, and the attributes it looks at.
_ORDER: Final = 5
_AXES: Final = 6


class Merged(NamedTuple):
    """Boxes that cover what was merged, and what they take in addition at most, as a share of all events."""

    boxes: list[Box]
    added: float


def at_most(boxes: Iterable[Box], most: int, measure: Measure) -> Merged:
    """No more boxes than asked for, whatever that adds."""
    if most < 1:
        raise ValueError(f"at least 1 box can be asked for, not {most}")
    pool = _Pool(boxes, measure)
    while len(pool) > most:
        pool.join(pool.best())
    return pool.merged()


def within(boxes: Iterable[Box], budget: float, measure: Measure) -> Merged:
    """As few boxes as greed finds while they add no more than a share of all events."""
    pool = _Pool(boxes, measure)
    while len(pool) > 1:
        pair = pool.best()
        if pool.added + pair.adds > budget:
            break
        pool.join(pair)
    return pool.merged()


class _Pair(NamedTuple):
    """Two boxes that may become one; the least is the best."""

    adds: float
    #: Boxes without volume add nothing, so the sum of the sides decides between them.
    margin: float
    one: int
    other: int


class _Pool:
    """Boxes on a line, and the pairs of near ones by what joining them adds."""

    def __init__(self, boxes: Iterable[Box], measure: Measure) -> None:
        self._measure = measure
        distinct = sorted(dict.fromkeys(box for box in boxes if not box.is_empty), key=self._place)
        self._boxes = dict(enumerate(distinct))
        self._shares = {id: measure.share(box) for id, box in self._boxes.items()}
        #: The ids of all boxes; a joined one stands where the first of its pair stood.
        self._line = list(self._boxes)
        self._ids = count(len(distinct))
        #: What all joins added at most.
        self.added = 0.0
        #: A heap.  The box that was joined last is paired with its neighbours, so there is a pair while there are two.
        self._pairs = [self._pair(id, other) for id in self._line for other in self._line[id + 1 : id + 1 + WINDOW]]
        heapify(self._pairs)

    def __len__(self) -> int:
        return len(self._boxes)

    def best(self) -> _Pair:
        """The pair that adds least; it stays where it is."""
        while True:
            pair = self._pairs[0]
            if pair.one in self._boxes and pair.other in self._boxes:
                return pair
            heappop(self._pairs)

    def join(self, pair: _Pair) -> None:
        """Make a pair one box."""
        id = next(self._ids)
        self._boxes[id] = bounding((self._boxes.pop(pair.one), self._boxes.pop(pair.other)))
        self._shares[id] = self._measure.share(self._boxes[id])
        self.added += pair.adds
        self._line.remove(pair.other)
        at = self._line.index(pair.one)
        self._line[at] = id
        for near in (*self._line[max(0, at - WINDOW) : at], *self._line[at + 1 : at + 1 + WINDOW]):
            heappush(self._pairs, self._pair(id, near))

    def merged(self) -> Merged:
        return Merged([self._boxes[id] for id in self._line], self.added)

    def _pair(self, one: int, other: int) -> _Pair:
        first, second = self._boxes[one], self._boxes[other]
        both = bounding((first, second))
        adds = self._measure.share(both) - self._shares[one] - self._shares[other]
        if first.meets(second):
            common = Box(tuple(map(max, first.lo, second.lo)), tuple(map(min, first.hi, second.hi)))
            adds += self._measure.share(common)
        # Rounding may make nothing a little less than nothing.
        return _Pair(max(0.0, adds), sum(end - begin for begin, end in self._measure.sides(both)), one, other)

    def _place(self, box: Box) -> int:
        """Where the centre of a box lies on the curve."""
        end = 1 << _ORDER
        sides = self._measure.sides(box)[:_AXES]
        return key([min(int((begin + until) / 2 * end), end - 1) for begin, until in sides], _ORDER) if sides else 0
