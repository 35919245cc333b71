"""Blocks: parts of the network that share single brokers are planned one by one.

Theory of operation
-------------------
A way between two blocks passes the broker that joins them, so every request has one sequence of blocks.  Inside a
block, what lies beyond a joining broker is stood for by a client attached to it at no cost.  Links belong to one block
each, and so do costs: if every block's plan serves everybody, together they are a plan that serves everybody, and if
each is optimal, so is the whole.  If some block cannot serve everybody, blocks must agree on whom to drop; then
nothing is gained, and the answer is None.  A block of one link leaves no choice: it is decided at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from tieline.extras import needs
from tieline.instance_document import Role
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic, dearest_plan, unmet_price, weight
from tieline.plan.plan import Plan
from tieline.plan.routes import Hop, Route

Key = tuple[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocks:
    """An instance in parts, the smallest first."""

    original: Instance
    parts: tuple[Instance, ...]
    #: Per part, the links that are its own: stand-ins may hang where another part has a link.
    links: tuple[frozenset[frozenset[str]], ...]
    #: The hops over links that are blocks of their own, by topic, and what they cost.
    forced: dict[Key, list[Hop]]
    forced_cost: float
    #: Requests that cross a client, which relays nothing: no plan serves them.
    impossible: frozenset[tuple[Key, str]]

    def value(self, objectives: Iterable[float]) -> float:
        """The objective of the whole, from those of parts that serve everybody."""
        price, missed = self._unmet
        return sum(objectives) + self.forced_cost + missed * price

    def bound(self, bounds: Iterable[float]) -> float:
        """A lower bound of the whole's objective, from those of some parts."""
        # a part that cannot serve everybody has its own price of that; in the whole it costs one request or more
        price, missed = self._unmet
        return min(self.value(bounds), (missed + 1.0) * price)

    @cached_property
    def _unmet(self) -> tuple[float, float]:
        """The price of an unmet request, and the weight, or the number, of the impossible ones."""
        weights = {topic.key: weight(topic) for topic in self.original.topics}
        is_weighted = self.original.unmet_cost is None
        missed = sum(weights[key] if is_weighted else 1.0 for key, _ in self.impossible)
        return unmet_price(self.original), missed

    def join(self, plans: Sequence[Plan]) -> tuple[tuple[Route, ...], float] | None:
        """The routes of the whole and a lower bound of its objective; None if some part left a request unmet."""
        if any(plan.unmet for plan in plans):
            return None
        joined: dict[Key, list[Hop]] = {key: list(hops) for key, hops in self.forced.items()}
        for plan, real in zip(plans, self.links, strict=True):
            for route in plan.routes:
                hops = joined.setdefault((route.topic, route.source), [])
                hops.extend(hop for hop in route.links if frozenset((hop.tail, hop.head)) in real)
        routes = []
        for topic in self.original.topics:
            missed = tuple(who for who in topic.subscribers if (topic.key, who) in self.impossible)
            links = tuple(joined.get(topic.key, ()))
            routes.append(Route(topic=topic.id, source=topic.source, links=links, unmet=missed))
        return tuple(routes), self.value(min(plan.bound, plan.objective) for plan in plans)


def blocks(instance: Instance, *, largest: float = 1.0) -> Blocks | None:
    """The parts of an instance.

    None if it has one, or if one has more than the share ``largest`` of the links that leave a choice; if it has limits
    that concern several parts; if dropping might pay; or if a link that many must take is too small for them.
    """
    if instance.n_max is not None or any(node.max_connections is not None for node in instance.nodes):
        return None
    if any(topic.max_latency is not None for topic in instance.topics):
        return None
    if instance.unmet_cost is not None and instance.unmet_cost <= dearest_plan(instance):
        return None
    splitter = _Splitter(instance)
    return splitter.blocks() if splitter.is_split(largest) else None


