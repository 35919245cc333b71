"""One step down the curve inside a box: a cube of the grid is cut into its corners, and those outside are dropped.

A cube is known by the level of its corners, the row of its state, and the box within it, in places that count from the
cube's own lower corner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tieline.match.curve.states import check, states


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
