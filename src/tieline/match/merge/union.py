"""The union of boxes: as fewer boxes with exactly the same points, or as the one rectangle around all of them.

The union of two boxes is a box if one covers the other, or if they agree on all attributes but one and meet or touch
there.  Touching is exact: values are float64, so ``[1, below(2)]`` and ``[2, 3]`` have no number between them.  Such
pairs are joined until there are none.  That need not be the least number of boxes, which is hard to find.

The rectangle is the ring paper's merge, ``S_aug``, and is kept to be compared with.  Its error is unbounded: around the
zones that the paper's own example asks for lies the zone where the grid is 95 % of the time, and the rectangle
announces that one too (tests/match/merge/test_zones.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tieline.match.box import Box, above
from tieline.match.cover.boxes import BoxSet, IndexFactory

#: An interval.
_Side = tuple[float, float]


def maximal(boxes: Iterable[Box], make_index: IndexFactory | None = None) -> list[Box]:
    """The boxes that no other one covers; of equal ones the first, and no empty ones."""
    distinct = [box for box in dict.fromkeys(boxes) if not box.is_empty]
    shelf = BoxSet(make_index, is_mirrored=False)
    for key, box in enumerate(distinct):
        shelf.add(key, box)
    # Every box covers itself.
    return [box for box in distinct if len(shelf.coverers(box)) == 1]


def merge(boxes: Iterable[Box], make_index: IndexFactory | None = None) -> list[Box]:
    """Boxes with exactly the same points, none of which covers or could be joined with another."""
    kept = maximal(boxes, make_index)
    while True:
        before = len(kept)
        for axis in range(len(kept[0].lo) if kept else 0):
            kept = _joined(kept, axis)
        if len(kept) == before:
            return kept
        # A box that has just grown may cover one that was beside it.
        kept = maximal(kept, make_index)


def _joined(boxes: list[Box], axis: int) -> list[Box]:
    """Boxes that differ in one attribute only, joined where they meet or touch."""
    rows: dict[tuple[_Side, ...], list[_Side]] = {}
    for box in boxes:
        sides = list(zip(box.lo, box.hi, strict=True))
        rows.setdefault((*sides[:axis], *sides[axis + 1 :]), []).append(sides[axis])
    found: list[Box] = []
    for others, row in rows.items():
        for side in _runs(row):
            sides = [*others[:axis], side, *others[axis:]]
            found.append(Box(tuple(lo for lo, _ in sides), tuple(hi for _, hi in sides)))
    return found


def _runs(sides: list[_Side]) -> list[_Side]:
    """Intervals with nothing between them made one."""
    runs: list[_Side] = []
    for lo, hi in sorted(sides):
        if runs and lo <= above(runs[-1][1]):
            runs[-1] = (runs[-1][0], max(runs[-1][1], hi))
        else:
            runs.append((lo, hi))
    return runs


def bounding(boxes: Iterable[Box]) -> Box:
    """The least box that covers all boxes, of which there must be one."""
    los, his = zip(*boxes, strict=True)
    return Box(tuple(map(min, zip(*los, strict=True))), tuple(map(max, zip(*his, strict=True))))


class Augmented:
    """One rectangle per event type, and when it has to be announced again."""

    def __init__(self) -> None:
        #: The boxes of each type, with how often each is held; no type is empty.
        self._boxes: dict[str, Counter[Box]] = {}
        #: The least box around the boxes of each type.
        self._around: dict[str, Box] = {}

    def get(self, event: str) -> Box | None:
        """What is announced of a type; None if nobody is interested."""
        return self._around.get(event)

    def add(self, event: str, box: Box) -> bool:
        """One more box; whether ``S_aug`` grew.  A box inside is not announced."""
        self._boxes.setdefault(event, Counter())[box] += 1
        around = self._around.get(event)
        if around is not None and around.covers(box):
            return False
        self._around[event] = box if around is None else bounding((around, box))
        return True

    def remove(self, event: str, box: Box) -> bool:
        """One box less; whether ``S_aug`` shrank or vanished.  KeyError if there is no such box."""
        boxes = self._boxes[event]
        if not boxes[box]:
            raise KeyError(box)
        boxes[box] -= 1
        if boxes[box]:
            return False
        del boxes[box]
        if not boxes:
            del self._boxes[event], self._around[event]
            return True
        before, self._around[event] = self._around[event], bounding(boxes)
        return before != self._around[event]
