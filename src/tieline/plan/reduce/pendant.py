"""Pendant trees: what hangs on the network by one link is cut off, where that link can carry all it might have to.

Theory of operation
-------------------
Real meshes are mostly trees.  In a tree there is one way, so the only question that a pendant tree poses is whether
its links have room.  A leaf is drawn into its neighbour when the neighbour is a broker and the link between them can
carry every topic that has its source on one side and a subscriber on the other.  The leaf's clients are then attached
to the neighbour directly, by a link that costs as much as the way did and carries anything.  Requests whose whole way
lies inside such a tree are decided at once.  What is left is the network's 2-core, its clients, and the pendant trees
with links that are too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from tieline.instance_document import Role
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic, request_price
from tieline.plan.reduce.reduction import Reduction, request_weight, unchanged
from tieline.plan.routes import Hop, Route


def without_pendants(instance: Instance) -> Reduction:
    """The instance without its pendant trees; unchanged where brokers have limits that count links."""
    if instance.n_max is not None or any(node.max_connections is not None for node in instance.nodes):
        return unchanged(instance)
    forest = _Forest(instance)
    forest.grow()
    if not forest.above:
        return unchanged(instance)
    return forest.reduction()


@dataclass(slots=True)
class _Load:
    """What lies at a node and in the trees drawn into it: how many subscribers of each topic, and which sources."""

    wanted: dict[int, int] = field(default_factory=dict)
    sources: set[int] = field(default_factory=set)


class _Forest:
    """The pendant trees, as they grow towards their roots."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.nodes: dict[str, Node] = {node.id: node for node in instance.nodes}
        self.near: dict[str, dict[str, Link]] = {node.id: {} for node in instance.nodes}
        for link in instance.links:
            self.near[link.a][link.b] = link
            self.near[link.b][link.a] = link
        self.loads: dict[str, _Load] = {node.id: _Load() for node in instance.nodes}
        for number, topic in enumerate(instance.topics):
            self.loads[topic.source].sources.add(number)
            for subscriber in topic.subscribers:
                wanted = self.loads[subscriber].wanted
                wanted[number] = wanted.get(number, 0) + 1
        #: The node that each drawn-in node hangs on, and by which link.
        self.above: dict[str, tuple[str, Link]] = {}

    def grow(self) -> None:
        """Draw leaves in until none can be."""
        leaves = [node for node, near in self.near.items() if len(near) <= 1]
        while leaves:
            leaf = leaves.pop()
            if leaf in self.above or len(self.near[leaf]) != 1:
                continue
            ((root, link),) = self.near[leaf].items()
            if not self.nodes[root].is_broker or self._crossing(leaf) > link.capacity:
                continue
            self.above[leaf] = (root, link)
            del self.near[root][leaf]
            self.near[leaf] = {}
            self._merge(leaf, root)
            if len(self.near[root]) == 1:
                leaves.append(root)

    def _crossing(self, leaf: str) -> float:
        """The rates of all topics that might use the leaf's link."""
        load = self.loads[leaf]
        total = 0.0
        for number in load.sources | load.wanted.keys():
            topic = self.instance.topics[number]
            inside = load.wanted.get(number, 0)
            if inside < len(topic.subscribers) if number in load.sources else inside > 0:
                total += topic.rate
        return total

    def _merge(self, leaf: str, root: str) -> None:
        small, large = self.loads.pop(leaf), self.loads[root]
        if len(small.wanted) + len(small.sources) > len(large.wanted) + len(large.sources):
            small, large = large, small
        for number, count in small.wanted.items():
            large.wanted[number] = large.wanted.get(number, 0) + count
        large.sources |= small.sources
        self.loads[root] = large

    def way_up(self, node: str) -> list[tuple[str, str, Link]]:
        """The hops (from, to, link) from a node to the root of its tree."""
        hops = []
        while node in self.above:
            root, link = self.above[node]
            hops.append((node, root, link))
            node = root
        return hops

    def root(self, node: str) -> str:
        """The node that is left where a node's tree was."""
        while node in self.above:
            node = self.above[node][0]
        return node

    def local_way(self, source: str, target: str) -> list[tuple[str, str, Link]]:
        """The hops between two nodes of one tree."""
        up, down = self.way_up(source), self.way_up(target)
        while up and down and up[-1] == down[-1]:
            up.pop()
            down.pop()
        return up + [(to, from_, link) for from_, to, link in reversed(down)]

    def reduction(self) -> Reduction:
        """The instance that is left, and the way back."""
        instance = self.instance
        local: dict[int, dict[str, list[tuple[str, str, Link]]]] = {}
        cost, unmet, lost = 0.0, 0.0, 0
        topics: list[Topic] = []
        for number, topic in enumerate(instance.topics):
            left = []
            root = self.root(topic.source)
            price = request_price(instance, topic)
            for subscriber in topic.subscribers:
                if self.root(subscriber) != root:
                    left.append(subscriber)
                    continue
                way = self.local_way(topic.source, subscriber)
                length = sum(link.cost for *_, link in way)
                delay = sum(link.latency for *_, link in way)
                if length > price or (topic.max_latency is not None and delay > topic.max_latency):
                    unmet += request_weight(instance, number)
                    lost += 1
                    continue
                cost += length
                local.setdefault(number, {})[subscriber] = way
            if left:
                topics.append(msgspec.structs.replace(topic, subscribers=tuple(left)))
        ways = {topic.source: self.way_up(topic.source) for topic in topics}
        ways.update({subscriber: self.way_up(subscriber) for topic in topics for subscriber in topic.subscribers})
        smaller = msgspec.structs.replace(
            instance,
            nodes=tuple(self._node(node) for node in instance.nodes if node.id not in self.above or node.id in ways),
            links=(
                *(link for link in instance.links if link.b in self.near[link.a]),
                *(self._shortcut(node, way) for node, way in ways.items() if way),
            ),
            topics=tuple(topics),
        )

        def lift(routes: Sequence[Route]) -> tuple[Route, ...]:
            return self._lifted(routes, local)

        return Reduction(original=instance, instance=smaller, lift=lift, fixed_cost=cost, fixed_unmet=unmet, lost=lost)

    def _node(self, node: Node) -> Node:
        if node.id not in self.above:
            return node
        roles: tuple[Role, ...] = tuple(role for role in node.roles if role != "broker")
        return msgspec.structs.replace(node, roles=roles)

    def _shortcut(self, node: str, way: list[tuple[str, str, Link]]) -> Link:
        return Link(
            a=node,
            b=way[-1][1],
            capacity=UNLIMITED,
            cost=sum(link.cost for *_, link in way),
            latency=sum(link.latency for *_, link in way),
        )

    def _lifted(
        self, routes: Sequence[Route], local: dict[int, dict[str, list[tuple[str, str, Link]]]]
    ) -> tuple[Route, ...]:
        given = {(route.topic, route.source): route for route in routes}
        result = []
        for number, topic in enumerate(self.instance.topics):
            through: dict[tuple[str, str], list[str]] = {}
            served: set[str] = set()
            route = given.get(topic.key)
            for hop in route.links if route is not None else ():
                if hop.tail in self.above:
                    pieces = [(tail, head) for tail, head, _ in self.way_up(hop.tail)]
                elif hop.head in self.above:
                    pieces = [(head, tail) for tail, head, _ in reversed(self.way_up(hop.head))]
                else:
                    pieces = [(hop.tail, hop.head)]
                for piece in pieces:
                    through.setdefault(piece, []).extend(hop.subscribers)
                if hop.head in hop.subscribers:
                    served.add(hop.head)
            for subscriber, way in local.get(number, {}).items():
                served.add(subscriber)
                for tail, head, _ in way:
                    through.setdefault((tail, head), []).append(subscriber)
            hops = tuple(Hop(tail=tail, head=head, subscribers=tuple(who)) for (tail, head), who in through.items())
            missed = tuple(subscriber for subscriber in topic.subscribers if subscriber not in served)
            result.append(Route(topic=topic.id, source=topic.source, links=hops, unmet=missed))
        return tuple(result)
