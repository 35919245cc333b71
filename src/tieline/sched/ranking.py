"""Things in the order of a key, of which any may lose its place at any time.

A heap cannot give up an item in its middle, so a place carries the stamp that its thing had when it was placed, and
whoever moves the thing gives it another stamp.  Void places are passed over at the top and swept out before they
outnumber the valid ones, so a ranking never takes more than about twice what stands in it, whatever came and went.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Generic, Protocol, TypeVar

#: Where a thing stands; smaller goes first.
Key = tuple[float, ...]

#: Void places that are not worth sweeping out.
SLACK: Final = 32


class Stamped(Protocol):
    """What can stand in rankings."""

    #: The stamp of its valid places; no two things share one, and 0 stands nowhere.
    stamp: int


T = TypeVar("T", bound=Stamped)


class Ranking(Generic[T]):
    """Places by key; ``valid`` of them hold a thing that still stands there."""

    __slots__ = ("_heap", "valid")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, T]] = []
        self.valid = 0

    def __repr__(self) -> str:
        return f"<Ranking of {self.valid} in {len(self._heap)} places>"

    def place(self, thing: T, key: Key) -> None:
        """Give a thing a place under its present stamp."""
        heappush(self._heap, (key, thing.stamp, thing))
        self.valid += 1

    def void(self) -> None:
        """A thing that stood here has another stamp now."""
        self.valid -= 1
        if len(self._heap) > 2 * self.valid + SLACK:
            self._heap = [place for place in self._heap if place[1] == place[2].stamp]
            heapify(self._heap)

    def top(self) -> tuple[Key, int, T] | None:
        """The valid place with the smallest key."""
        heap = self._heap
        while heap:
            place = heap[0]
            if place[1] == place[2].stamp:
                return place
            heappop(heap)
        return None
