"""Brokers of a ring in virtual time: messages take as long as the ways between two brokers, and some brokers are dead.

A way is a direct connection of some delay, or leads over the links of a graph by the shortest path, as fingers do that
ride the links there are.  What is sent to somebody who is dead comes back: at once where the machine still answers
(*reset*), or when nothing was heard for long enough (*silent*).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Final, NamedTuple, Protocol

from tieline.overlay.ring.identifiers import identifier_of
from tieline.overlay.ring.messages import Data, Peer, is_publication
from tieline.overlay.ring.node import RingNode, RingWorld
from tieline.overlay.ring.promises import Batch, Taken
from tieline.sim.clock import Clock

#: What IP and TCP add to a message that travels alone.
OVERHEAD: Final = 40


class Way(NamedTuple):
    """From one broker to another."""

    delay_s: float
    links: int


class Ways(Protocol):
    """How far it is between brokers."""

    def between(self, one: int, other: int) -> Way:
        """The way between two brokers, given by their places in the list of all."""
        ...


class Direct:
    """Every broker dials every other one; delays are those of a plane with a fixed part."""

    def __init__(self, brokers: int, random: Random, *, least_s: float = 0.002, across_s: float = 0.04) -> None:
        self._places = [(random.random(), random.random()) for _ in range(brokers)]
        self._least_s, self._across_s = least_s, across_s

    def between(self, one: int, other: int) -> Way:
        (x, y), (across, up) = self._places[one], self._places[other]
        return Way(self._least_s + self._across_s * ((x - across) ** 2 + (y - up) ** 2) ** 0.5, 1)


class Links:
    """Fingers ride the links of a graph, by the shortest path."""

    def __init__(self, neighbours: Mapping[int, Mapping[int, float]]) -> None:
        """By broker, its neighbours with the delay of the link to each."""
        self.neighbours: Final = neighbours
        self._ways: dict[int, dict[int, Way]] = {}

    def between(self, one: int, other: int) -> Way:
        if one not in self._ways:
            self._ways[one] = self._from(one)
        return self._ways[one][other]

    def parents(self, start: int) -> dict[int, int]:
        """On the shortest ways from a broker, who stands in front of each other one."""
        return self._search(start)[1]

    def forget(self) -> None:
        """Keep no ways: those between very many brokers take too much memory."""
        self._ways.clear()

    def _from(self, start: int) -> dict[int, Way]:
        return self._search(start)[0]

    def _search(self, start: int) -> tuple[dict[int, Way], dict[int, int]]:
        found: dict[int, Way] = {}
        parents: dict[int, int] = {}
        queue = [(0.0, 0, start, start)]
        while queue:
            delay, links, at, above = heappop(queue)
            if at in found:
                continue
            found[at] = Way(delay, links)
            if at != start:
                parents[at] = above
            for beside, more in self.neighbours[at].items():
                if beside not in found:
                    heappush(queue, (delay + more, links + 1, beside, at))
        return found, parents


def random_links(brokers: int, random: Random, *, least_s: float = 0.002, most_s: float = 0.02) -> Links:
    """A graph of brokers with about three links each that holds together: a cycle with chords."""
    neighbours: dict[int, dict[int, float]] = {broker: {} for broker in range(brokers)}
    pairs = [(broker, (broker + 1) % brokers) for broker in range(brokers)]
    pairs += [tuple(random.sample(range(brokers), 2)) for _ in range(brokers // 2)]  # type: ignore[misc]  # two of them
    for one, other in pairs:
        if one != other:
            neighbours[one][other] = neighbours[other][one] = random.uniform(least_s, most_s)
    return Links(neighbours)


@dataclass(slots=True)
class Traffic:
    """What has been sent, counted in the messages themselves and on every link that they crossed."""

    messages: int = 0
    bytes: int = 0
    crossings: int = 0
    crossed_bytes: int = 0

    def add(self, size: int, links: int) -> None:
        """Count one more message, and each link that it crosses."""
        self.messages += 1
        self.bytes += size
        self.crossings += links
        self.crossed_bytes += size * links


class Visit(NamedTuple):
    """A publication at a broker."""

    at: float
    hops: int


@dataclass(eq=False, slots=True)
class PlacedNode:
    """Where a broker runs, and what it has been given."""

    number: int
    peer: Peer
    node: RingNode = field(init=False)
    is_dead: bool = False
    #: Until when it is busy with what came before.
    busy_until: float = 0.0
    #: By the number of a publication, when it came; each as often as it was given to clients.
    given: dict[int, list[Visit]] = field(default_factory=dict)


class Network:
    """All brokers of a world, their messages and what these cost."""

    def __init__(self, ways: Ways, *, notice_s: float = 0.05, service_s: float = 0.0, rate: float = 0.0) -> None:
        """``service_s`` is what a broker takes for a publication, ``rate`` the bytes per second of every way."""
        self.clock: Final = Clock()
        self.places: Final[dict[int, PlacedNode]] = {}
        self.upkeep = Traffic()
        self.data = Traffic()
        self._ways = ways
        self._notice_s = notice_s
        self._service_s = service_s
        self._rate = rate
        #: Who has nothing to do with a broker that is gone is told so by nobody.
        self.returned = 0

    def enter(
        self, name: str, make: Callable[[Peer, RingWorld], RingNode], identifier: int | None = None
    ) -> PlacedNode:
        """A broker is switched on; it stands where its name says, or somewhere else."""
        peer = Peer(identifier_of(name) if identifier is None else identifier, name)
        place = PlacedNode(len(self.places), peer)
        world = RingWorld(
            alarms=self.clock, send=partial(self.send, place), deliver=partial(self.deliver, place), commit=self.commit
        )
        place.node = make(peer, world)
        self.places[peer.identifier] = place
        return place

    def send(self, sender: PlacedNode, peer: Peer, data: bytes) -> None:
        """A message leaves a broker."""
        if sender.is_dead:
            return
        target = self.places.get(peer.identifier)
        way = Way(0.02, 1) if target is None else self._ways.between(sender.number, target.number)
        size = len(data) + OVERHEAD
        (self.data if is_publication(data) else self.upkeep).add(size, way.links)
        delay = way.delay_s + (size * way.links / self._rate if self._rate else 0.0)
        self.clock.after(delay, partial(self._arrive, sender, peer, data, self.clock.now))

    def _arrive(self, sender: PlacedNode, peer: Peer, data: bytes, sent: float, now: float) -> None:
        target = self.places.get(peer.identifier)
        if target is None or target.is_dead:
            self.returned += 1
            self.clock.after(self._notice_s, partial(self._return, sender, peer, data, sent))
            return
        if self._service_s and is_publication(data):
            target.busy_until = max(now, target.busy_until) + self._service_s
            self.clock.at(target.busy_until, partial(self._serve, sender, target, data))
            return
        target.node.receive(sender.peer, data, now)

    def _serve(self, sender: PlacedNode, target: PlacedNode, data: bytes, now: float) -> None:
        if not target.is_dead:
            target.node.receive(sender.peer, data, now)

    def _return(self, sender: PlacedNode, peer: Peer, data: bytes, sent: float, now: float) -> None:
        if not sender.is_dead:
            sender.node.refused(peer, data, sent, now)

    def deliver(self, place: PlacedNode, data: Data, taken: Taken | None, then: Callable[[float], None]) -> None:
        """Publications have reached a broker; they carry their number in front of their payload."""
        now = self.clock.now
        for sent in data.events:
            number = int.from_bytes(sent.event.payload[:4], "little")
            place.given.setdefault(number, []).append(Visit(now, data.hops))
        then(now)

    def commit(self, _batch: Batch, _is_owed: bool, then: Callable[[float], None]) -> None:
        """A store that takes no time."""
        then(self.clock.now)

    @property
    def alive(self) -> list[PlacedNode]:
        """Brokers that are switched on."""
        return [place for place in self.places.values() if not place.is_dead]

    def forget(self) -> None:
        """Count from nothing again."""
        self.upkeep, self.data = Traffic(), Traffic()
        for place in self.places.values():
            place.given.clear()
