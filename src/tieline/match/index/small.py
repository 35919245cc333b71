"""An index for thousands of boxes at most, in Python alone.

Theory of operation
-------------------
Each attribute is cut into buckets.  For a bucket, a *column* is a Python integer whose bit ``s`` says that the box in
slot ``s`` overlaps that bucket; the AND of one column per attribute leaves the candidates of a *cell*.  Columns are
made when they are first asked for, out of two families of integers that cost little to keep: which boxes start in a
bucket, and which end in it.

Events of real devices are found in few cells, so the candidates of a cell are remembered.  Those that contain the whole
cell need no further look; for the others only the intervals that end inside it are compared.  Any change forgets what
was remembered.  With very few boxes there are no boundaries yet, and the only cell is a plain list of everything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from math import inf
from sys import getsizeof
from typing import Any, NamedTuple  # Any: rows are Python numbers or an array of numpy

from tieline.match.box import Box
from tieline.match.index.buckets import boundaries
from tieline.match.index.protocol import Boxes, check_box

#: Buckets of an attribute; fewer than in the large indexes, so that events meet the same cells again.
_BUCKETS = 32
#: Up to so many boxes there is one cell, and no bitmap.
_PLAIN = 32
#: The remembered cells, and the candidates in them; when there are more, all are forgotten.
_MOST_CELLS, _MOST_CANDIDATES = 4096, 65_536


class _Cell(NamedTuple):
    """What a point in a cell may match."""

    #: Ids whose box contains the whole cell.
    sure: list[int]
    #: Id, attribute and interval, where one comparison decides.
    close: list[tuple[int, int, float, float]]
    #: Id and box, where several do.
    far: list[tuple[int, Box]]
    #: Whether an id occurs more than once.
    repeats: bool


class SmallIndex:
    """Boxes as bits of Python integers, with a memory for cells."""

    #: It keeps itself in order.
    is_worn = False

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        #: By slot, in the order of arrival; ids of forgotten boxes are -1.
        self._ids: list[int] = []
        self._boxes: list[Box] = []
        #: The slots of an id.
        self._slots: dict[int, list[int]] = {}
        #: The bits of the boxes that are not forgotten.
        self._alive = 0
        self._size = 0
        self._cells: dict[tuple[int, ...], _Cell] = {}
        #: The candidates in all remembered cells.
        self._candidates = 0
        #: Whether a column may be known.
        self._is_asked = False
        #: By attribute and bucket: the boxes that overlap it, or None if that is not known at present.
        self._columns: list[list[int | None]] = []
        self._arrange()

    @classmethod
    def from_boxes(cls, boxes: Boxes, dimensions: int) -> SmallIndex:
        """An index that holds these boxes."""
        index = cls(dimensions)
        for id, lo, hi in zip(*map(_plain, boxes), strict=True):
            index.add(id, Box(tuple(lo), tuple(hi)))
        return index

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<SmallIndex {self._size} boxes, {self.dimensions} dimensions, {len(self._cells)} cells remembered>"

    # -- changes

    def add(self, id: int, box: Box) -> None:
        check_box(id, box, self.dimensions)
        if len(self._ids) >= self._limit:
            self._arrange()
        slot = len(self._ids)
        self._ids.append(id)
        self._boxes.append(box)
        self._slots.setdefault(id, []).append(slot)
        self._alive |= 1 << slot
        self._size += 1
        self._enter(slot, box)
        self._forget()

    def remove(self, id: int) -> None:
        for slot in self._slots.pop(id):
            self._ids[slot] = -1
            self._alive ^= 1 << slot
            self._size -= 1
        self._forget()

    def _enter(self, slot: int, box: Box) -> None:
        bit = 1 << slot
        for bounds, starts, ends, lo, hi in zip(self._bounds, self._starts, self._ends, box.lo, box.hi, strict=True):
            # An interval without a bound starts before the first bucket and ends after the last: it has no end in any.
            starts[bisect_right(bounds, lo) if lo > -inf else -1] |= bit
            ends[bisect_right(bounds, hi) if hi < inf else -1] |= bit

    def _forget(self) -> None:
        if self._is_asked:
            self._cells.clear()
            self._candidates = 0
            self._columns = self._no_columns()
            self._is_asked = False

    def _arrange(self) -> None:
        """Close the gaps, and cut the buckets for the boxes that are there now."""
        kept = [(id, box) for id, box in zip(self._ids, self._boxes, strict=True) if id >= 0]
        self._ids = [id for id, _ in kept]
        self._boxes = [box for _, box in kept]
        self._alive = (1 << len(kept)) - 1
        #: Slots up to which the buckets are good enough.
        self._limit = max(_PLAIN, 2 * len(kept))
        self._bounds: list[list[float]] = [[] for _ in range(self.dimensions)]
        if len(kept) >= _PLAIN:
            for attribute in range(self.dimensions):
                ends = chain.from_iterable((box.lo[attribute], box.hi[attribute]) for box in self._boxes)
                self._bounds[attribute] = boundaries(ends, _BUCKETS)
        #: By attribute and bucket: the boxes whose interval starts there, and those whose interval ends there.  One
        #: place more, at the end, is for those that do so nowhere.
        self._starts = [[0] * (len(bounds) + 2) for bounds in self._bounds]
        self._ends = [[0] * (len(bounds) + 2) for bounds in self._bounds]
        self._columns = self._no_columns()
        self._slots = {}
        for slot, (id, box) in enumerate(kept):
            self._slots.setdefault(id, []).append(slot)
            self._enter(slot, box)
        self._cells.clear()
        self._candidates = 0
        self._is_asked = False

    def _no_columns(self) -> list[list[int | None]]:
        return [[None] * (len(bounds) + 1) for bounds in self._bounds]

    # -- questions

    def match(self, row: Sequence[float]) -> list[int]:
        place = tuple(map(bisect_right, self._bounds, row))
        sure, close, far, repeats = self._cells.get(place) or self._remember(place)
        found = sure.copy()
        if close:
            found += [id for id, attribute, lo, hi in close if lo <= row[attribute] <= hi]
        for id, box in far:
            for lo, value, hi in zip(box.lo, row, box.hi):  # noqa: B905 - costs more than the comparison
                if not lo <= value <= hi:
                    break
            else:
                found.append(id)
        return list(set(found)) if repeats else found

    def match_batch(self, rows: Sequence[Sequence[float]]) -> tuple[list[int], list[int]]:
        offsets, ids = [0], list[int]()
        for row in rows:
            ids += self.match(row)
            offsets.append(len(ids))
        return offsets, ids

    def coverers(self, box: Box) -> list[int]:
        candidates = self._overlapping(map(bisect_right, self._bounds, box.lo))
        candidates &= self._overlapping(map(bisect_right, self._bounds, box.hi))
        return list({self._ids[slot] for slot in _bits(candidates) if self._boxes[slot].covers(box)})

    def snapshot(self) -> Callable[[], Boxes]:
        return partial(_unpacked, self._ids.copy(), self._boxes.copy())

    def memory(self) -> int:
        floats = 2 * self.dimensions * getsizeof(0.0)
        box = getsizeof(Box((), ())) + 2 * getsizeof((0.0,) * self.dimensions) + floats
        columns = [column for family in (self._starts, self._ends, self._columns) for row in family for column in row]
        slots = getsizeof(self._slots) + len(self._slots) * getsizeof([0])
        return (
            len(self._boxes) * box
            + getsizeof(self._ids)
            + getsizeof(self._boxes)
            + slots
            + sum(map(getsizeof, columns))
            + getsizeof(self._cells)
            + self._candidates * getsizeof((0, 0, 0.0, 0.0))
        )

    # -- cells

    def _remember(self, place: tuple[int, ...]) -> _Cell:
        """Work out a cell, and keep it."""
        candidates = self._overlapping(place)
        # A box that overlaps a bucket and has no end in it contains it.
        inside = [
            (starts[bucket] | ends[bucket]) & candidates
            for starts, ends, bucket in zip(self._starts, self._ends, place, strict=True)
        ]
        once = twice = 0
        for ending in inside:
            twice |= once & ending
            once |= ending
        ids, boxes = self._ids, self._boxes
        sure = [ids[slot] for slot in _bits(candidates & ~once)]
        close = [
            (ids[slot], attribute, boxes[slot].lo[attribute], boxes[slot].hi[attribute])
            for attribute, ending in enumerate(inside)
            for slot in _bits(ending & ~twice)
        ]
        far = [(ids[slot], boxes[slot]) for slot in _bits(twice)]
        seen = {*sure, *(each[0] for each in close), *(id for id, _ in far)}
        size = len(sure) + len(close) + len(far)
        cell = _Cell(sure, close, far, repeats=len(seen) < size)
        if len(self._cells) >= _MOST_CELLS or self._candidates + size > _MOST_CANDIDATES:
            self._cells.clear()
            self._candidates = 0
        self._cells[place] = cell
        self._candidates += size
        return cell

    def _overlapping(self, place: Iterable[int]) -> int:
        """The bits of the boxes that overlap a cell."""
        candidates = self._alive
        for attribute, bucket in enumerate(place):
            column = self._columns[attribute][bucket]
            if column is None:
                column = self._column(attribute, bucket)
            candidates &= column
        return candidates

    def _column(self, attribute: int, bucket: int) -> int:
        """The boxes that start no later than in a bucket, and end no earlier."""
        self._is_asked = True
        started, ended = self._starts[attribute][-1], 0
        for starts in self._starts[attribute][: bucket + 1]:
            started |= starts
        for ends in self._ends[attribute][:bucket]:
            ended |= ends
        column = started & ~ended
        self._columns[attribute][bucket] = column
        return column


#: Splitting off a bit copies the integer; looking for a digit in a string does not, but first there must be a string.
_FEW = 16


def _bits(bits: int) -> list[int]:
    """The places of the bits that are set."""
    places = []
    if bits.bit_count() < _FEW:
        while bits:
            lowest = bits & -bits
            places.append(lowest.bit_length() - 1)
            bits ^= lowest
        return places
    digits = bin(bits)[:1:-1]
    place = digits.find("1")
    while place >= 0:
        places.append(place)
        place = digits.find("1", place + 1)
    return places


def _unpacked(ids: list[int], boxes: list[Box]) -> Boxes:
    """The boxes that are not forgotten."""
    kept = [(id, box) for id, box in zip(ids, boxes, strict=True) if id >= 0]
    return Boxes([id for id, _ in kept], [box.lo for _, box in kept], [box.hi for _, box in kept])


def _plain(rows: Any) -> Any:
    """Python numbers, if these belong to numpy."""
    return rows.tolist() if hasattr(rows, "tolist") else rows
