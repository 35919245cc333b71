"""The curve cell by cell: the state machine that draws it, from a cell to its key and back, and small curves as tables.

Theory of operation
-------------------
Halve a cube of the grid along every axis.  The curve walks through its ``2**d`` corners (one bit per axis, axis 0 the
highest) in the order of a Gray code that was reflected and rotated: it begins at corner ``entry`` and ends at the one
that differs from it along the axis ``direction``.  Inside each corner it does the same again, with another pair (entry,
direction) that makes the pieces join.  These pairs are the states; Hamilton's form of Butz's algorithm (Compact Hilbert
indices, CS-2006-07, Dalhousie University) says what follows on what.  Entries always have an even number of ones,
hence d * 2**(d - 1) states: 1, 4, 12, 32, 80 and 192 for one to six dimensions.

A key is then read off a table: per level, the state and the corner give a digit of d bits and the next state.  At the
highest level the corners go in the plain order of the Gray code, which in two dimensions is the curve of the textbooks:
from the lower left by the upper left and the upper right to the lower right.

Whole curves are tables at the low orders that routing uses, where one look-up gives the key of a cell: at most 65,536
cells, hence 2-D up to order 8, 3-D up to 5, 4-D up to 4.  That is two tables of 128 KiB, built when a curve is first
asked for and shared by everybody who uses it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

#: As far as tables of states are small.
MAX_DIMENSIONS: Final = 6
#: A key is a non-negative integer of 64 bits with a sign, in every language that may read one.
MAX_BITS: Final = 63


class States(NamedTuple):
    """The tables for one number of dimensions.

    An entry is ``row | digit``: a row begins at a multiple of ``2**dimensions``, so the entry for the next level stands
    at ``row | corner`` without an addition or a multiplication.
    """

    dimensions: int
    #: ``row | corner`` -> next row | digit
    digits: array[int]
    #: ``row | digit`` -> next row | corner
    corners: array[int]
    #: The row to start in after k levels of zeros is ``starts[k % dimensions]``; ``starts[0]`` is 0.  So a key may be
    #: computed with more levels than its cell has, and still is the same key.
    starts: tuple[int, ...]


def check(dimensions: int, order: int) -> None:
    """Refuse a grid that the curve cannot fill."""
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise ValueError(f"the curve has 1 to {MAX_DIMENSIONS} dimensions, not {dimensions}")
    if order < 1:
        raise ValueError(f"the order of a curve is at least 1, not {order}")
    if order * dimensions > MAX_BITS:
        raise ValueError(
            f"a key has order * dimensions bits, at most {MAX_BITS}: not {order} * {dimensions} = {order * dimensions}"
        )


@cache
def states(dimensions: int) -> States:
    """The tables for 1 to 6 dimensions, built when they are first asked for."""
    check(dimensions, 1)
    corners_per_row = 1 << dimensions
    first = (0, dimensions - 1)
    rows = {first: 0}
    found = [first]
    digits = array("H")
    corners = array("H")
    for entry, direction in found:  # grows while it is read, until no state is new
        digits.extend([0] * corners_per_row)
        corners.extend([0] * corners_per_row)
        row = rows[entry, direction]
        for digit in range(corners_per_row):
            corner = _rotate(_gray(digit), direction + 1, dimensions) ^ entry
            after = (
                entry ^ _rotate(_entry(digit), direction + 1, dimensions),
                (direction + _direction(digit, dimensions) + 1) % dimensions,
            )
            if after not in rows:
                rows[after] = len(found) << dimensions
                found.append(after)
            digits[row | corner] = rows[after] | digit
            corners[row | digit] = rows[after] | corner
    # The first corner of a state without reflection is 0, and the state in it is the next rotation.
    starts = tuple(rows[0, (dimensions - 1 - zeros) % dimensions] for zeros in range(dimensions))
    return States(dimensions, digits, corners, starts)


def _gray(number: int) -> int:
    return number ^ number >> 1


def _rotate(bits: int, by: int, width: int) -> int:
    """Rotate to the left."""
    by %= width
    return (bits << by | bits >> (width - by)) & ((1 << width) - 1)


def _entry(digit: int) -> int:
    """Where the curve enters the corner that it visits at this step, seen from the state (Hamilton, theorem 2.10)."""
    return _gray((digit - 1) // 2 * 2) if digit else 0


def _direction(digit: int, dimensions: int) -> int:
    """Along which axis it leaves that corner, seen from the state (Hamilton, lemma 2.8)."""
    if digit == 0:
        return 0
    odd = digit if digit % 2 else digit - 1
    trailing_ones = (~odd & odd + 1).bit_length() - 1
    return trailing_ones % dimensions


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