class _Splitter:
    """The tree of blocks and joining nodes."""

    def __init__(self, instance: Instance) -> None:
        with needs("plan"):
            import rustworkx

        self.instance = instance
        self.nodes = {node.id: node for node in instance.nodes}
        self.links = {frozenset((link.a, link.b)): link for link in instance.links}
        number = {node.id: place for place, node in enumerate(instance.nodes)}
        graph = rustworkx.PyGraph()
        graph.add_nodes_from(list(range(len(number))))
        graph.add_edges_from([(number[link.a], number[link.b], None) for link in instance.links])
        found = rustworkx.biconnected_components(graph)
        ids = [node.id for node in instance.nodes]
        self.block_of: dict[frozenset[str], int] = {
            frozenset((ids[a], ids[b])): block for (a, b), block in found.items()
        }
        self.sizes = Counter(self.block_of.values())
        self.members: dict[int, set[str]] = {}
        for pair, block in self.block_of.items():
            self.members.setdefault(block, set()).update(pair)
        self.homes: dict[str, list[int]] = {}
        for block, members in self.members.items():
            for node in members:
                self.homes.setdefault(node, []).append(block)

    def is_split(self, largest: float) -> bool:
        """Whether there are several blocks, of which none has more than a share of the links that leave a choice."""
        choices = [size for size in self.sizes.values() if size > 1]
        return len(self.sizes) > 1 and max(choices, default=0) <= largest * sum(choices)

    def blocks(self) -> Blocks | None:
        """The parts, unless a link that is a block of its own is too small."""
        demands: dict[int, list[Topic]] = {}
        stand_ins: dict[int, dict[str, tuple[str, set[Role]]]] = {}
        impossible: set[tuple[Key, str]] = set()
        forced: dict[Key, list[Hop]] = {}
        load: dict[int, float] = {}
        cost = 0.0
        for topic in self.instance.topics:
            for block, (entry, exits) in self._crossed(topic, impossible).items():
                if self.sizes[block] == 1:
                    hop = self._hop(block, entry, exits)
                    forced.setdefault(topic.key, []).append(hop)
                    load[block] = load.get(block, 0.0) + topic.rate
                    cost += self.links[frozenset(self.members[block])].cost * len(exits)
                    continue
                demands.setdefault(block, []).append(msgspec.structs.replace(topic, subscribers=tuple(exits)))
                clients = stand_ins.setdefault(block, {})
                if entry != topic.source:
                    clients.setdefault(topic.source, (entry, set()))[1].add("publisher")
                for subscriber, exit_ in exits.items():
                    if exit_ != subscriber:
                        clients.setdefault(subscriber, (exit_, set()))[1].add("subscriber")
        if any(rate > self.links[frozenset(self.members[block])].capacity for block, rate in load.items()):
            return None
        order = sorted(demands, key=lambda block: (self.sizes[block] * len(demands[block]), block))
        own: dict[int, set[frozenset[str]]] = {block: set() for block in order}
        for pair, home in self.block_of.items():
            if home in own:
                own[home].add(pair)
        return Blocks(
            original=self.instance,
            parts=tuple(self._part(block, tuple(demands[block]), stand_ins.get(block, {})) for block in order),
            links=tuple(frozenset(own[block]) for block in order),
            forced=forced,
            forced_cost=cost,
            impossible=frozenset(impossible),
        )

    def _hop(self, block: int, entry: str, exits: dict[str, str]) -> Hop:
        """The hop over a block's only link."""
        (other,) = self.members[block] - {entry}
        return Hop(tail=entry, head=other, subscribers=tuple(exits))

    def _crossed(self, topic: Topic, impossible: set[tuple[Key, str]]) -> dict[int, tuple[str, dict[str, str]]]:
        """The blocks that a topic passes: where it enters each, and where each subscriber's way leaves it."""
        came: dict[str, tuple[str, int]] = {}
        seen_blocks: set[int] = set()
        stack = [topic.source]
        reached = {topic.source}
        wanted = set(topic.subscribers)
        while stack and wanted - reached:
            node = stack.pop()
            # a client that is not the source passes nothing on
            if node != topic.source and not self.nodes[node].is_broker:
                continue
            for block in self.homes.get(node, ()):
                if block in seen_blocks:
                    continue
                seen_blocks.add(block)
                for other in self.members[block] - reached:
                    reached.add(other)
                    came[other] = (node, block)
                    if len(self.homes[other]) > 1:
                        stack.append(other)
        found: dict[int, tuple[str, dict[str, str]]] = {}
        for subscriber in topic.subscribers:
            if subscriber not in reached:
                impossible.add((topic.key, subscriber))
                continue
            node = subscriber
            while node != topic.source:
                entry, block = came[node]
                found.setdefault(block, (entry, {}))[1][subscriber] = node
                node = entry
        return found

    def _part(self, block: int, topics: tuple[Topic, ...], stand_ins: dict[str, tuple[str, set[Role]]]) -> Instance:
        members = self.members[block]
        return Instance(
            name=f"{self.instance.name}/{block}",
            nodes=(
                *(node for node in self.instance.nodes if node.id in members),
                *(Node(id=name, roles=tuple(sorted(roles))) for name, (_, roles) in stand_ins.items()),
            ),
            links=(
                *(link for link in self.instance.links if self.block_of[frozenset((link.a, link.b))] == block),
                *(Link(a=name, b=at, capacity=UNLIMITED, cost=0.0) for name, (at, _) in stand_ins.items()),
            ),
            topics=topics,
            unmet_cost=self.instance.unmet_cost,
        )
