"""Chains: a broker with two links, and nobody's source or subscriber, becomes part of one longer link.

Whatever enters it by one link leaves it by the other, so the longer link costs what both cost and carries what the
smaller carries. Where the ends are already joined the broker stays: two links between the same nodes have no place in
an instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from tieline.plan.instance import Instance, Link
from tieline.plan.reduce.reduction import Reduction, unchanged
from tieline.plan.routes import Hop, Route


def without_chains(instance: Instance) -> Reduction:
    """The instance with its chains contracted."""
    ends = {node for topic in instance.topics for node in (topic.source, *topic.subscribers)}
    near: dict[str, dict[str, Link]] = {node.id: {} for node in instance.nodes}
    #: The brokers inside each longer link, from its a to its b.
    inside: dict[frozenset[str], tuple[str, ...]] = {}
    for link in instance.links:
        near[link.a][link.b] = near[link.b][link.a] = link
    gone: set[str] = set()
    for node in instance.nodes:
        if not node.is_broker or node.id in ends or len(near[node.id]) != 2:
            continue
        if node.max_connections is not None and node.max_connections < 2:
            continue
        (a, first), (b, second) = near[node.id].items()
        if b in near[a]:
            continue
        inside[frozenset((a, b))] = (*_between(inside, first, a), node.id, *_between(inside, second, node.id))
        longer = Link(
            a=a,
            b=b,
            capacity=min(first.capacity, second.capacity),
            cost=first.cost + second.cost,
            latency=first.latency + second.latency,
        )
        del near[a][node.id], near[b][node.id]
        near[node.id] = {}
        near[a][b] = near[b][a] = longer
        gone.add(node.id)
    if not gone:
        return unchanged(instance)
    links = {id(link): link for links in near.values() for link in links.values()}
    smaller = msgspec.structs.replace(
        instance, nodes=tuple(node for node in instance.nodes if node.id not in gone), links=tuple(links.values())
    )
    starts = {frozenset((link.a, link.b)): link.a for link in links.values()}

    def lift(routes: Sequence[Route]) -> tuple[Route, ...]:
        return tuple(_lifted(route, inside, starts) for route in routes)

    return Reduction(original=instance, instance=smaller, lift=lift)


def _between(inside: dict[frozenset[str], tuple[str, ...]], link: Link, start: str) -> tuple[str, ...]:
    """The brokers inside a link, seen from one of its ends."""
    brokers = inside.pop(frozenset((link.a, link.b)), ())
    return brokers if link.a == start else brokers[::-1]


def _lifted(route: Route, inside: dict[frozenset[str], tuple[str, ...]], starts: dict[frozenset[str], str]) -> Route:
    hops = []
    for hop in route.links:
        pair = frozenset((hop.tail, hop.head))
        brokers = inside.get(pair, ())
        way = (hop.tail, *(brokers if starts[pair] == hop.tail else brokers[::-1]), hop.head)
        hops += [Hop(tail=tail, head=head, subscribers=hop.subscribers) for tail, head in pairwise(way)]
    return msgspec.structs.replace(route, links=tuple(hops))
