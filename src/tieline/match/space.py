"""The space of an event type's attributes as a grid: which cell a point lies in, and which cells a box needs.

Theory of operation
-------------------
Each attribute has declared bounds, cut into ``2**order`` cells of equal width: the cell of a value is
``floor((value - low) / (high - low) * 2**order)``, and a value beyond a bound belongs to the outermost cell on that
side.  A missing value is beyond every bound (``MISSING`` is +inf), so it belongs to the last cell, and the interval of
an attribute without a condition, which alone admits it, reaches that cell too.

The function never decreases, and points and the ends of boxes go through the same one.  Hence what everything built on
it may rely on: *the cells of a box hold the cell of every point in the box*, whatever the bounds and however the
numbers round.  The reverse does not hold: a cell says where to look, and only the box says who is meant.

The quotient comes before the product: a product with a power of two is exact, so a value that is a whole number of
cells above the lower bound begins a cell, without an error of rounding on either side.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from tieline.match.box import Box, below
from tieline.match.curve import Ranges, key, ranges
from tieline.match.curve.keys import check, direct, is_direct

Cell = tuple[int, ...]

#: Numbers have 53 significant bits; with one less, the number of the last cell is still exact among them.
MAX_ORDER: Final = 52


class Space:
    """The grid of one to six attributes with declared bounds, and the curve through it.

    ``bounds`` are (low, high) for each attribute, ``order`` the bits of a place along each axis.
    """

    __slots__ = ("_axes", "bounds", "dimensions", "order")

    def __init__(self, bounds: Sequence[tuple[float, float]], order: int) -> None:
        check(len(bounds), order)
        if order > MAX_ORDER:
            raise ValueError(f"a place has at most {MAX_ORDER} bits, because a number has not many more: not {order}")
        for low, high in bounds:
            if not (low < high and math.isfinite(high - low)):
                raise ValueError(f"bounds are two numbers, the lower one first, not {low} and {high}")
        self.bounds = tuple((float(low), float(high)) for low, high in bounds)
        self.dimensions = len(bounds)
        self.order = order
        #: (low, width) of each attribute
        self._axes = tuple((low, high - low) for low, high in self.bounds)

    def __repr__(self) -> str:
        return f"Space({list(self.bounds)}, order={self.order})"

    def cells(self, point: Sequence[float]) -> Cell:
        """The cell of a point."""
        return tuple(self._places(point))

    def key(self, point: Sequence[float]) -> int:
        """The key of a point's cell."""
        order = self.order
        if not is_direct(self.dimensions, order):
            return key(self.cells(point), order)
        number = 0
        for place in self._places(point):
            number = number << order | place
        return direct(self.dimensions, order).keys[number]

    def box_cells(self, box: Box) -> tuple[Cell, Cell]:
        """The lowest and the highest cell of a box: it needs those, and all between them."""
        return self.cells(box.lo), self.cells(box.hi)

    def box_ranges(self, box: Box, most: int | None = None) -> Ranges:
        """The intervals of keys that a box needs; with ``most``, no more than that, which may hold further keys."""
        if box.is_empty:
            return []
        return ranges(*self.box_cells(box), self.order, most)

    def cell_box(self, cell: Sequence[int]) -> Box:
        """Exactly the points of a cell: a point lies in the box if and only if this is its cell.

        The outermost cells are endless.  Bounds so near each other that there are fewer numbers than cells make some
        boxes empty.
        """
        end = 1 << self.order
        if len(cell) != self.dimensions or not all(0 <= place < end for place in cell):
            raise ValueError(f"a cell of this space has {self.dimensions} places from 0 to {end - 1}, not {cell}")
        return Box(
            tuple(self._begin(axis, place) for axis, place in enumerate(cell)),
            tuple(
                math.inf if place == end - 1 else below(self._begin(axis, place + 1)) for axis, place in enumerate(cell)
            ),
        )

    def _places(self, point: Sequence[float]) -> Iterator[int]:
        end = 1 << self.order
        for value, (low, width) in zip(point, self._axes, strict=True):
            part = (value - low) / width
            # The last branch is also that of NaN, which compares with nothing: it counts as missing.
            yield 0 if part < 0.0 else int(part * end) if part < 1.0 else end - 1

    def _begin(self, axis: int, place: int) -> float:
        """The least number in a cell or one above it, by bisection over all numbers: rounding makes its own edges."""
        if place == 0:
            return -math.inf
        low, width = self._axes[axis]
        end = 1 << self.order
        before, at = _rank(low), _rank(self.bounds[axis][1])
        while at - before > 1:
            middle = (before + at) // 2
            part = (_number(middle) - low) / width
            if part >= 1.0 or int(part * end) >= place:
                at = middle
            else:
                before = middle
        return _number(at)


def _rank(number: float) -> int:
    """Finite numbers and infinities counted through in their order: neighbours differ by one."""
    bits = int(struct.unpack("<q", struct.pack("<d", number))[0])
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _number(rank: int) -> float:
    """The reverse of :func:`_rank`."""
    return float(math.copysign(struct.unpack("<d", struct.pack("<q", abs(rank)))[0], rank))
