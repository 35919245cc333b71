"""The arrays of a hierarchical bitmap, shared by the code in numpy and the code that is compiled.

Theory of operation
-------------------
A box lives in a *slot*.  64 slots are a word, 64 words a *chunk*.  An attribute has 64 buckets, and each bucket of each
attribute is a *column*: for every slot it has a bit that says whether the box overlaps the bucket.  The bits of a
chunk lie together, column after column.  A *summary* has one bit per word: whether any of its 64 bits is set.

A point has one bucket in every attribute.  The AND of those columns' summaries leaves few words, the AND of these words
few slots, and an exact comparison decides.  This skips nearly everything if boxes that are close to each other are in
slots that are close to each other; see :mod:`tieline.match.index.build`.

The comparison: a box is kept as its *corners*, the lower ends and then the upper ends with their sign changed.  One box
covers another exactly if none of its corners is greater.  A point is a box without extent, so matching and covering
are the same question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias  # Any: arrays of every type grow alike

import numpy as np
from numpy.typing import NDArray

from tieline.match.index.buckets import BOUNDARIES, BUCKETS
from tieline.match.index.protocol import Boxes

Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.int32]

#: Slots of a word, words of a chunk, slots of a chunk.
WORD: Final = 64
CHUNK_WORDS: Final = 64
CHUNK: Final = WORD * CHUNK_WORDS
#: No slot, no id.
NONE: Final = -1


class SlotTable:
    """Boxes in slots, and the bitmap over them."""

    def __init__(self, bounds: Floats, chunks: int, ids: int) -> None:
        dimensions = len(bounds)
        assert bounds.shape == (dimensions, BOUNDARIES)
        columns = dimensions * BUCKETS
        #: Boundaries by attribute.
        self.bounds = bounds
        #: By column and chunk: which words are not zero.
        self.summary: Words = np.zeros((columns, chunks), np.uint64)
        #: By chunk, column and word: which boxes overlap the bucket.
        self.words: Words = np.zeros((chunks, columns, CHUNK_WORDS), np.uint64)
        #: By slot: the box.  What is in an empty slot is of no account, for it has no bit.
        self.corners: Floats = np.zeros((chunks * CHUNK, 2 * dimensions), np.float64)
        #: By slot: whose box it is, or NONE.
        self.ids: Places = np.zeros(chunks * CHUNK, np.int32)
        #: By slot: the next slot of the same id, or the next empty slot below ``used``; NONE at the end.
        self.links: Places = np.zeros(chunks * CHUNK, np.int32)
        #: By id: its first slot, or NONE.
        self.heads: Places = np.full(ids, NONE, np.int32)
        #: Slots from here on were never used; they have no bits, and nothing else in them has a meaning.
        self.used = 0
        #: The first empty slot below ``used``.
        self.free = NONE

    @property
    def dimensions(self) -> int:
        return len(self.bounds)

    @property
    def chunks(self) -> int:
        """Chunks that may contain something."""
        return -(-self.used // CHUNK)

    def take(self, id: int) -> int:
        """An empty slot for a box of an id, linked to its others; it has neither bits nor corners yet."""
        slot = self.free
        if slot == NONE:
            slot = self.used
            if slot == len(self.ids):
                self._grow_slots()
            self.used += 1
        else:
            self.free = int(self.links[slot])
        if id >= len(self.heads):
            self._grow_ids(id)
        self.ids[slot] = id
        self.links[slot] = self.heads[id]
        self.heads[id] = slot
        return slot

    def slots(self, id: int) -> list[int]:
        """The slots of an id."""
        slots = []
        slot = int(self.heads[id]) if id < len(self.heads) else NONE
        while slot != NONE:
            slots.append(slot)
            slot = int(self.links[slot])
        return slots

    def give_back(self, id: int, slots: list[int]) -> None:
        """All slots of an id are empty from now on."""
        for slot in slots:
            self.ids[slot] = NONE
            self.links[slot] = self.free
            self.free = slot
        self.heads[id] = NONE

    def count_ids(self) -> int:
        """Ids that have a box."""
        return int(np.count_nonzero(self.heads != NONE))

    def snapshot(self) -> Callable[[], Boxes]:
        """A copy of everything, made now; what it takes to make boxes out of it is done when that is called."""
        return partial(_unpacked, self.ids[: self.used].copy(), self.corners[: self.used].copy())

    def memory(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.bounds, self.summary, self.words, self.corners, self.ids, self.links, self.heads)
        return sum(array.nbytes for array in arrays)

    def _grow_slots(self) -> None:
        """Room for more chunks.

        Large arrays are moved by the kernel without being copied when they are resized in place, so growing by an
        eighth costs little more than doubling would, and wastes less.
        """
        before = len(self.words)
        chunks = before + max(1, before // 8)
        columns = self.summary.shape[0]
        summary = np.zeros((columns, chunks), np.uint64)
        summary[:, :before] = self.summary
        self.summary = summary
        _resize(self.words, (chunks, columns, CHUNK_WORDS))
        _resize(self.corners, (chunks * CHUNK, self.corners.shape[1]))
        for places in (self.ids, self.links):
            _resize(places, (chunks * CHUNK,))

    def _grow_ids(self, id: int) -> None:
        before = len(self.heads)
        _resize(self.heads, (max(id + 1, before + before // 4, 1024),))
        self.heads[before:] = NONE


def _unpacked(ids: Places, corners: Floats) -> Boxes:
    """The boxes in slots that are not empty."""
    live = ids != NONE
    if not live.all():
        ids, corners = ids[live], corners[live]
    lo, hi = np.hsplit(corners, 2)
    return Boxes(ids, lo, -hi)


def _resize(array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Make an array larger where it is; new elements are 0.  Nobody keeps a view of a table's arrays."""
    array.resize(shape, refcheck=False)
