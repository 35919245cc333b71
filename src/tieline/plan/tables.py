"""A plan as its brokers have to know it: by which neighbour each topic of each origin goes to each destination.

Clients disappear here.  The origin of a topic is the broker to which the plan attaches its source, the destinations are
all brokers of its tree.  Topics that one broker publishes are numbered; publishers of one name whose trees are equal
are one topic, and where they differ the publisher is part of its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from tieline.overlay.plans import MOST_PIECES, PlanPiece, pace
from tieline.plan.flaws import Flawed
from tieline.plan.instance import UNLIMITED, Instance, Topic
from tieline.plan.plan import Plan
from tieline.plan.routes import Route

#: Bytes of a piece, as JSON, and so about as many as one question between brokers may have.
_PIECE: Final = 24_000
#: Of a topic, the broker that leads to each broker of its tree.
_Tree = dict[str, str]
_Way = tuple[str, int, str, str]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker has to know of a plan."""

    ways: tuple[_Way, ...]
    topics: tuple[tuple[int, str, str | None], ...]
    paces: dict[str, float]

    def pieces(self, epoch: int, name: str) -> list[PlanPiece]:
        """The same in pieces that travel; raises Flawed if there are too many of them."""
        found: list[tuple[list[_Way], list[tuple[int, str, str | None]]]] = [([], [])]
        room = _PIECE
        for topic in self.topics:
            room -= len(msgspec.json.encode(topic)) + 1
            if room < 0:
                found.append(([], []))
                room = _PIECE
            found[-1][1].append(topic)
        for way in self.ways:
            room -= len(msgspec.json.encode(way)) + 1
            if room < 0:
                found.append(([], []))
                room = _PIECE
            found[-1][0].append(way)
        if len(found) > MOST_PIECES:
            raise Flawed(f"one broker would have to know {len(self.ways):,} ways, which is more than it takes")
        return [
            PlanPiece(
                epoch=epoch,
                number=number,
                more=number + 1 < len(found),
                name=name,
                ways=tuple(ways),
                topics=tuple(topics),
                paces={} if number else self.paces,
            )
            for number, (ways, topics) in enumerate(found)
        ]


def joined(pieces: Iterable[PlanPiece]) -> Part:
    """What all pieces of a plan at one broker say together."""
    found = list(pieces)
    return Part(
        ways=tuple(way for piece in found for way in piece.ways),
        topics=tuple(topic for piece in found for topic in piece.topics),
        paces={peer: pace for piece in found for peer, pace in piece.paces.items()},
    )


def parts(instance: Instance, plan: Plan, *, is_paced: bool) -> dict[str, Part]:
    """By broker what it has to know of a plan that was proven; ``is_paced`` if capacities are bytes in a second."""
    brokers = {node.id for node in instance.nodes if node.is_broker}
    topics = {topic.key: topic for topic in instance.topics}
    trees: defaultdict[tuple[str, str], dict[str, _Tree]] = defaultdict(dict)
    loads: defaultdict[tuple[str, str], float] = defaultdict(float)
    for route in plan.routes:
        topic = topics[route.topic, route.source]
        if topic.more_sources:
            raise Flawed(
                f'topic "{topic.id}" has several sources, and brokers that run send on what each of them publishes: '
                "leave one, or write a topic for each"
            )
        origin = _origin(route, brokers)
        tree = {hop.head: hop.tail for hop in route.links if hop.head in brokers and hop.tail in brokers}
        for head, tail in tree.items():
            loads[tail, head] += topic.rate
        if origin is not None:
            trees[origin, route.topic][_publisher(topic, origin)] = tree
    ways: defaultdict[str, list[_Way]] = defaultdict(list)
    own: defaultdict[str, list[tuple[int, str, str | None]]] = defaultdict(list)
    for (origin, name), of_publishers in sorted(trees.items()):
        distinct = [*of_publishers.values()]
        is_one = all(tree == distinct[0] for tree in distinct)
        for publisher, tree in list(of_publishers.items())[: 1 if is_one else None]:
            if tree:
                number = len(own[origin]) + 1
                own[origin].append((number, name, None if is_one else publisher))
                for broker, destination, neighbour in _ways(origin, tree):
                    ways[broker].append((origin, number, destination, neighbour))
    paces = _paces(instance, loads) if is_paced else {}
    return {
        broker: Part(ways=tuple(ways[broker]), topics=tuple(own[broker]), paces=paces.get(broker, {}))
        for broker in sorted(brokers)
    }


def _origin(route: Route, brokers: set[str]) -> str | None:
    """The broker at which a topic is accepted; None if nobody gets it."""
    if route.source in brokers:
        return route.source
    found = {hop.head for hop in route.links if hop.tail == route.source and hop.head in brokers}
    if len(found) > 1:
        names = " and ".join(sorted(found))
        raise Flawed(f'topic "{route.topic}" of "{route.source}" would be published at {names}: one is possible')
    return next(iter(found), None)


def _publisher(topic: Topic, origin: str) -> str:
    """The client as its broker knows it: where several know one of that name, the instance adds the broker's."""
    return topic.source.removesuffix(f"@{origin}")


def _ways(origin: str, tree: _Tree) -> Iterator[tuple[str, str, str]]:
    """Of each broker on the way to each destination, the neighbour that comes next."""
    for destination in tree:
        after, at = destination, tree.get(destination)
        while at is not None:
            yield at, destination, after
            after, at = at, None if at == origin else tree.get(at)


def _paces(instance: Instance, loads: dict[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    """What each broker may give to its links."""
    brokers = {node.id for node in instance.nodes if node.is_broker}
    paces: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for link in instance.links:
        if link.capacity == UNLIMITED or link.capacity <= 0 or not {link.a, link.b} <= brokers:
            continue
        there, back = loads.get((link.a, link.b), 0.0), loads.get((link.b, link.a), 0.0)
        paces[link.a][link.b] = pace(there, back, link.capacity)
        paces[link.b][link.a] = pace(back, there, link.capacity)
    return paces
