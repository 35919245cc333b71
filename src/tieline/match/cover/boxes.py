"""The boxes of one event type under one topic filter: which of them cover a box, which are covered by it.

Theory of operation
-------------------
Covering boxes are what an index answers by itself.  Covered ones it answers through a mirror: ``y`` lies in ``x``
exactly if the point ``(x.lo, x.hi)``, of twice as many numbers, lies in the box ``[-inf, y.lo] x [y.hi, inf]``.  So the
mirror of a box is a box, the question is a point, and any index serves both purposes; the mirror is kept only if
somebody needs it.  A point may hold no -inf, so the least number stands for it; what that blurs is asked again exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from tieline.match.box import ANY, LEAST, Box


class BoxIndex(Protocol):
    """What is asked of an index of boxes; those of ``tieline.match.index`` answer it."""

    def add(self, id: int, box: Box) -> None: ...

    def remove(self, id: int) -> None: ...

    def match(self, row: Sequence[float]) -> list[int]: ...

    def coverers(self, box: Box) -> list[int]: ...


#: Makes an empty index for boxes of so many attributes.
IndexFactory = Callable[[int], BoxIndex]

#: Boxes that are compared one by one before an index is worth its memory: most filters have no more.
SCAN_TO: Final = 32


class BoxSet:
    """Boxes by key, with both questions of covering.

    ``make_index`` is asked for an index when there are many boxes; without it they are always compared one by one.
    """

    __slots__ = ("_boxes", "_free", "_index", "_is_mirrored", "_keys", "_make_index", "_mirror", "_slots")

    def __init__(self, make_index: IndexFactory | None, *, is_mirrored: bool) -> None:
        self._make_index = make_index
        self._is_mirrored = is_mirrored
        self._boxes: dict[int, Box] = {}
        #: None while the boxes are few.
        self._index: BoxIndex | None = None
        #: None while there is no index, or if nobody will ask what a box covers.
        self._mirror: BoxIndex | None = None
        # Keys may be any numbers; an index wants small ones that are used again.
        #: The id under which the indexes know each key.
        self._slots: dict[int, int] = {}
        #: The other way round; stale where the id is free.
        self._keys: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._boxes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._boxes)

    def add(self, key: int, box: Box) -> None:
        self._boxes[key] = box
        if self._index is not None:
            self._enter(self._index, key, box)
        elif self._make_index is not None and len(self._boxes) > SCAN_TO:
            self._index = self._make_index(len(box.lo))
            if self._is_mirrored:
                self._mirror = self._make_index(2 * len(box.lo))
            for known, one in self._boxes.items():
                self._enter(self._index, known, one)

    def remove(self, key: int) -> None:
        del self._boxes[key]
        if self._index is None:
            return
        slot = self._slots.pop(key)
        self._free.append(slot)
        self._index.remove(slot)
        if self._mirror is not None:
            self._mirror.remove(slot)

    def coverers(self, box: Box) -> list[int]:
        """The keys of the boxes that cover one."""
        if self._index is None:
            return [key for key, candidate in self._boxes.items() if candidate.covers(box)]
        return [self._keys[slot] for slot in self._index.coverers(box)]

    def covered(self, box: Box) -> list[int]:
        """The keys of the boxes that one covers."""
        if self._mirror is None:
            return [key for key, candidate in self._boxes.items() if box.covers(candidate)]
        found = (self._keys[slot] for slot in self._mirror.match(_numbers(box.lo) + box.hi))
        return [key for key in found if box.covers(self._boxes[key])]

    def _enter(self, index: BoxIndex, key: int, box: Box) -> None:
        if self._free:
            slot = self._free.pop()
            self._keys[slot] = key
        else:
            slot = len(self._keys)
            self._keys.append(key)
        self._slots[key] = slot
        index.add(slot, box)
        if self._mirror is not None:
            ends = len(box.lo)
            self._mirror.add(slot, Box((ANY[0],) * ends + box.hi, _numbers(box.lo) + (ANY[1],) * ends))


def _numbers(bounds: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(max(bound, LEAST) for bound in bounds)
