"""Shortest ways, and what a cheapest tree costs that must use some arc, in the part of Python that numba compiles.

Theory of operation
-------------------
:func:`spread` is Dijkstra's algorithm from a set of nodes that already have distances, along arcs that leave brokers
or the source.  :func:`deliver` says for every node and every set of a few subscribers of one topic what it costs to
serve the set from there, when an arc costs ``unit`` per subscriber served through it and ``fixed`` once.  That is the
algorithm of Dreyfus and Wagner: what serves a set from a node either splits there into two smaller sets, or moves on
along one arc.  :func:`through` looks at the same from outside, and so knows the least cost over every arc.  The work
grows with 3 to the number of subscribers; callers keep that number small.  Who wants only the cheapest tree asks
:mod:`tieline.plan.loops.grove`.
"""

from __future__ import annotations

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Flags, Floats, Ints


@compiled
def _push(heap: Ints, place: Ints, size: int, key: Floats, node: int) -> int:
    """Put a node into the heap, or move it up when its key has become smaller; the new size of the heap."""
    hole = place[node]
    if hole < 0:
        hole = size
        size += 1
    while hole > 0:
        above = (hole - 1) >> 2
        other = heap[above]
        if key[other] <= key[node]:
            break
        heap[hole] = other
        place[other] = hole
        hole = above
    heap[hole] = node
    place[node] = hole
    return size


@compiled
def _pop(heap: Ints, place: Ints, size: int, key: Floats) -> int:
    """Take the node with the smallest key; the caller knows that the heap is one smaller now."""
    top = heap[0]
    place[top] = -1
    size -= 1
    if size == 0:
        return int(top)
    node = heap[size]
    hole = 0
    while True:
        first = 4 * hole + 1
        if first >= size:
            break
        best = first
        for child in range(first + 1, min(first + 4, size)):
            if key[heap[child]] < key[heap[best]]:
                best = child
        other = heap[best]
        if key[other] >= key[node]:
            break
        heap[hole] = other
        place[other] = hole
        hole = best
    heap[hole] = node
    place[node] = hole
    return int(top)


@compiled
def spread(
    out_start: Ints,
    out_arc: Ints,
    head: Ints,
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
            size = _push(heap, place, size, distance, node)
    while size:
        node = _pop(heap, place, size, distance)
        size -= 1
        if node == target:
            return
        if not relays[node]:
            continue
        here = distance[node]
        for position in range(out_start[node], out_start[node + 1]):
            arc = out_arc[position]
            there = head[arc]
            reached = here + weight[arc]
            if reached < distance[there] and not is_fixed[there]:
                distance[there] = reached
                entering[there] = arc
                size = _push(heap, place, size, distance, there)


@compiled
def deliver(
    in_start: Ints,
    in_arc: Ints,
    tail: Ints,
    is_broker: Flags,
    unit: Floats,
    fixed: Floats,
    source: int,
    targets: Ints,
    price: float,
    table: Floats,
) -> float:
    """The least cost of serving or pricing all targets.

    ``unit`` and ``fixed`` are per arc; an arc with an infinite ``unit`` is not used.  ``table``, with a row per set and
    a column per node, is left filled for :func:`through`.
    """
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
                size = _push(heap, place, size, row, node)
        while size:
            node = _pop(heap, place, size, row)
            size -= 1
            if node == source:
                # nothing enters the source
                continue
            for position in range(in_start[node], in_start[node + 1]):
                arc = in_arc[position]
                before = tail[arc]
                reached = row[node] + members * unit[arc] + fixed[arc]
                if reached < row[before] and (is_broker[before] or before == source):
                    row[before] = reached
                    size = _push(heap, place, size, row, before)
    best = price * count
    for chosen in range(1, full + 1):
        members = 0
        for bit in range(count):
            members += (chosen >> bit) & 1
        best = min(best, table[chosen, source] + price * (count - members))
    return best


@compiled
def through(
    out_start: Ints,
    out_arc: Ints,
    head: Ints,
    is_broker: Flags,
    unit: Floats,
    fixed: Floats,
    source: int,
    count: int,
    price: float,
    table: Floats,
    outside: Floats,
    least: Floats,
) -> None:
    """Per arc, the least cost of serving or pricing all targets if the arc is used; after :func:`deliver`.

    ``table`` says what serving a set from a node costs; ``outside`` becomes what everything else costs, the way to that
    node included.  The sum over an arc, minimal over sets, goes to ``least``.
    """
    nodes = len(is_broker)
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
                size = _push(heap, place, size, row, node)
        inside = table[chosen]
        while size:
            node = _pop(heap, place, size, row)
            size -= 1
            if not (is_broker[node] or node == source):
                continue
            for position in range(out_start[node], out_start[node + 1]):
                arc = out_arc[position]
                there = head[arc]
                reached = row[node] + members * unit[arc] + fixed[arc]
                least[arc] = min(least[arc], reached + inside[there])
                if reached < row[there] and there != source:
                    row[there] = reached
                    size = _push(heap, place, size, row, there)
