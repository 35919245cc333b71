"""Plans as one broker has to know them: for each topic of each origin, the link that leads to each destination.

Theory of operation
-------------------
A plan has an epoch, and every broker gets its own part of it before any origin goes by it.  An origin writes into each
frame by which epoch it travels, and hops look there; so while origins change from one plan to the next, each frame
still finds the plan that it began with.  For that the tables of a few epochs are kept.  Nothing depends on them: what
no table knows goes another way, and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tieline.overlay.frames.fields import BadFrame, Reader
from tieline.overlay.frames.frame import Planned
from tieline.overlay.frames.naming import parts_of
from tieline.overlay.frames.parcel import SAME_TOPIC, take_apart
from tieline.wire.frames import publish_head

#: Tables that are kept: of the plan in force, of two before it, and of one that is being installed.
MOST_EPOCHS: Final = 4


class PlanEntry(NamedTuple):
    """By which neighbour a topic of an origin goes to a destination; brokers are numbers of whoever has the table."""

    origin: int
    topic: int
    destination: int
    neighbour: int


class Own(NamedTuple):
    """A topic that is published here: its number in the plan, and of whom, where publishers have different ways."""

    topic: int
    name: bytes
    publisher: str | None


class PlanTable:
    """What one broker has to know of one plan."""

    __slots__ = ("_neighbours", "_of_publishers", "_topics", "entries", "epoch")

    def __init__(self, epoch: int, entries: Iterable[PlanEntry], own: Iterable[Own]) -> None:
        self.epoch = epoch
        #: By origin and topic, and then by destination.
        self._neighbours: dict[tuple[int, int], dict[int, int]] = {}
        self.entries = 0
        for origin, topic, destination, neighbour in entries:
            self._neighbours.setdefault((origin, topic), {})[destination] = neighbour
            self.entries += 1
        self._topics: dict[bytes, Planned] = {}
        self._of_publishers: dict[tuple[bytes, str], Planned] = {}
        for number, name, publisher in own:
            if publisher is None:
                self._topics[name] = Planned(epoch, number)
            else:
                self._of_publishers[name, publisher] = Planned(epoch, number)

    def neighbour(self, origin: int, topic: int, destination: int) -> int:
        """Where the way goes on; 0 if the plan does not say."""
        towards = self._neighbours.get((origin, topic))
        return 0 if towards is None else towards.get(destination, 0)

    def find(self, topic: bytes, publisher: str) -> Planned | None:
        """How a topic that is published here travels; None if the plan does not say."""
        return self._topics.get(topic) or self._of_publishers.get((topic, publisher))

    @property
    def topics(self) -> int:
        """Topics that are published here."""
        return len(self._topics) + len(self._of_publishers)


class PlanTables:
    """The tables of one broker."""

    def __init__(self) -> None:
        #: By epoch, the oldest first.
        self._tables: dict[int, PlanTable] = {}
        #: The one by which what is published here travels.
        self._in_force: PlanTable | None = None

    def __bool__(self) -> bool:
        return bool(self._tables)

    @property
    def epoch(self) -> int:
        """That of the plan in force; 0 without one."""
        return 0 if self._in_force is None else self._in_force.epoch

    @property
    def tables(self) -> Mapping[int, PlanTable]:
        """All that are kept, by epoch, the oldest first."""
        return self._tables

    def install(self, table: PlanTable) -> None:
        """Keep a table, so that frames may travel by it; the oldest ones that are not in force go."""
        self._tables.pop(table.epoch, None)
        self._tables[table.epoch] = table
        self._tables = dict(sorted(self._tables.items()))
        for epoch in list(self._tables):
            if len(self._tables) > MOST_EPOCHS and epoch not in (self.epoch, table.epoch):
                del self._tables[epoch]
        if self.epoch == table.epoch:
            self._in_force = table

    def use(self, epoch: int) -> bool:
        """Let what is published here travel by an epoch, or by none at all (0); False if there is no such table."""
        if epoch and epoch not in self._tables:
            return False
        self._in_force = self._tables.get(epoch)
        return True

    def clear(self) -> None:
        """Forget every plan, so that all goes by the shortest path again."""
        self._tables.clear()
        self._in_force = None

    def find(self, topic: bytes, publisher: str) -> Planned | None:
        """How a topic that is published here travels; None if no plan says it."""
        return None if self._in_force is None else self._in_force.find(topic, publisher)

    def of_parcel(self, parcel: bytes) -> Planned | None:
        """The same for what a stream carries under one number, which is of one topic, as far as plans are concerned."""
        table = self._in_force
        if table is None or not table.topics:
            return None
        try:
            named = _named(parcel)
        except BadFrame:
            return None  # whoever reads it will say so
        return None if named is None else table.find(*named)


def _named(parcel: bytes) -> tuple[bytes, str] | None:
    """The topic and the publisher of the first message in a parcel; None if it holds none."""
    for _front, body in parts_of(parcel):
        reader = Reader(body)
        kind = reader.integer() if body else -1
        if kind == 1:
            reader.integer()
            reader.integer()
            publisher, packets = reader.text(), reader.rest()
            head = publish_head(packets, 0, len(packets))
            return None if head is None else (packets[head[0] : head[1]], publisher)
        if kind == 0:
            reader.integer()
            publisher = reader.text()
            if reader.is_over:
                return None
            message = take_apart(reader, b"")
            return None if message.flags & SAME_TOPIC else (message.topic or b"", publisher)
    return None
