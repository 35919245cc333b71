"""A box of cells as intervals of keys: exact, or at most so many.

An exact answer grows with the surface of the box: some tens of intervals in two dimensions, thousands in four.  Whoever
takes boxes from strangers therefore says how many intervals it wants; the answer then covers more than the box, and
costs no more than the number asked for justifies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest

from tieline.match.curve.capped import cover
from tieline.match.curve.descent import Cube, corners, grid

#: Intervals of keys with both ends inside, ascending, never touching each other.
Ranges = list[tuple[int, int]]


def ranges(lo: Sequence[int], hi: Sequence[int], order: int, most: int | None = None) -> Ranges:
    """The intervals of the keys of all cells from ``lo`` to ``hi``, both inside.

    With ``most``, no more intervals than that, which hold every key of the box and perhaps others: those of the
    smallest gaps, and, for a box with a large surface, some between cells that were not looked at one by one.
    """
    if most is not None:
        return cap(cover(lo, hi, order, most), most)
    whole = grid(lo, hi, order)
    if whole is None:
        return [(0, (1 << order * len(lo)) - 1)]
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in _pieces(whole, 0):
        if lasts and lasts[-1] == first - 1:
            lasts[-1] = last
        else:
            firsts.append(first)
            lasts.append(last)
    return list(zip(firsts, lasts, strict=True))


def cap(ranges: Ranges, most: int) -> Ranges:
    """At most so many intervals: those with the smallest gaps between them become one, whatever lies in the gap."""
    if most < 1:
        raise ValueError(f"a box has at least one interval, so at least 1 can be asked for, not {most}")
    if len(ranges) <= most:
        return list(ranges)
    gaps = range(1, len(ranges))
    kept = sorted(nlargest(most - 1, gaps, key=lambda at: ranges[at][0] - ranges[at - 1][1]))
    begins = [0, *kept]
    ends = [*kept, len(ranges)]
    return [(ranges[begin][0], ranges[end - 1][1]) for begin, end in zip(begins, ends, strict=True)]


def _pieces(cube: Cube, base: int) -> Iterator[tuple[int, int]]:
    """The cubes inside the box, as intervals in the order of the curve."""
    width = cube.level * len(cube.lo)
    for step, inner in corners(cube):
        first = base + (step << width)
        if inner is None:
            yield first, first + (1 << width) - 1
        else:
            yield from _pieces(inner, first)
