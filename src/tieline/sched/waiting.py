"""What waits: one queued entry with everything a policy may order by, its flow, and rankings of either.

A flow is what MQTT keeps in order: the messages of one publisher on one topic with one QoS ([MQTT-4.6.0-5],
[MQTT-4.6.0-6]).  Policies choose among flows, never inside one, so no policy can break that order.  When the level
varies inside a flow, an urgent message lifts the flow, and with it the predecessors that must go first.

A ranking is things in the order of a key, of which any may lose its place at any time.  A heap cannot give up an item
in its middle, so a place carries the stamp that its thing had when it was placed, and whoever moves the thing gives it
another stamp.  Void places are passed over at the top and swept out before they outnumber the valid ones, so a ranking
never takes more than about twice what stands in it, whatever came and went.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, Protocol, TypeVar

from tieline.sched.levels import LEVELS

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


E = TypeVar("E")

#: Most flows hold one entry, and the smallest deque takes 760 bytes: up to here a list is as good.
SHORT: Final = 32


class Waiting(Generic[E]):
    """One entry of a queue."""

    __slots__ = (
        "depth",
        "entry",
        "flow",
        "heat",
        "is_assured",
        "is_superseded",
        "level",
        "messages",
        "order",
        "since",
        "size",
        "stamp",
        "taxon",
    )

    # One is made for each message under congestion: everything is set at once, without a record in between.
    def __init__(
        self,
        entry: E,
        *,
        order: int,
        level: int,
        since: float,
        size: int,
        messages: int = 1,
        flow: Hashable = None,
        heat: float = 0,
        depth: int = 0,
        is_assured: bool = False,
        taxon: int | None = None,
    ) -> None:
        self.entry = entry
        #: Position in the order of arrival; unique in one queue, and rising from one push to the next.
        self.order = order
        self.level = level
        #: The level that topic rules alone give: what the taxonomy of the paper's comparison goes by.
        self.taxon = level if taxon is None else taxon
        #: When it arrived.
        self.since = since
        self.size = size
        self.messages = messages
        self.flow = flow
        #: How wanted its topic is, and the number of the topic's levels.
        self.heat = heat
        self.depth = depth
        #: QoS 1 or 2: needs a place in the in-flight window, and is not dropped to make room.
        self.is_assured = is_assured
        #: A newer entry of its flow waits behind it; kept only where a class coalesces.
        self.is_superseded = False
        #: Its valid place among those that may be dropped; 0 while it has none.
        self.stamp = 0

    def __repr__(self) -> str:
        return f"<Waiting #{self.order} level {self.level} {self.size} B>"


class Flow(Generic[E]):
    """Entries that must keep their order; the head is what can be sent.

    It is served at the highest level among its first ``reach`` entries.
    """

    __slots__ = ("_counts", "entries", "group", "key", "level", "reach", "stamp")

    def __init__(self, key: Hashable, first: Waiting[E], reach: int) -> None:
        self.key = key
        self.reach = reach
        self.entries: list[Waiting[E]] | deque[Waiting[E]] = [first]
        #: How many entries within reach have each level.
        self._counts = [0] * LEVELS
        self._counts[first.level] = 1
        #: The level at which the flow is served.
        self.level = first.level
        #: With which flows it stands in the rankings, and which of its places there are valid.
        self.group = 0
        self.stamp = 0

    def __repr__(self) -> str:
        return f"<Flow {self.key!r} {len(self.entries)} at level {self.level}>"

    @property
    def head(self) -> Waiting[E]:
        """The entry that goes next; a flow without entries does not exist."""
        return self.entries[0]

    def append(self, waiting: Waiting[E]) -> None:
        """Let an entry wait behind all others of its flow."""
        entries = self.entries
        entries.append(waiting)
        if len(entries) <= self.reach:
            self._counts[waiting.level] += 1
            if waiting.level > self.level:
                self.level = waiting.level
        if len(entries) == SHORT:
            self.entries = deque(entries)

    def put_back(self, waiting: Waiting[E]) -> None:
        """The entry that was the head is the head again."""
        self._insert(0, waiting)

    def restore(self, waiting: Waiting[E]) -> None:
        """An entry returns to its place in the order of arrival."""
        self._insert(bisect_left(self.entries, waiting.order, key=_order), waiting)

    def _insert(self, index: int, waiting: Waiting[E]) -> None:
        self.entries.insert(index, waiting)
        if index < self.reach:
            self._counts[waiting.level] += 1
            if len(self.entries) > self.reach:
                self._counts[self.entries[self.reach].level] -= 1
            self._find_level()

    def remove(self, waiting: Waiting[E]) -> None:
        """An entry leaves: the head, or a victim, which stands elsewhere only behind the head."""
        entries = self.entries
        index = 0
        if entries[0] is not waiting:
            # the last one, except where levels vary inside the flow
            index = len(entries) - 1
            if entries[index] is not waiting:
                index = bisect_left(entries, waiting.order, key=_order)
        del entries[index]
        if index < self.reach:
            self._counts[waiting.level] -= 1
            if len(entries) >= self.reach:
                self._counts[entries[self.reach - 1].level] += 1
            self._find_level()

    def _find_level(self) -> None:
        counts = self._counts
        level = LEVELS - 1
        while level and not counts[level]:
            level -= 1
        self.level = level


def _order(waiting: Waiting[E]) -> int:
    return waiting.order
