"""The ring paper's merge: all boxes of one event type become their minimum bounding rectangle, ``S_aug``.

It is kept to be compared with.  Its error is unbounded: around the zones that the paper's own example asks for lies the
zone where the grid is 95 % of the time, and the rectangle announces that one too (tests/match/merge/test_zones.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tieline.match.box import Box


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
