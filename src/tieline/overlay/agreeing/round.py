"""One round at one broker: what is known of it, and what comes of it when it is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Final, NamedTuple

from tieline.match.trees import FilterTree
from tieline.overlay.agreeing.planning_node import PlanningNode, Sent
from tieline.overlay.agreeing.protocol import Agreement, Message, Port, TopicFacts
from tieline.overlay.agreeing.words import CHUNK, MOST_TOPICS, TOPIC_BITS, Begin, NamedTopic, Topics
from tieline.overlay.plans import FRAMED, PlanPiece, pace

#: What planning nodes call a second: in so many links are soft, and in so many they are hard.
_SOFT: Final = 300.0
_HARD: Final = 300.0
#: Between two wakings of a planning node, before chance.
_PERIOD: Final = 4.0
#: How much an unmet request counts, by the class of its topic; as the planner's.
_URGENCY: Final = (1.0, 2.0, 4.0, 8.0)


class CountedTopic(NamedTuple):
    """What clients here have published under one name while it was counted."""

    topic: str
    level: int
    messages: int
    bytes: int


class PeerLink(NamedTuple):
    """A link to a neighbour that takes part."""

    place: int
    cost: float
    #: What this end gives to it in a second; infinite for no limit.
    capacity: float


class Round:
    """What one broker knows of one round."""

    def __init__(self, epoch: int, begin: Begin, name: str) -> None:
        """ValueError if this broker does not take part."""
        self.epoch: Final = epoch
        self.begin: Final = begin
        self.me: Final = begin.brokers.index(name)
        #: By place, what the other end gives to the link, once it has said so.
        self.capacities: dict[int, float] = {}
        #: By number, and of whom.
        self.topics: dict[int, NamedTopic] = {}
        self.own: tuple[NamedTopic, ...] = ()
        self._wanted: FilterTree[bool] = FilterTree()
        self.node: PlanningNode | None = None
        self.began_at = 0.0
        #: What planning nodes have said before there was one here.
        self.early: list[tuple[int, Message]] = []
        #: Who was told offers and has not said that they came.
        self.busy: set[int] = set()

    @property
    def tick_s(self) -> float:
        """What planning nodes call a second."""
        return self.begin.agree_s / (_SOFT + _HARD)

    def place(self, name: str) -> int | None:
        """A broker's place in the list; None if it does not take part."""
        return self.begin.brokers.index(name) if name in self.begin.brokers else None

    # -- what is published and wanted

    def counted(self, flows: Iterable[CountedTopic], seconds: float) -> list[Topics]:
        """What clients here publish has been counted: the words that tell the others."""
        sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        for flow in flows:
            if not flow.topic.startswith("$"):
                known = sums[flow.topic]
                known[0] += (flow.bytes + FRAMED * flow.messages) / seconds
                known[1] = max(known[1], flow.level)
        most = sorted(sums, key=lambda topic: (-sums[topic][0], topic))[:MOST_TOPICS]
        self.own = tuple(
            NamedTopic(number, topic, sums[topic][0], int(sums[topic][1])) for number, topic in enumerate(most, 1)
        )
        self.name_topics(self.me, self.own)
        return [Topics(self.me, self.own[at : at + CHUNK]) for at in range(0, len(self.own), CHUNK)]

    def wants(self, filters: Iterable[str]) -> None:
        """Clients here ask for this."""
        for filter_ in filters:
            self._wanted.put(filter_, True)

    def name_topics(self, origin: int, topics: Iterable[NamedTopic]) -> bool:
        """Take in topics of a broker; whether one of them was not known."""
        is_news = False
        for topic in topics:
            number = origin << TOPIC_BITS | topic.number
            if number not in self.topics:
                self.topics[number] = topic
                is_news = True
        return is_news

    def want(self, origin: int, topics: Iterable[NamedTopic], now: float) -> None:
        """Ask for those topics that clients here want, where it has begun already."""
        if self.node is not None:
            for topic in topics:
                if origin != self.me and self._wanted.match(topic.name):
                    self.node.want(origin << TOPIC_BITS | topic.number, now)

    # -- agreeing

    def start(self, links: Iterable[PeerLink], chance: Callable[[], float], now: float) -> None:
        """Everything that can be known here is: from now on it is agreed."""
        ports = {}
        for link in links:
            if link.place in self.capacities:
                capacity = min(link.capacity, self.capacities[link.place]) * (1 - self.begin.headroom)
                ports[link.place] = Port(cost=link.cost, capacity=capacity, latency=0.0, is_owner=self.me < link.place)
        rates = [topic.rate for topic in self.topics.values()]
        mean_rate = sum(rates) / len(rates) if rates else 1.0
        mean_cost = sum(port.cost for port in ports.values()) / len(ports) if ports else 1.0
        wanted = {number for number, topic in self.topics.items() if self._wants(number, topic)}
        self.node = PlanningNode(
            self.me,
            ports,
            is_broker=True,
            publishes={self.me << TOPIC_BITS | topic.number: _facts(topic) for topic in self.own},
            wants=wanted,
            max_connections=None,
            agreement=Agreement(scale=max(mean_cost, 1e-9) / mean_rate, hard_after=_SOFT),
            chance=chance,
        )
        self.began_at = now

    def _wants(self, number: int, topic: NamedTopic) -> bool:
        return number >> TOPIC_BITS != self.me and bool(self._wanted.match(topic.name))

    def knows(self, message_topics: Iterable[int]) -> bool:
        """Whether all of these were named."""
        return all(topic in self.topics for topic in message_topics)

    def virtual(self, now: float) -> float:
        """What the clock of the planning node shows."""
        return (now - self.began_at) / self.tick_s

    def is_over(self, now: float) -> bool:
        """Whether there was time enough."""
        return self.virtual(now) >= _SOFT + _HARD

    def wake(self, now: float) -> list[Sent]:
        """What the planning node has to say by itself."""
        assert self.node is not None
        return self.node.wake(self.virtual(now), self.busy)

    def pause_s(self, chance: float) -> float:
        """Until it is asked again."""
        return _PERIOD * (0.5 + chance) * self.tick_s

    # -- what comes of it

    @property
    def requests(self) -> tuple[int, int]:
        """Topics that are wanted here, and those of them that find no room."""
        found = [] if self.node is None else [*self.node.requests.values()]
        return len(found), sum(not request.is_served for request in found)

    def piece(self) -> PlanPiece:
        """What this broker has to know of the plan that was agreed on."""
        node, names = self.node, self.begin.brokers
        assert node is not None
        ways = []
        out: defaultdict[int, float] = defaultdict(float)
        coming: defaultdict[int, float] = defaultdict(float)
        for topic, relay in sorted(node.relays.items()):
            origin, number = topic >> TOPIC_BITS, topic & (1 << TOPIC_BITS) - 1
            rate = node.facts[topic].rate
            for child in {*relay.served.values()} - {self.me}:
                out[child] += rate
            if relay.parent is not None:
                coming[relay.parent] += rate
            ways += [
                (names[origin], number, names[subscriber], names[child])
                for subscriber, child in sorted(relay.served.items())
                if child != self.me
            ]
        return PlanPiece(
            epoch=self.epoch,
            name="agreed",
            ways=tuple(ways),
            topics=tuple((topic.number, topic.name, None) for topic in self.own if self._is_served(topic.number)),
            paces={names[at]: pace(out[at], coming[at], port.capacity) for at, port in _limited(node.ports).items()},
        )

    def _is_served(self, number: int) -> bool:
        assert self.node is not None
        return self.me << TOPIC_BITS | number in self.node.relays


def _limited(ports: Mapping[int, Port]) -> dict[int, Port]:
    return {at: port for at, port in ports.items() if 0 < port.capacity < inf}


def _facts(topic: NamedTopic) -> TopicFacts:
    return TopicFacts(rate=topic.rate, urgency=_URGENCY[topic.level], max_latency=None)
