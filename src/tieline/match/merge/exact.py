"""Merging without an error: fewer boxes, exactly the same points.

The union of two boxes is a box if one covers the other, or if they agree on all attributes but one and meet or touch
there.  Touching is exact: values are float64, so ``[1, below(2)]`` and ``[2, 3]`` have no number between them.  Such
pairs are joined until there are none.  That need not be the least number of boxes, which is hard to find.
"""

from __future__ import annotations

from collections.abc import Iterable

from tieline.match.box import Box, above
from tieline.match.cover.shelf import IndexFactory, Shelf

#: An interval.
_Side = tuple[float, float]


def maximal(boxes: Iterable[Box], make_index: IndexFactory | None = None) -> list[Box]:
    """The boxes that no other one covers; of equal ones the first, and no empty ones."""
    distinct = [box for box in dict.fromkeys(boxes) if not box.is_empty]
    shelf = Shelf(make_index, is_mirrored=False)
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
