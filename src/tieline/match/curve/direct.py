"""Whole curves as tables, at the low orders that routing uses: one look-up gives the key of a cell.

At most 65,536 cells, hence 2-D up to order 8, 3-D up to 5, 4-D up to 4: two tables of 128 KiB, built when a curve is
first asked for and shared by everybody who uses it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

from tieline.match.curve.states import check, states

#: Bits of a key that has a table.
MAX_DIRECT_BITS: Final = 16


class Direct(NamedTuple):
    """One curve.  A cell is numbered by its places, axis 0 highest: ``(x, y)`` is ``x << order | y``."""

    #: number of the cell -> key
    keys: Sequence[int]
    #: key -> number of the cell
    cells: Sequence[int]


def is_direct(dimensions: int, order: int) -> bool:
    """Whether the curve is small enough for a table."""
    return order * dimensions <= MAX_DIRECT_BITS


@cache
def direct(dimensions: int, order: int) -> Direct:
    """The tables of a small curve."""
    check(dimensions, order)
    if not is_direct(dimensions, order):
        raise ValueError(
            f"a direct table has keys of at most {MAX_DIRECT_BITS} bits: not {order} * {dimensions} = "
            f"{order * dimensions}"
        )
    corners = states(dimensions).corners
    mask = (1 << dimensions) - 1
    digits = range(1 << dimensions)
    rows, cells = [0], [0]
    for level in range(order - 1, -1, -1):
        # What a corner adds to the number of the cell: the bit of each axis, at this level of that axis's place.
        weights = [sum((corner >> axis & 1) << axis * order + level for axis in range(dimensions)) for corner in digits]
        entries = [corners[row | digit] for row in rows for digit in digits]
        rows = [entry & ~mask for entry in entries]
        cells = [cell + weights[entry & mask] for cell, entry in zip(_each(cells, len(digits)), entries, strict=True)]
    keys = [0] * len(cells)
    for key, cell in enumerate(cells):
        keys[cell] = key
    return Direct(_packed(keys), _packed(cells))


def _each(values: Iterable[int], times: int) -> Iterable[int]:
    """Every value so many times in a row."""
    return (value for value in values for _ in range(times))


def _packed(values: list[int]) -> Sequence[int]:
    return bytes(values) if len(values) <= 256 else array("H", values)
