"""The key of one cell, and the cell of one key: the state machine walked level by level."""

from __future__ import annotations

from collections.abc import Sequence

from tieline.match.curve.states import check, states


def key(cell: Sequence[int], order: int) -> int:
    """The place of a cell on the curve of this order: 0 to ``2**(order * dimensions) - 1``."""
    dimensions = len(cell)
    check(dimensions, order)
    end = 1 << order
    for place in cell:
        if not 0 <= place < end:
            raise ValueError(f"a cell lies outside the grid: expected 0 to {end - 1}, not {place}")
    digits = states(dimensions).digits
    mask = (1 << dimensions) - 1
    row = found = 0
    for level in range(order - 1, -1, -1):
        corner = 0
        for place in cell:
            corner = corner << 1 | place >> level & 1
        entry = digits[row | corner]
        digit = entry & mask
        row = entry ^ digit
        found = found << dimensions | digit
    return found


def cell(key: int, dimensions: int, order: int) -> tuple[int, ...]:
    """The cell at a place of the curve of this order; the reverse of :func:`key`."""
    check(dimensions, order)
    if not 0 <= key < 1 << order * dimensions:
        raise ValueError(f"a key lies outside the grid: expected 0 to {(1 << order * dimensions) - 1}, not {key}")
    corners = states(dimensions).corners
    mask = (1 << dimensions) - 1
    axes = range(dimensions - 1, -1, -1)
    places = [0] * dimensions
    row = 0
    for shift in range((order - 1) * dimensions, -1, -dimensions):
        entry = corners[row | key >> shift & mask]
        row = entry & ~mask
        places = [place << 1 | entry >> axis & 1 for place, axis in zip(places, axes, strict=True)]
    return tuple(places)
