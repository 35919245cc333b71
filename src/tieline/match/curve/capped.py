"""A box as few intervals of keys, found without looking at all of its surface.

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
from collections.abc import Sequence
from heapq import nlargest
from itertools import pairwise
from typing import Final, NamedTuple

from tieline.match.curve.descent import Cube, corners, grid

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
