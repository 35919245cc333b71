"""Shortest ways by Dijkstra's algorithm: from the nodes that a tree has, and from everywhere to what is wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.kernels.heap import pop, pop_node, push, push_node


class Arcs(NamedTuple):
    """Arcs that leave node v, ``arc[start[v]:start[v + 1]]``, and per arc the node that it enters."""

    start: Ints
    arc: Ints
    head: Ints


def leaving(arrays: Arrays) -> Arcs:
    """The arcs of an instance by the nodes that they leave."""
    return Arcs(start=arrays.out_start, arc=arrays.out_arc, head=arrays.head)


@compiled
def spread(
    arcs: Arcs,
    relays: Flags,
    weight: Floats,
    distance: Floats,
    entering: Ints,
    is_fixed: Flags,
    target: int,
) -> None:
    """Extend finite distances along arcs; fixed nodes keep theirs.  Stops at ``target``, or never if that is negative.

    ``entering`` receives the arc by which each new node is reached.  Arcs of infinite weight are not used.
    """
    nodes = len(distance)
    heap = np.empty(nodes, np.int64)
    place = np.full(nodes, -1, np.int64)
    size = 0
    for node in range(nodes):
        if distance[node] < np.inf:
            size = push_node(heap, place, size, distance, node)
    while size:
        node = pop_node(heap, place, size, distance)
        size -= 1
        if node == target:
            return
        if not relays[node]:
            continue
        here = distance[node]
        for position in range(arcs.start[node], arcs.start[node + 1]):
            arc = arcs.arc[position]
            there = arcs.head[arc]
            reached = here + weight[arc]
            if reached < distance[there] and not is_fixed[there]:
                distance[there] = reached
                entering[there] = arc
                size = push_node(heap, place, size, distance, there)


def distances(arrays: Arrays, topic: int, weight: Floats, entering: Ints | None = None) -> Floats:
    """How far each node is from a topic's source, when arcs have these weights; infinite where it may not go."""
    source = int(arrays.source[topic])
    relays = arrays.is_broker.copy()
    relays[source] = True
    distance = np.full(arrays.nodes, np.inf)
    distance[source] = 0.0
    if entering is None:
        entering = np.full(arrays.nodes, -1, np.int64)
    fixed = np.zeros(arrays.nodes, np.bool_)
    spread(leaving(arrays), relays, weight, distance, entering, fixed, -1)
    return distance


@compiled
def cheapest_ways(
    in_start: Ints, in_arc: Ints, tail: Ints, cost: Floats, is_broker: Flags, wanted: Ints, to_target: Floats
) -> None:
    """Dijkstra's algorithm backwards from every wanted node; only brokers pass anything on."""
    nodes = len(is_broker)
    keys = np.empty(len(tail) + nodes + 1)
    items = np.empty(len(tail) + nodes + 1, np.int64)
    for row in range(len(wanted)):
        distance = to_target[row]
        distance.fill(np.inf)
        target = wanted[row]
        distance[target] = 0.0
        size = push(keys, items, 0, 0.0, target)
        while size > 0:
            key = keys[0]
            node = pop(keys, items, size)
            size -= 1
            if key > distance[node] or not (is_broker[node] or node == target):
                continue
            for position in range(in_start[node], in_start[node + 1]):
                arc = in_arc[position]
                before = tail[arc]
                reached = key + cost[arc >> 1]
                if reached < distance[before]:
                    distance[before] = reached
                    size = push(keys, items, size, reached, before)
