"""Blocks: parts of the network that share single brokers are planned one by one.

Theory of operation
-------------------
A way between two blocks passes the broker that joins them, so every request has one sequence of blocks.  Inside a
block, what lies beyond a joining broker is stood for by a client attached to it at no cost.  Links belong to one block
each, and so do costs: if every block's plan serves everybody, together they are a plan that serves everybody, and if
each is optimal, so is the whole.  If some block cannot serve everybody, blocks must agree on whom to drop; then
nothing is gained, and the answer is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from tieline.match.events.extra import needs
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Role, Topic
from tieline.plan.objective import dearest_plan, unmet_price, weight
from tieline.plan.plan import Plan
from tieline.plan.routes import Hop, Route


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Blocks:
    """An instance in parts."""

    original: Instance
    parts: tuple[Instance, ...]
    #: Per part, the links that are its own: stand-ins may hang where another part has a link.
    links: tuple[frozenset[frozenset[str]], ...]
    #: Requests that cross a client, which relays nothing: no plan serves them.
    impossible: frozenset[tuple[tuple[str, str], str]]

    def join(self, plans: Sequence[Plan]) -> tuple[tuple[Route, ...], float] | None:
        """The routes of the whole and a lower bound of its objective; None if some part left a request unmet."""
        if any(plan.unmet for plan in plans):
            return None
        joined: dict[tuple[str, str], list[Hop]] = {}
        for plan, real in zip(plans, self.links, strict=True):
            for route in plan.routes:
                hops = joined.setdefault((route.topic, route.source), [])
                hops.extend(hop for hop in route.links if frozenset((hop.tail, hop.head)) in real)
        routes = []
        missed_weight = 0.0
        for topic in self.original.topics:
            missed = tuple(who for who in topic.subscribers if (topic.key, who) in self.impossible)
            missed_weight += len(missed) * (weight(topic) if self.original.unmet_cost is None else 1.0)
            links = tuple(joined.get(topic.key, ()))
            routes.append(Route(topic=topic.id, source=topic.source, links=links, unmet=missed))
        bound = sum(min(plan.bound, plan.objective) for plan in plans) + missed_weight * unmet_price(self.original)
        return tuple(routes), bound


def blocks(instance: Instance) -> Blocks | None:
    """The parts of an instance; None if it has one, or limits that concern several, or if dropping might pay."""
    if instance.n_max is not None or any(node.max_connections is not None for node in instance.nodes):
        return None
    if any(topic.max_latency is not None for topic in instance.topics):
        return None
    if instance.unmet_cost is not None and instance.unmet_cost <= dearest_plan(instance):
        return None
    splitter = _Splitter(instance)
    return splitter.blocks() if splitter.count > 1 else None


def plan_by_blocks(instance: Instance, solve: Callable[[Instance], Plan]) -> tuple[tuple[Route, ...], float] | None:
    """Routes and a bound from the plans of all blocks, or None where blocks do not help."""
    parts = blocks(instance)
    return None if parts is None else parts.join([solve(part) for part in parts.parts])


class _Splitter:
    """The tree of blocks and joining nodes."""

    def __init__(self, instance: Instance) -> None:
        with needs("plan"):
            import rustworkx

        self.instance = instance
        self.nodes = {node.id: node for node in instance.nodes}
        number = {node.id: place for place, node in enumerate(instance.nodes)}
        graph = rustworkx.PyGraph()
        graph.add_nodes_from(list(range(len(number))))
        graph.add_edges_from([(number[link.a], number[link.b], None) for link in instance.links])
        found = rustworkx.biconnected_components(graph)
        ids = [node.id for node in instance.nodes]
        self.block_of: dict[frozenset[str], int] = {
            frozenset((ids[a], ids[b])): block for (a, b), block in found.items()
        }
        self.count = len(set(self.block_of.values()))
        self.members: dict[int, set[str]] = {}
        for pair, block in self.block_of.items():
            self.members.setdefault(block, set()).update(pair)
        self.homes: dict[str, list[int]] = {}
        for block, members in self.members.items():
            for node in members:
                self.homes.setdefault(node, []).append(block)

    def blocks(self) -> Blocks:
        demands: dict[int, list[Topic]] = {}
        stand_ins: dict[int, dict[str, tuple[str, set[Role]]]] = {}
        impossible: set[tuple[tuple[str, str], str]] = set()
        for topic in self.instance.topics:
            crossed = self._crossed(topic, impossible)
            for block, (entry, exits) in crossed.items():
                demands.setdefault(block, []).append(msgspec.structs.replace(topic, subscribers=tuple(exits)))
                clients = stand_ins.setdefault(block, {})
                if entry != topic.source:
                    clients.setdefault(topic.source, (entry, set()))[1].add("publisher")
                for subscriber, exit_ in exits.items():
                    if exit_ != subscriber:
                        clients.setdefault(subscriber, (exit_, set()))[1].add("subscriber")
        order = sorted(demands)
        return Blocks(
            original=self.instance,
            parts=tuple(self._part(block, tuple(demands[block]), stand_ins.get(block, {})) for block in order),
            links=tuple(frozenset(pair for pair, home in self.block_of.items() if home == block) for block in order),
            impossible=frozenset(impossible),
        )

    def _crossed(
        self, topic: Topic, impossible: set[tuple[tuple[str, str], str]]
    ) -> dict[int, tuple[str, dict[str, str]]]:
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
