"""Routes: the tree of each topic with the subscribers served through each of its links; as values and as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats


class Hop(msgspec.Struct, frozen=True, kw_only=True, rename={"tail": "from", "head": "to"}):
    """One link of a topic's tree, in the direction of the messages."""

    tail: str
    head: str
    #: Who is served through this link.
    subscribers: tuple[str, ...]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """The tree of one topic."""

    topic: str
    source: str
    links: tuple[Hop, ...] = ()
    #: Subscribers that get nothing.
    unmet: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Trees:
    """Routes as solvers hold them: per topic the arc by which each node of its tree is entered; per request, whether
    it is served.  The source has no entry.
    """

    entering: list[dict[int, int]]
    served: Flags = field(repr=False)

    def copy(self) -> Trees:
        return Trees([dict(tree) for tree in self.entering], self.served.copy())

    def path(self, arrays: Arrays, request: int) -> list[int]:
        """The arcs from the source to a served request, the last one first."""
        tree = self.entering[arrays.request_topic[request]]
        return list(_upward(arrays, tree, int(arrays.request_node[request])))

    def pruned(self, arrays: Arrays) -> Trees:
        """The same without arcs that serve nobody."""
        kept: list[dict[int, int]] = [{} for _ in self.entering]
        for request in np.flatnonzero(self.served):
            topic = arrays.request_topic[request]
            for arc in _upward(arrays, self.entering[topic], int(arrays.request_node[request])):
                kept[topic][int(arrays.head[arc])] = arc
        return Trees(kept, self.served.copy())


def no_trees(arrays: Arrays) -> Trees:
    """The plan that serves nobody."""
    return Trees([{} for _ in range(arrays.topics)], np.zeros(arrays.requests, np.bool_))


def load(arrays: Arrays, trees: Trees) -> Floats:
    """How much of its capacity each link gives to the trees."""
    used = np.zeros(arrays.links)
    for topic, tree in enumerate(trees.entering):
        for arc in tree.values():
            used[arc >> 1] += arrays.rate[topic]
    return used


def value(arrays: Arrays, trees: Trees) -> tuple[float, float]:
    """The cost of the links and the price of the unmet requests; their sum is the objective."""
    cost = 0.0
    for request in np.flatnonzero(trees.served):
        cost += sum(float(arrays.cost[arc >> 1]) for arc in trees.path(arrays, int(request)))
    return cost, float(arrays.price[arrays.request_topic[~trees.served]].sum())


def routes(arrays: Arrays, trees: Trees) -> tuple[Route, ...]:
    """Trees as values that name nodes and topics; arcs that serve nobody are left out."""
    return tuple(route(arrays, trees, topic) for topic in range(arrays.topics))


def route(arrays: Arrays, trees: Trees, topic: int) -> Route:
    """The same for one topic."""
    nodes, named = arrays.instance.nodes, arrays.instance.topics[topic]
    tree = trees.entering[topic]
    through: dict[int, list[str]] = {}
    unmet = []
    for offset, subscriber in enumerate(named.subscribers):
        request = int(arrays.request_start[topic]) + offset
        if not trees.served[request]:
            unmet.append(subscriber)
            continue
        for arc in _upward(arrays, tree, int(arrays.request_node[request])):
            through.setdefault(arc, []).append(subscriber)
    hops = tuple(
        Hop(tail=nodes[arrays.tail[arc]].id, head=nodes[arrays.head[arc]].id, subscribers=tuple(subscribers))
        for arc, subscribers in sorted(through.items())
    )
    return Route(topic=named.id, source=named.source, links=hops, unmet=tuple(unmet))


def trees(arrays: Arrays, routes: Sequence[Route]) -> Trees:
    """The trees of routes that were proven; topics without a route serve nobody."""
    number = {node.id: place for place, node in enumerate(arrays.instance.nodes)}
    arc_of = {
        (int(tail), int(head)): arc for arc, (tail, head) in enumerate(zip(arrays.tail, arrays.head, strict=True))
    }
    place = {topic.key: k for k, topic in enumerate(arrays.instance.topics)}
    result = no_trees(arrays)
    for route in routes:
        k = place[route.topic, route.source]
        fed: set[str] = set()
        for hop in route.links:
            head = number[hop.head]
            result.entering[k][head] = arc_of[number[hop.tail], head]
            if hop.head in hop.subscribers:
                fed.add(hop.head)
        start = int(arrays.request_start[k])
        for offset, subscriber in enumerate(arrays.instance.topics[k].subscribers):
            result.served[start + offset] = subscriber in fed
    return result


def _upward(arrays: Arrays, tree: dict[int, int], node: int) -> Iterator[int]:
    while node in tree:
        arc = tree[node]
        yield arc
        node = int(arrays.tail[arc])
