"""Who is there and which links are up, as every broker says of itself; and how far it is from one to another.

Each broker floods its own link state under a sequence number of its life.  A link counts once both ends name it.
Brokers may disagree for a while about which links are up; nothing depends on their agreement but the length of the way.

Lives are ordered: who begins with nothing takes its first one from the clock.  Should others know of a later one, it
hears so, and goes on behind that.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final, NamedTuple

from tieline.overlay.frames.fields import SAME, Reader, put
from tieline.overlay.frames.frame import Kind, frame

#: Ends of links that all brokers together may name, two for each link: ninety brokers each joined with each.  A way is
#: looked for among all of them, in one go.
MOST_ENDS: Final = 8_192


class LinkState(NamedTuple):
    """What one broker says of itself."""

    broker: int
    life: int
    sequence: int
    #: To what the numbers of its assured streams belong: a store, or a start without one.
    incarnation: int
    #: By peer, the cost of the link.
    neighbours: dict[int, int]

    @property
    def age(self) -> tuple[int, int, int]:
        """Of two states of one broker, the larger is the newer."""
        return self.life, self.incarnation, self.sequence

    @property
    def bytes(self) -> bytes:
        pairs = [number for pair in sorted(self.neighbours.items()) for number in pair]
        head = self.broker, self.life, self.sequence, self.incarnation, len(self.neighbours)
        return frame(Kind.LINK_STATE, put(*head, *pairs))


def read_link_state(body: bytes, ours: bytes = SAME) -> LinkState:
    """The link state in the body of a frame; ``ours`` has our number for each of the sender's."""
    reader = Reader(body)
    broker, life, sequence, incarnation = reader.known(ours), reader.integer(), reader.integer(), reader.integer()
    neighbours = {reader.known(ours): reader.integer() for _ in reader.repeat()}
    return LinkState(broker, life, sequence, incarnation, neighbours)


class Membership:
    """The newest link state of each broker, and distances over the links that both ends name."""

    def __init__(self, broker: int, life: int, incarnation: int, names: Mapping[int, str] | None = None) -> None:
        self.broker = self._broker = broker
        #: By number, as far as they are known: numbers are everybody's own.
        self.names = {} if names is None else names
        #: Changes whenever something was learned.
        self.view = 0
        self._own = LinkState(broker, life, 0, incarnation, {})
        #: By broker; at most 255.
        self.states: dict[int, LinkState] = {broker: self._own}
        #: Ends of links that they name.
        self.ends = 0
        #: What follows from the states, as far as somebody has asked: by broker, its links, and how far all others are
        #: from it.
        self._links: dict[int, dict[int, int]] = {}
        self._distances: dict[int, dict[int, float]] = {}
        self._reachable: frozenset[int] | None = None

    def connect(self, peer: int, cost: int) -> LinkState:
        """A link of ours is up; the state to be flooded."""
        return self._say({**self._own.neighbours, peer: cost})

    def disconnect(self, peer: int) -> LinkState:
        """A link of ours is down; the state to be flooded."""
        return self._say({other: cost for other, cost in self._own.neighbours.items() if other != peer})

    def _say(self, neighbours: dict[int, int]) -> LinkState:
        self._own = self._own._replace(sequence=self._own.sequence + 1, neighbours=neighbours)
        self._learn(self._own)
        return self._own

    def outlive(self, life: int) -> LinkState:
        """Go on in a later life; the state to be flooded."""
        self._own = self._own._replace(life=life)
        return self._say(self._own.neighbours)

    def is_outlived(self, state: LinkState) -> bool:
        """Whether somebody has heard something of us that is newer than what we have said."""
        return state.broker == self._broker and state.age > self._own.age

    def heard(self, state: LinkState) -> bool:
        """Take in what another broker says; whether it is news, which has to be passed on."""
        known = self.states.get(state.broker)
        if state.broker == self._broker or (known is not None and known.age >= state.age):
            return False
        self._learn(state)
        return True

    def has_room(self, state: LinkState) -> bool:
        """Whether so many more links can be known."""
        known = self.states.get(state.broker)
        return self.ends + len(state.neighbours) - (0 if known is None else len(known.neighbours)) <= MOST_ENDS

    def _learn(self, state: LinkState) -> None:
        known = self.states.get(state.broker)
        self.ends += len(state.neighbours) - (0 if known is None else len(known.neighbours))
        self.states[state.broker] = state
        self.view += 1
        self._links.clear()
        self._distances.clear()
        self._reachable = None

    @property
    def neighbours(self) -> dict[int, int]:
        """Our own links that are up, with their costs."""
        return self._own.neighbours

    @property
    def reachable(self) -> frozenset[int]:
        """All other brokers to which a way leads, as far as is known here."""
        if self._reachable is None:
            found, front = {self._broker}, list(self.neighbours)
            while front:
                broker = front.pop()
                if broker not in found:
                    found.add(broker)
                    front += self.links_of(broker)
            self._reachable = frozenset(found - {self._broker})
        return self._reachable

    def distances(self, destination: int) -> dict[int, float]:
        """How far each broker is from a destination, on ways that do not lead through this one."""
        known = self._distances.get(destination)
        if known is None:
            known = self._distances[destination] = {}
            near: dict[int, float] = {}
            front: list[tuple[float, int]] = [(0, destination)]
            while front:
                distance, broker = heappop(front)
                if broker in known or broker == self._broker:
                    continue
                known[broker] = distance
                for other, cost in self.links_of(broker).items():
                    if other not in known and distance + cost < near.get(other, inf):
                        near[other] = distance + cost
                        heappush(front, (distance + cost, other))
        return known

    def links(self) -> list[tuple[int, int, int]]:
        """Every link that both ends name, with the larger of its two costs: the cheapest first, then by names.

        Whoever knows of the same links gets them in the same order, whatever numbers it means brokers by.
        """
        found = [
            (max(cost, self.states[other].neighbours[broker]), broker, other)
            for broker in self.states
            for other, cost in self.links_of(broker).items()
            if broker < other
        ]
        return sorted(found, key=self._rank)

    def _rank(self, link: tuple[int, int, int]) -> tuple[int, list[tuple[str, int]]]:
        cost, *ends = link
        return cost, sorted((self.names.get(end, ""), end) for end in ends)

    def links_of(self, broker: int) -> dict[int, int]:
        """The links of a broker that both ends name, with their costs, by the other end."""
        found = self._links.get(broker)
        if found is not None:
            return found
        state, states = self.states.get(broker), self.states
        if state is None:
            return {}
        found = self._links[broker] = {
            other: cost
            for other, cost in state.neighbours.items()
            if other in states and broker in states[other].neighbours
        }
        return found

    def cost(self, peer: int) -> float:
        """The cost of our own link to a peer."""
        return self._own.neighbours.get(peer, inf)
