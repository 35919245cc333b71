"""A box of cells as intervals of keys: exact, or at most so many.

An exact answer grows with the surface of the box: some tens of intervals in two dimensions, thousands in four.  Whoever
takes boxes from strangers therefore says how many intervals it wants; the answer then covers more than the box, and
costs no more than the number asked for justifies.

Both go down the curve inside the box: a cube of the grid is cut into its corners, and those outside are dropped.  A
cube is known by the level of its corners, the row of its state, and the box within it, in places that count from the
cube's own lower corner.

Theory of operation
-------------------
The grid is refined level by level.  What is known of the box is a list of pieces along the curve: settled ones, that
belong to the answer, and open ones, cubes that the box meets but does not fill.  An answer of ``most`` intervals keeps
the ``most - 1`` largest gaps between pieces and fills the others, so only cubes beside a gap that may come to be among
them, and those at the two ends, are worth opening.

Which gaps are these?  Every open cube of S cells holds a cell of the box.  So a gap grows by fewer than S cells at each
end, and where none is yet, at most 2(S - 1) cells can appear.  Let ``bar`` be the smallest of the ``most - 1`` largest
gaps known.  Once 2(S - 1) <= bar, no gap that is still unknown can matter, nor one that stays below the bar when it
grows by 2(S - 1): everything between two gaps that can is settled.  From there on a level costs a few cubes per gap.

Before, a level may have many cubes: a box with a large flat face has them by the thousand and hardly a gap among them.
When the open ones have more than ``WIDTH * most`` corners, only the largest gaps known so far are followed.  So a level
looks at WIDTH * most corners at most, and the answer then covers more than the best one of ``most`` intervals would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import Final, NamedTuple

from tieline.match.curve.keys import check, states


class Cube(NamedTuple):
    """A cube of ``2**(level + 1)`` places along each axis, which the box meets but does not fill."""

    level: int
    #: Of the table of corners.
    row: int
    lo: Sequence[int]
    hi: Sequence[int]


def grid(lo: Sequence[int], hi: Sequence[int], order: int) -> Cube | None:
    """The cube that is the whole grid; None if the box fills it."""
    check(len(lo), order)
    end = 1 << order
    for least, most in zip(lo, hi, strict=True):
        if not 0 <= least <= most < end:
            raise ValueError(f"a box has cells from 0 to {end - 1} in ascending order, not {least} to {most}")
    if not any(lo) and min(hi) == end - 1:
        return None
    return Cube(order - 1, 0, lo, hi)


def corners(cube: Cube) -> Iterator[tuple[int, Cube | None]]:
    """The corners that meet the box, in the order of the curve: (step, cube), without a cube if the box fills it."""
    level, row, lo, hi = cube
    dimensions = len(lo)
    table = states(dimensions).corners
    mask = (1 << dimensions) - 1
    half = 1 << level
    # One bit per axis.  A corner has a 1 where it is in the upper half.
    lower_meets = upper_meets = lower_is_full = upper_is_full = 0
    lower: list[tuple[int, int]] = []
    upper: list[tuple[int, int]] = []
    for least, most in zip(lo, hi, strict=True):
        lower_meets = lower_meets << 1 | (least < half)
        upper_meets = upper_meets << 1 | (most >= half)
        lower_is_full = lower_is_full << 1 | (least == 0 and most >= half - 1)
        upper_is_full = upper_is_full << 1 | (least <= half and most == half + half - 1)
        lower.append((least, most if most < half else half - 1))
        upper.append((least - half if least > half else 0, most - half))
    never, always = mask ^ upper_meets, mask ^ lower_meets
    axes = range(dimensions - 1, -1, -1)
    for step in range(mask + 1):
        entry = table[row | step]
        corner = entry & mask
        if corner & never or always & ~corner:
            continue
        if (corner & upper_is_full) | (~corner & lower_is_full) == mask:
            yield step, None
            continue
        ends = [(above if corner >> axis & 1 else below) for axis, below, above in zip(axes, lower, upper, strict=True)]
        yield step, Cube(level - 1, entry ^ corner, [end[0] for end in ends], [end[1] for end in ends])


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


#: Corners of open cubes on one level, per interval asked for, beyond which the search follows known gaps only: some
#: milliseconds of work for 16 intervals.
WIDTH: Final = 128


class _Piece(NamedTuple):
    """An interval of keys."""

    first: int
    last: int
    #: What may be opened; None if the piece is settled.
    cube: Cube | None


def cover(lo: Sequence[int], hi: Sequence[int], order: int, most: int) -> list[tuple[int, int]]:
    """Intervals that hold every key of the box; the ``most - 1`` largest gaps between them are worth keeping."""
    if most < 1:
        raise ValueError(f"a box has at least one interval, so at least 1 can be asked for, not {most}")
    whole = grid(lo, hi, order)
    pieces = [_Piece(0, (1 << order * len(lo)) - 1, whole)]
    for level in range(order, 0, -1):
        pieces = _refined(_worth_opening(pieces, (1 << level * len(lo)) - 1, most))
    return [(piece.first, piece.last) for piece in pieces]


def _worth_opening(pieces: list[_Piece], most_at_one_end: int, most: int) -> list[_Piece]:
    """The pieces with everything settled that cannot change the ``most - 1`` largest gaps, or would cost too much."""
    growth = 2 * most_at_one_end
    gaps = _gaps(pieces)
    largest = nlargest(most - 1, gaps)
    bar = math.inf if most == 1 else largest[-1] if len(largest) == most - 1 else 0
    if growth <= bar:
        pieces = _settled(pieces, [gap + growth > bar for gap in gaps])
    if sum(1 << len(piece.cube.lo) for piece in pieces if piece.cube) > WIDTH * most:
        gaps = _gaps(pieces)
        followed = set(nlargest(most - 1, range(len(gaps)), key=gaps.__getitem__))
        pieces = _settled(pieces, [at in followed for at in range(len(gaps))])
    return pieces


def _gaps(pieces: list[_Piece]) -> list[int]:
    """What lies between each piece and the next; often nothing."""
    return [right.first - left.last - 1 for left, right in pairwise(pieces)]


def _settled(pieces: list[_Piece], matters: list[bool]) -> list[_Piece]:
    """Settle what lies between two gaps that matter, but for the cubes right beside them.

    What lies before the first piece and behind the last one always matters: it is never filled.
    """
    kept: list[_Piece] = []
    for piece, before, after in zip(pieces, [True, *matters], [*matters, True], strict=True):
        if not before and kept[-1].last + 1 < piece.first:
            _append(kept, _Piece(kept[-1].last + 1, piece.first - 1, None))
        _append(kept, piece if before or after else piece._replace(cube=None))
    return kept


def _refined(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces one level further down."""
    found: list[_Piece] = []
    for piece in pieces:
        if piece.cube is None:
            _append(found, piece)
            continue
        width = piece.cube.level * len(piece.cube.lo)
        for step, inner in corners(piece.cube):
            first = piece.first + (step << width)
            _append(found, _Piece(first, first + (1 << width) - 1, inner))
    return found


def _append(found: list[_Piece], piece: _Piece) -> None:
    """Add a piece at the end; settled neighbours become one."""
    if found and found[-1].cube is None and piece.cube is None and found[-1].last == piece.first - 1:
        found[-1] = _Piece(found[-1].first, piece.last, None)
    else:
        found.append(piece)
