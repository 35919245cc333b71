"""Where messages go now: by the parts of a plan that brokers have, and by the shortest way where these say nothing.

Theory of operation
-------------------
A message is followed from the broker where it is published to each broker that wants it, as brokers themselves would
pass it on: by the link that the plan in force has, unless that is missing or leads back, and else by the link on the
shortest way to the destination.  What all topics together put on each link follows from it, and so does what another
plan would move.  Nothing here is a plan: ways need not be trees, and links may be too small.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from tieline.plan.instance import Instance, Topic
from tieline.plan.routes import Hop, Route
from tieline.plan.tables import Part

#: Brokers from the first to the last one.
Way = tuple[str, ...]


class TopicToBroker(NamedTuple):
    """What one publisher sends under one name to one broker, whoever wants it there."""

    topic: str
    source: str
    broker: str


def homes(instance: Instance, routes: Sequence[Route] = ()) -> dict[str, str]:
    """The broker of every client and broker: where routes attach it, or else the first that it is linked with."""
    brokers = {node.id for node in instance.nodes if node.is_broker}
    found = {broker: broker for broker in brokers}
    for link in instance.links:
        for client, broker in ((link.a, link.b), (link.b, link.a)):
            if broker in brokers:
                found.setdefault(client, broker)
    hops = [(hop.tail, hop.head) for route in routes for hop in route.links]
    ends = [*hops, *((head, tail) for tail, head in hops)]
    return found | {client: broker for client, broker in ends if client not in brokers and broker in brokers}


class InForce:
    """The ways that messages of an instance take under the parts of a plan."""

    def __init__(self, instance: Instance, at: Mapping[str, str], parts: Mapping[str, Part]) -> None:
        """``at`` is the broker of every client; without parts everything takes the shortest way."""
        self.instance = instance
        self._at = at
        self._network = _Network(instance)
        self._towards = {
            (broker, origin, number, destination): neighbour
            for broker, part in parts.items()
            for origin, number, destination, neighbour in part.ways
        }
        self._numbers = {
            (broker, name, publisher): number
            for broker, part in parts.items()
            for number, name, publisher in part.topics
        }
        #: Of what has to cross links, the way that it takes; none if no link leads there.
        self.ways: dict[TopicToBroker, Way] = {}
        #: What the plan does not lead all the way.
        self.uncovered: set[TopicToBroker] = set()
        for topic in instance.topics:
            self._follow(topic)

    def _follow(self, topic: Topic) -> None:
        origin = self._at.get(topic.source)
        if origin is None:
            return
        publisher = topic.source.removesuffix(f"@{origin}")
        number = self._numbers.get((origin, topic.id, None)) or self._numbers.get((origin, topic.id, publisher), 0)
        for destination in sorted({self._at[each] for each in topic.subscribers if each in self._at} - {origin}):
            flow = TopicToBroker(topic.id, topic.source, destination)
            way = [origin]
            while way[-1] != destination:
                after = self._towards.get((way[-1], origin, number, destination))
                if after is None or after in way or after not in self._network.costs[way[-1]]:
                    self.uncovered.add(flow)
                    after = self._network.nearest(way, destination)
                if after is None:
                    way = []
                    break
                way.append(after)
            self.ways[flow] = tuple(way)

    @property
    def loads(self) -> list[float]:
        """What is put on each link, in the order of the instance; links of clients are left at 0."""
        found: defaultdict[frozenset[str], float] = defaultdict(float)
        rates = {topic.key: topic.rate for topic in self.instance.topics}
        used = {(flow.topic, flow.source, *hop) for flow, way in self.ways.items() for hop in _hops(way)}
        for topic, source, tail, head in sorted(used):
            found[frozenset((tail, head))] += rates[topic, source]
        return [found.get(frozenset((link.a, link.b)), 0.0) for link in self.instance.links]

    def routes(self) -> tuple[Route, ...]:
        """The same as routes of a plan; whoever is served by a way that does not fit to the others' is left unmet."""
        return tuple(self._route(topic) for topic in self.instance.topics)

    def _route(self, topic: Topic) -> Route:
        before: dict[str, str] = {}
        served: dict[tuple[str, str], list[str]] = {}
        unmet = []
        origin = self._at.get(topic.source, "")
        for subscriber in topic.subscribers:
            broker = self._at.get(subscriber, "")
            way = (origin,) if broker == origin else self.ways.get(TopicToBroker(topic.id, topic.source, broker), ())
            ends = [*(() if topic.source == origin else (topic.source,)), *way]
            if broker != subscriber:
                ends.append(subscriber)
            hops = _hops(ends)
            if not way or any(before.get(head, tail) != tail for tail, head in hops):
                unmet.append(subscriber)
                continue
            for tail, head in hops:
                before[head] = tail
                served.setdefault((tail, head), []).append(subscriber)
        links = tuple(Hop(tail=tail, head=head, subscribers=tuple(who)) for (tail, head), who in served.items())
        return Route(topic=topic.id, source=topic.source, links=links, unmet=tuple(unmet))


class Move(NamedTuple):
    """A flow that takes another way."""

    flow: TopicToBroker
    before: Way
    after: Way


def moves(before: InForce, after: InForce) -> list[Move]:
    """What takes another way in one than in the other, where both know it."""
    return [
        Move(flow, before.ways[flow], way)
        for flow, way in after.ways.items()
        if flow in before.ways and before.ways[flow] != way
    ]


def _hops(way: Sequence[str]) -> list[tuple[str, str]]:
    return list(pairwise(way))


class _Network:
    """Links between brokers, and distances over them."""

    def __init__(self, instance: Instance) -> None:
        brokers = {node.id for node in instance.nodes if node.is_broker}
        self.costs: dict[str, dict[str, float]] = {broker: {} for broker in sorted(brokers)}
        for link in instance.links:
            if {link.a, link.b} <= brokers:
                self.costs[link.a][link.b] = self.costs[link.b][link.a] = link.cost
        self._distances: dict[str, dict[str, float]] = {}

    def nearest(self, way: Sequence[str], destination: str) -> str | None:
        """The neighbour of the last one that is nearest to a destination, and was not passed already."""
        distances = self._to(destination)
        found = [
            (cost + distances[neighbour], neighbour)
            for neighbour, cost in self.costs[way[-1]].items()
            if neighbour in distances and neighbour not in way
        ]
        return min(found)[1] if found else None

    def _to(self, destination: str) -> dict[str, float]:
        known = self._distances.get(destination)
        if known is None:
            known = self._distances[destination] = {}
            front = [(0.0, destination)]
            while front:
                distance, broker = heappop(front)
                if broker in known or math.isinf(distance):
                    continue
                known[broker] = distance
                for other, cost in self.costs[broker].items():
                    heappush(front, (distance + cost, other))
        return known
