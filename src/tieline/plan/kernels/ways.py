"""The cheapest way by which one more request joins its topic's tree.

Theory of operation
-------------------
A way starts at any node of the tree, at the cost at which the tree reaches that node: links of the tree are free of
capacity, not of cost.  Every further link costs its cost, the rate times its price, and, if it has no room for the
topic, either ``present`` per unit that is missing or, when that is infinite, it is closed.  The search is guided by
the cheapest ways through the empty network (A*): prices only add to them, so the guide never errs on the dear side.

Nodes of the tree keep the way they have, since others are served over it.  A search leaves the way in scratch space,
from which :func:`join` takes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.kernels.heap import pop, push
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.state import State, take


class Scratch(NamedTuple):
    """Scratch space for searches, never cleared: what a run wrote has its number in ``seen``."""

    distance: Floats
    delay: Floats
    arrival: Ints
    #: Per node: the run that labelled it, and the run that expanded it.
    seen: Ints
    done: Ints
    #: Per node: over how many links the topic at hand leaves it.
    fanout: Ints
    #: The number of the run.
    run: Ints
    keys: Floats
    items: Ints
    #: The way last found, target first: arcs that the tree does not have yet.
    way: Ints


def scratch(arrays: Arrays) -> Scratch:
    """Scratch space for searches in an instance."""
    nodes = arrays.nodes
    return Scratch(
        distance=np.empty(nodes),
        delay=np.empty(nodes),
        arrival=np.empty(nodes, np.int64),
        seen=np.zeros(nodes, np.int64),
        done=np.zeros(nodes, np.int64),
        fanout=np.zeros(nodes, np.int64),
        run=np.zeros(1, np.int64),
        keys=np.empty(arrays.arcs + nodes + 1),
        items=np.empty(arrays.arcs + nodes + 1, np.int64),
        way=np.empty(nodes + 1, np.int64),
    )


@compiled
def find(
    net: Net, state: State, scratch: Scratch, request: int, price: Floats, present: float, closed: int
) -> tuple[float, float, int]:
    """The cheapest way for a request: what it weighs, what it costs in truth, and its number of new arcs (-1: none).

    ``price`` is per link and unit of rate; ``closed`` is a link that may not be used, or -1.
    """
    weight, cost, length = _search(net, state, scratch, request, price, present, closed, False)
    if length < 0 and net.max_latency[net.request_topic[request]] < np.inf:
        # the cheapest way is too slow, or hid a faster one
        return _search(net, state, scratch, request, price, present, closed, True)
    return weight, cost, length


@compiled
def _search(  # numba passes arrays, not objects
    net: Net, state: State, scratch: Scratch, request: int, price: Floats, present: float, closed: int, in_hurry: bool
) -> tuple[float, float, int]:
    """The cheapest way, or the fastest one."""
    topic = net.request_topic[request]
    target = net.request_node[request]
    source = net.source[topic]
    rate = net.rate[topic]
    latest = net.max_latency[topic]
    guide = net.to_target[net.row[request]]
    guidance = 0.0 if in_hurry else 1.0
    is_hard = present == np.inf
    scratch.run[0] += 1
    run = scratch.run[0]
    size = _label_tree(net, state, scratch, topic, target, guide, guidance)
    if scratch.seen[target] == run:
        return scratch.distance[target], scratch.distance[target], (-1 if scratch.delay[target] > latest else 0)
    while size > 0:
        node = pop(scratch.keys, scratch.items, size)
        size -= 1
        if node == target:
            break
        if scratch.done[node] == run:
            continue
        scratch.done[node] = run
        here = scratch.delay[node] if in_hurry else scratch.distance[node]
        for position in range(net.out_start[node], net.out_start[node + 1]):
            arc = net.out_arc[position]
            there = net.head[arc]
            if scratch.done[there] == run or guide[there] == np.inf or not (net.is_broker[there] or there == target):
                continue
            link = arc >> 1
            if rate > net.capacity[link] or link == closed:
                continue
            weight = net.cost[link] + rate * price[link]
            missing = rate - state.room[link]
            if missing > 0:
                if is_hard:
                    continue
                weight += present * missing
            delay = scratch.delay[node] + net.latency[link]
            reached = delay if in_hurry else here + weight
            if scratch.seen[there] == run:
                known = scratch.delay[there] if in_hurry else scratch.distance[there]
                if reached >= known or there == source or state.entering[there, topic] >= 0:
                    continue
            if delay > latest or (net.counts_connections and not _may_connect(net, state, scratch, node, arc)):
                continue
            scratch.seen[there] = run
            scratch.distance[there] = scratch.distance[node] + weight
            scratch.delay[there] = delay
            scratch.arrival[there] = arc
            size = push(scratch.keys, scratch.items, size, reached + guidance * guide[there], there)
    if scratch.seen[target] != run:
        return np.inf, np.inf, -1
    length = 0
    node = target
    cost = 0.0
    while node != source and state.entering[node, topic] < 0:
        arc = scratch.arrival[node]
        scratch.way[length] = arc
        length += 1
        cost += net.cost[arc >> 1]
        node = net.tail[arc]
    return scratch.distance[target], cost + scratch.distance[node], length


@compiled
def _label_tree(
    net: Net, state: State, scratch: Scratch, topic: int, target: int, guide: Floats, guidance: float
) -> int:
    """Label the nodes of a topic's tree and put those into the heap from which it may go on; the size of the heap."""
    run = scratch.run[0]
    source = net.source[topic]
    scratch.seen[source] = run
    scratch.distance[source] = 0.0
    scratch.delay[source] = 0.0
    scratch.arrival[source] = -1
    scratch.fanout[source] = 0
    size = 0
    count = 0
    # the nodes of the tree are collected in ``way``: it is free until there is a way
    for request in range(net.request_start[topic], net.request_start[topic + 1]):
        if not state.served[request]:
            continue
        node = net.request_node[request]
        climbed = 0
        branches = 0
        while scratch.seen[node] != run:
            scratch.way[count + climbed] = node
            climbed += 1
            scratch.seen[node] = run
            scratch.fanout[node] = branches
            branches = 1
            node = net.tail[state.entering[node, topic]]
        scratch.fanout[node] += branches
        for position in range(count + climbed - 1, count - 1, -1):
            node = scratch.way[position]
            arc = state.entering[node, topic]
            before = net.tail[arc]
            scratch.arrival[node] = arc
            scratch.distance[node] = scratch.distance[before] + net.cost[arc >> 1]
            scratch.delay[node] = scratch.delay[before] + net.latency[arc >> 1]
        count += climbed
    for position in range(-1, count):
        node = source if position < 0 else scratch.way[position]
        if node == target:
            continue
        # a node of the tree is never labelled again: mark it as expanded unless it may send the topic on
        if not (net.is_broker[node] or node == source) or (net.is_broker[node] and scratch.fanout[node] >= net.n_max):
            scratch.done[node] = run
        elif guide[node] < np.inf:
            key = scratch.distance[node] + guide[node] if guidance > 0 else scratch.delay[node]
            size = push(scratch.keys, scratch.items, size, key, node)
    return size


@compiled
def _may_connect(net: Net, state: State, scratch: Scratch, node: int, arc: int) -> bool:
    """Whether a way that has come to a node may open one more link there."""
    if state.users[arc >> 1] > 0:
        return True
    opened = 1
    before = scratch.arrival[node]
    if before >= 0 and state.users[before >> 1] == 0:
        opened = 2
    there = net.head[arc]
    return bool(
        state.connections[node] + opened <= net.max_connections[node]
        and state.connections[there] + 1 <= net.max_connections[there]
    )


@compiled
def join(net: Net, state: State, scratch: Scratch, request: int, length: int) -> None:
    """Serve a request over the first ``length`` arcs of the way in scratch space and the tree that they start from."""
    topic = net.request_topic[request]
    for position in range(length):
        take(net, state, topic, scratch.way[position])
    state.served[request] = True
    node = net.request_node[request]
    while node != net.source[topic]:
        state.through[node, topic] += 1
        node = net.tail[state.entering[node, topic]]
