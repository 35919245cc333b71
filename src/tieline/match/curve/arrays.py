"""Keys and cells for whole arrays, some tens of nanoseconds each.

Theory of operation
-------------------
The bits of a cell are first interleaved, so that each level is one digit of d bits; a table spreads a run of bits at
once.  Then the state machine walks over the digits, several levels in one step: the tables of :mod:`states` composed
with themselves as often as a table that stays in the processor's cache allows.  When the steps do not divide the order,
the first one begins with levels of zeros, from the start that makes up for them.

Points are taken in blocks, so that what is between two steps stays in the cache too.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final  # Any: cells and keys come as integers of any width

import numpy as np
from numpy.typing import NDArray

from tieline.match.curve.keys import check, states

Integers = NDArray[np.int64]

#: Points in a block.
_BLOCK: Final = 8192
#: Levels that one step may take, for 1 to 6 dimensions: 1,024 to 12,288 entries in a table.
_LEVELS: Final = (12, 5, 3, 2, 1, 1)
#: Bits that a spreading table takes at once.
_SPREAD: Final = 11


def keys(cells: NDArray[Any], order: int) -> NDArray[np.uint64]:
    """The key of every row of an array of cells, ``cells[point, axis]``."""
    if cells.ndim != 2:
        raise ValueError(f"cells are an array of points by axes, not of {cells.ndim} dimensions")
    count, dimensions = cells.shape
    check(dimensions, order)
    _check_values(cells, 1 << order, "cell")
    found = np.empty(count, np.uint64)
    for begin in range(0, count, _BLOCK):
        axes = cells[begin : begin + _BLOCK].T.astype(np.int64, order="C")
        found[begin : begin + _BLOCK] = _keys(axes, order)
    return found


def cells(keys: NDArray[Any], dimensions: int, order: int) -> Integers:
    """The cell of every key, ``cells[point, axis]``."""
    if keys.ndim != 1:
        raise ValueError(f"keys are an array of one dimension, not of {keys.ndim}")
    check(dimensions, order)
    _check_values(keys, 1 << order * dimensions, "key")
    found = np.empty((len(keys), dimensions), np.int64)
    for begin in range(0, len(keys), _BLOCK):
        block = keys[begin : begin + _BLOCK].astype(np.int64)
        _cells(block, found[begin : begin + _BLOCK], order)
    return found


def _check_values(values: NDArray[Any], end: int, what: str) -> None:
    if values.dtype.kind not in "iu":
        raise TypeError(f"a {what} is made of integers, not {values.dtype}")
    if values.size and not (values.min() >= 0 and values.max() < end):
        raise ValueError(f"a {what} lies outside the grid: expected 0 to {end - 1}")


def _keys(axes: Integers, order: int) -> Integers:
    """The keys of a block, given by axes."""
    dimensions = len(axes)
    levels, steps = _plan(dimensions, order)
    interleaved = _interleave(axes, order)
    table, start = _digits(dimensions, levels), _start(dimensions, order, levels, steps)
    width = levels * dimensions
    mask = (1 << width) - 1
    found = np.zeros(axes.shape[1], np.int64)
    row: Integers | int = start
    for step in reversed(range(steps)):
        entry = table[(interleaved >> step * width & mask) | row]
        digit = entry & mask
        row = entry ^ digit
        found = found << width | digit
    return found


def _cells(block: Integers, into: Integers, order: int) -> None:
    """Write the cells of a block of keys into an array of points by axes."""
    dimensions = into.shape[1]
    levels, steps = _plan(dimensions, order)
    table, start = _corners(dimensions, levels), _start(dimensions, order, levels, steps)
    compact = _compacting(dimensions, levels)
    width = levels * dimensions
    mask = (1 << width) - 1
    axes = np.zeros((dimensions, len(block)), np.int64)
    row: Integers | int = start
    for step in reversed(range(steps)):
        entry = table[(block >> step * width & mask) | row]
        corner = entry & mask
        row = entry ^ corner
        for axis, values in enumerate(axes):
            values <<= levels
            values |= compact[corner >> dimensions - 1 - axis]
    into[:] = axes.T


def _interleave(axes: Integers, order: int) -> Integers:
    """The bits of all axes, level by level, those of axis 0 highest within each."""
    dimensions = len(axes)
    spread = _spreading(dimensions)
    found = np.zeros(axes.shape[1], np.int64)
    for values in axes:
        found <<= 1
        found |= spread[values & (1 << _SPREAD) - 1]
        for shift in range(_SPREAD, order, _SPREAD):
            found |= spread[values >> shift & (1 << _SPREAD) - 1] << shift * dimensions
    return found


def _plan(dimensions: int, order: int) -> tuple[int, int]:
    """Levels per step, and steps: as few steps as the largest table allows, and no more levels than they need."""
    steps = -(-order // _LEVELS[dimensions - 1])
    return -(-order // steps), steps


def _start(dimensions: int, order: int, levels: int, steps: int) -> int:
    """The row of a composed table to begin in, so that the levels of zeros above the cell have no effect."""
    row = states(dimensions).starts[(levels * steps - order) % dimensions]
    return row >> dimensions << levels * dimensions


@cache
def _digits(dimensions: int, levels: int) -> Integers:
    """The table from corners to digits for several levels in one step."""
    return _composed(np.array(states(dimensions).digits, np.int64), dimensions, levels)


@cache
def _corners(dimensions: int, levels: int) -> Integers:
    """The table from digits to corners for several levels in one step."""
    return _composed(np.array(states(dimensions).corners, np.int64), dimensions, levels)


def _composed(single: Integers, dimensions: int, levels: int) -> Integers:
    """A table of one level applied ``levels`` times; its rows are numbered alike, but wider."""
    single_mask = (1 << dimensions) - 1
    count = len(single) >> dimensions
    inputs = np.arange(1 << levels * dimensions, dtype=np.int64)
    row = np.repeat(np.arange(count, dtype=np.int64) << dimensions, len(inputs))
    inputs = np.tile(inputs, count)
    output = np.zeros(len(inputs), np.int64)
    for level in reversed(range(levels)):
        entry = single[inputs >> level * dimensions & single_mask | row]
        output = output << dimensions | entry & single_mask
        row = entry & ~single_mask
    return row >> dimensions << levels * dimensions | output


@cache
def _spreading(dimensions: int) -> Integers:
    """Numbers with their bits moved apart, ``dimensions`` places from one to the next."""
    numbers = np.arange(1 << _SPREAD, dtype=np.int64)
    found = np.zeros(len(numbers), np.int64)
    for bit in range(min(_SPREAD, 63 // dimensions)):
        found |= (numbers >> bit & 1) << bit * dimensions
    return found


@cache
def _compacting(dimensions: int, levels: int) -> Integers:
    """The reverse for a step's corners: every ``dimensions``-th bit, moved together."""
    numbers = np.arange(1 << levels * dimensions, dtype=np.int64)
    found = np.zeros(len(numbers), np.int64)
    for bit in range(levels):
        found |= (numbers >> bit * dimensions & 1) << bit
    return found
