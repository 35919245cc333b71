"""Boxes of cells, and what is true of them by brute force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from hypothesis import strategies as st

from tieline.match.curve import Ranges, key

#: Orders at which all cells of a grid can be looked at, by dimensions.
SMALL_ORDERS = {1: 8, 2: 4, 3: 3, 4: 2, 5: 2, 6: 1}


class Cells(NamedTuple):
    """A box of cells in a grid."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    order: int

    def each(self) -> Iterable[tuple[int, ...]]:
        return product(*(range(least, most + 1) for least, most in zip(self.lo, self.hi, strict=True)))


@st.composite
def boxes(draw: st.DrawFn, orders: dict[int, int] | None = None) -> Cells:
    orders = orders or SMALL_ORDERS
    dimensions = draw(st.sampled_from(sorted(orders)))
    order = draw(st.integers(1, orders[dimensions]))
    sides = [sorted(draw(st.tuples(*[st.integers(0, (1 << order) - 1)] * 2))) for _ in range(dimensions)]
    return Cells(tuple(side[0] for side in sides), tuple(side[1] for side in sides), order)


def joined(keys: Iterable[int]) -> Ranges:
    """Keys as intervals, one key at a time."""
    found: list[list[int]] = []
    for place in sorted(keys):
        if found and found[-1][1] == place - 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return [(first, last) for first, last in found]


def brute(box: Cells) -> Ranges:
    """The intervals of a box, by the key of each of its cells."""
    return joined(key(cell, box.order) for cell in box.each())


def size(ranges: Ranges) -> int:
    """How many keys intervals hold."""
    return sum(last - first + 1 for first, last in ranges)


def holds(outer: Ranges, inner: Ranges) -> bool:
    """Whether every key of one list is in another."""
    return all(any(first <= a and b <= last for first, last in outer) for a, b in inner)


def is_tidy(ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether intervals ascend without touching."""
    return all(first <= last for first, last in ranges) and all(
        left[1] + 1 < right[0] for left, right in pairwise(ranges)
    )
