"""What a cheapest tree costs, and one that must use some arc, for a few subscribers of one topic.

Theory of operation
-------------------
:func:`deliver` says for every node and every set of a few subscribers what it costs to serve the set from there, when
an arc costs ``unit`` per subscriber served through it and ``fixed`` once.  That is the algorithm of Dreyfus and Wagner:
what serves a set from a node either splits there into two smaller sets, or moves on along one arc.  :func:`through`
looks at the same from outside, and so knows the least cost over every arc.  The work grows with 3 to the number of
subscribers; callers keep that number small.  Who wants only the cheapest tree asks :mod:`tieline.plan.kernels.steiner`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats, Ints
from tieline.plan.kernels.heap import pop_node, push_node
from tieline.plan.kernels.network import Net


class Delivery(NamedTuple):
    """A few subscribers of one topic, and what it costs to serve them or to leave them unmet."""

    source: int
    targets: Ints
    #: What an unmet subscriber costs.
    price: float
    #: Per arc: its cost for every subscriber served through it, and once; an infinite ``unit`` closes it.
    unit: Floats
    fixed: Floats


@compiled
def deliver(net: Net, group: Delivery, table: Floats) -> float:
    """The least cost of serving or pricing all targets of a group.

    ``table``, with a row per set and a column per node, is left filled for :func:`through`.
    """
    is_broker, source, targets, price = net.is_broker, group.source, group.targets, group.price
    unit, fixed = group.unit, group.fixed
    nodes = len(is_broker)
    count = len(targets)
    full = (1 << count) - 1
    heap = np.empty(nodes, np.int64)
    place = np.full(nodes, -1, np.int64)
    for chosen in range(1, full + 1):
        row = table[chosen]
        row[:] = np.inf
        members = 0
        for bit in range(count):
            members += (chosen >> bit) & 1
            if chosen == 1 << bit:
                row[targets[bit]] = 0.0
        part = (chosen - 1) & chosen
        while part > chosen ^ part:
            one = table[part]
            other = table[chosen ^ part]
            for node in range(nodes):
                if is_broker[node] or node == source:
                    row[node] = min(row[node], one[node] + other[node])
            part = (part - 1) & chosen
        size = 0
        for node in range(nodes):
            if row[node] < np.inf:
                size = push_node(heap, place, size, row, node)
        while size:
            node = pop_node(heap, place, size, row)
            size -= 1
            if node == source:
                # nothing enters the source
                continue
            for position in range(net.out_start[node], net.out_start[node + 1]):
                # the arc that enters this node is the other one of its link
                arc = net.out_arc[position] ^ 1
                before = net.tail[arc]
                reached = row[node] + members * unit[arc] + fixed[arc]
                if reached < row[before] and (is_broker[before] or before == source):
                    row[before] = reached
                    size = push_node(heap, place, size, row, before)
    best = price * count
    for chosen in range(1, full + 1):
        members = 0
        for bit in range(count):
            members += (chosen >> bit) & 1
        best = min(best, table[chosen, source] + price * (count - members))
    return best


@compiled
def through(net: Net, group: Delivery, table: Floats, outside: Floats, least: Floats) -> None:
    """Per arc, the least cost of serving or pricing all targets if the arc is used; after :func:`deliver`.

    ``table`` says what serving a set from a node costs; ``outside`` becomes what everything else costs, the way to that
    node included.  The sum over an arc, minimal over sets, goes to ``least``.
    """
    is_broker, unit, fixed, source, price = net.is_broker, group.unit, group.fixed, group.source, group.price
    nodes = len(is_broker)
    count = len(group.targets)
    full = (1 << count) - 1
    heap = np.empty(nodes, np.int64)
    place = np.full(nodes, -1, np.int64)
    least[:] = np.inf
    for chosen in range(full, 0, -1):
        row = outside[chosen]
        members = 0
        for bit in range(count):
            members += (chosen >> bit) & 1
        row[:] = np.inf
        # at the source: the others are served from it too, or left out
        others = full ^ chosen
        part = others
        while True:
            served = 0
            for bit in range(count):
                served += (part >> bit) & 1
            beside = price * (count - members - served)
            if part > 0:
                beside += table[part, source]
            row[source] = min(row[source], beside)
            if part == 0:
                break
            part = (part - 1) & others
        # elsewhere: a larger set arrived, and the others leave from here
        part = others
        while part > 0:
            larger = outside[chosen | part]
            leaving = table[part]
            for node in range(nodes):
                if is_broker[node]:
                    row[node] = min(row[node], larger[node] + leaving[node])
            part = (part - 1) & others
        size = 0
        for node in range(nodes):
            if row[node] < np.inf:
                size = push_node(heap, place, size, row, node)
        inside = table[chosen]
        while size:
            node = pop_node(heap, place, size, row)
            size -= 1
            if not (is_broker[node] or node == source):
                continue
            for position in range(net.out_start[node], net.out_start[node + 1]):
                arc = net.out_arc[position]
                there = net.head[arc]
                reached = row[node] + members * unit[arc] + fixed[arc]
                least[arc] = min(least[arc], reached + inside[there])
                if reached < row[there] and there != source:
                    row[there] = reached
                    size = push_node(heap, place, size, row, there)
