"""An index over a table: what the code in numpy and the compiled code have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, Self

import numpy as np

from tieline.match.box import Box
from tieline.match.index.build import build
from tieline.match.index.protocol import NO_BOXES, Boxes, check_box
from tieline.match.index.slot_table import NONE, Counts, Floats

#: Points that are answered together.
PORTION: Final = 256
#: Changes are cheap up to a point: boxes that came after the table was built, in slots wherever there was room, and
#: slots that are empty.  From then on, a table in order is worth the time to build it, unless it is small anyway.
_MOST_UNORDERED: Final = 0.15
_MOST_EMPTY: Final = 0.25
_MATTERS_FROM: Final = 20_000
_MATTERS_NEVER: Final = 1_000


class BitmapIndex(ABC):
    """A hierarchical bitmap; how bits are set and searched is up to those who inherit."""

    def __init__(self, dimensions: int, boxes: Boxes = NO_BOXES) -> None:
        self.dimensions = dimensions
        self._table = build(boxes, dimensions)
        self._size = self._table.used
        #: Boxes of an id beyond its first.
        self._repeats = self._size - self._table.count_ids()
        #: Boxes that came later.
        self._unordered = 0
        #: The question that is being answered: corners of a box, or of a point.
        self._buffer = bytearray(16 * dimensions)
        self._question: Floats = np.frombuffer(self._buffer, np.float64)
        # Much cheaper than assigning a list to an array.
        self._pack_point = Struct(f"{dimensions}d").pack_into
        self._pack = Struct(f"{2 * dimensions}d").pack_into

    @classmethod
    def from_boxes(cls, boxes: Boxes, dimensions: int) -> Self:
        """An index that holds these boxes."""
        return cls(dimensions, boxes)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._size} boxes, {self.dimensions} dimensions>"

    @property
    def is_worn(self) -> bool:
        """Whether building the table anew would make it faster or smaller."""
        used = self._table.used
        if used < _MATTERS_FROM:
            # Buckets that were cut for far fewer boxes may fit these badly.
            return self._unordered > max(_MATTERS_NEVER, used // 2)
        return self._unordered > _MOST_UNORDERED * self._size or used - self._size > _MOST_EMPTY * used

    def add(self, id: int, box: Box) -> None:
        check_box(id, box, self.dimensions)
        table = self._table
        slot = table.take(id)
        self._pack(self._buffer, 0, *box.lo, *[-hi for hi in box.hi])
        self._enter(slot)
        self._repeats += int(table.links[slot]) != NONE
        self._size += 1
        self._unordered += 1

    def remove(self, id: int) -> None:
        slots = self._table.slots(id) if id >= 0 else ()
        if not slots:
            raise KeyError(id)
        for slot in slots:
            self._leave(slot)
        self._table.give_back(id, slots)
        self._size -= len(slots)
        self._repeats -= len(slots) - 1

    @abstractmethod
    def match(self, row: Sequence[float]) -> list[int]: ...

    def coverers(self, box: Box) -> list[int]:
        self._pack(self._buffer, 0, *box.lo, *[-hi for hi in box.hi])
        return self._find()

    def match_batch(self, rows: Sequence[Sequence[float]]) -> tuple[list[int], list[int]]:
        points = np.asarray(rows, np.float64).reshape(len(rows), self.dimensions)
        questions = np.hstack((points, -points))
        offsets, ids = [0], list[int]()
        for begin in range(0, len(questions), PORTION):
            counts, found = self._find_all(questions[begin : begin + PORTION])
            offsets += (np.cumsum(counts) + len(ids)).tolist()
            ids += found
        return offsets, ids

    def snapshot(self) -> Callable[[], Boxes]:
        return self._table.snapshot()

    def memory(self) -> int:
        return self._table.memory()

    @abstractmethod
    def _enter(self, slot: int) -> None:
        """Put the box in question into a slot."""

    @abstractmethod
    def _leave(self, slot: int) -> None:
        """Take the bits of a slot's box away."""

    @abstractmethod
    def _find(self) -> list[int]:
        """The ids with a box that covers the box in question."""

    @abstractmethod
    def _find_all(self, questions: Floats) -> tuple[Counts, list[int]]:
        """For each of several questions, the number of such ids, and then the ids of all."""
