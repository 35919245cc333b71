"""The cheapest way by which one more request joins its topic's tree, and how it joins and leaves.

Theory of operation
-------------------
A way starts at any node of the tree, at the cost at which the tree reaches that node: links of the tree are free of
capacity, not of cost.  Every further link costs its cost, the rate times its price, and, if it has no room for the
topic, either ``present`` per unit that is missing or, when that is infinite, it is closed.  The search is guided by
the cheapest ways through the empty network (A*): prices only add to them, so the guide never errs on the dear side.

Nodes of the tree keep the way they have, since others are served over it.  A run leaves the way on the desk.
"""

from __future__ import annotations

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Flags, Floats
from tieline.plan.loops.heap import pop, push
from tieline.plan.loops.values import Desk, Net, Small, State


@compiled
def find(
    net: Net, state: State, desk: Desk, request: int, price: Floats, present: float, closed: int
) -> tuple[float, float, int]:
    """The cheapest way for a request: what it weighs, what it costs in truth, and its number of new arcs (-1: none).

    ``price`` is per link and unit of rate; ``closed`` is a link that may not be used, or -1.
    """
    weight, cost, length = _search(net, state, desk, request, price, present, closed, False)
    if length < 0 and net.max_latency[net.request_topic[request]] < np.inf:
        # the cheapest way is too slow, or hid a faster one
        return _search(net, state, desk, request, price, present, closed, True)
    return weight, cost, length


@compiled
def _search(
    net: Net, state: State, desk: Desk, request: int, price: Floats, present: float, closed: int, in_hurry: bool
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
    desk.run[0] += 1
    run = desk.run[0]
    size = _label_tree(net, state, desk, topic, target, guide, guidance)
    if desk.seen[target] == run:
        return desk.distance[target], desk.distance[target], (-1 if desk.delay[target] > latest else 0)
    while size > 0:
        node = pop(desk.keys, desk.items, size)
        size -= 1
        if node == target:
            break
        if desk.done[node] == run:
            continue
        desk.done[node] = run
        here = desk.delay[node] if in_hurry else desk.distance[node]
        for position in range(net.out_start[node], net.out_start[node + 1]):
            arc = net.out_arc[position]
            there = net.head[arc]
            if desk.done[there] == run or guide[there] == np.inf or not (net.is_broker[there] or there == target):
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
            delay = desk.delay[node] + net.latency[link]
            reached = delay if in_hurry else here + weight
            if desk.seen[there] == run:
                known = desk.delay[there] if in_hurry else desk.distance[there]
                if reached >= known or there == source or state.entering[there, topic] >= 0:
                    continue
            if delay > latest or (net.counts_connections and not _may_connect(net, state, desk, node, arc)):
                continue
            desk.seen[there] = run
            desk.distance[there] = desk.distance[node] + weight
            desk.delay[there] = delay
            desk.arrival[there] = arc
            size = push(desk.keys, desk.items, size, reached + guidance * guide[there], there)
    if desk.seen[target] != run:
        return np.inf, np.inf, -1
    length = 0
    node = target
    cost = 0.0
    while node != source and state.entering[node, topic] < 0:
        arc = desk.arrival[node]
        desk.way[length] = arc
        length += 1
        cost += net.cost[arc >> 1]
        node = net.tail[arc]
    return desk.distance[target], cost + desk.distance[node], length


@compiled
def _label_tree(net: Net, state: State, desk: Desk, topic: int, target: int, guide: Floats, guidance: float) -> int:
    """Label the nodes of a topic's tree and put those into the heap from which it may go on; the size of the heap."""
    run = desk.run[0]
    source = net.source[topic]
    desk.seen[source] = run
    desk.distance[source] = 0.0
    desk.delay[source] = 0.0
    desk.arrival[source] = -1
    desk.fanout[source] = 0
    size = 0
    count = 0
    # the nodes of the tree are collected in ``way``: it is free until there is a way
    for request in range(net.request_start[topic], net.request_start[topic + 1]):
        if not state.served[request]:
            continue
        node = net.request_node[request]
        climbed = 0
        branches = 0
        while desk.seen[node] != run:
            desk.way[count + climbed] = node
            climbed += 1
            desk.seen[node] = run
            desk.fanout[node] = branches
            branches = 1
            node = net.tail[state.entering[node, topic]]
        desk.fanout[node] += branches
        for position in range(count + climbed - 1, count - 1, -1):
            node = desk.way[position]
            arc = state.entering[node, topic]
            before = net.tail[arc]
            desk.arrival[node] = arc
            desk.distance[node] = desk.distance[before] + net.cost[arc >> 1]
            desk.delay[node] = desk.delay[before] + net.latency[arc >> 1]
        count += climbed
    for position in range(-1, count):
        node = source if position < 0 else desk.way[position]
        if node == target:
            continue
        # a node of the tree is never labelled again: mark it as expanded unless it may send the topic on
        if not (net.is_broker[node] or node == source) or (net.is_broker[node] and desk.fanout[node] >= net.n_max):
            desk.done[node] = run
        elif guide[node] < np.inf:
            key = desk.distance[node] + guide[node] if guidance > 0 else desk.delay[node]
            size = push(desk.keys, desk.items, size, key, node)
    return size


@compiled
def _may_connect(net: Net, state: State, desk: Desk, node: int, arc: int) -> bool:
    """Whether a way that has come to a node may open one more link there."""
    if state.users[arc >> 1] > 0:
        return True
    opened = 1
    before = desk.arrival[node]
    if before >= 0 and state.users[before >> 1] == 0:
        opened = 2
    there = net.head[arc]
    return bool(
        state.connections[node] + opened <= net.max_connections[node]
        and state.connections[there] + 1 <= net.max_connections[there]
    )


@compiled
def join(net: Net, state: State, desk: Desk, request: int, length: int) -> None:
    """Serve a request over the first ``length`` arcs of the way on the desk and the tree that they start from."""
    topic = net.request_topic[request]
    for position in range(length):
        take(net, state, topic, desk.way[position])
    state.served[request] = True
    node = net.request_node[request]
    while node != net.source[topic]:
        state.through[node, topic] += 1
        node = net.tail[state.entering[node, topic]]


@compiled
def take(net: Net, state: State, topic: int, arc: int) -> None:
    """Let a topic use an arc."""
    state.entering[net.head[arc], topic] = arc
    link = arc >> 1
    state.room[link] -= net.rate[topic]
    state.rent[0] += net.rate[topic] * state.worth[link]
    if state.users[link] == 0:
        state.connections[net.tail[arc]] += 1
        state.connections[net.head[arc]] += 1
    state.users[link] += 1


@compiled
def leave(net: Net, state: State, request: int) -> float:
    """Leave a request unmet and free what served nobody else; the cost of the way it had."""
    topic = net.request_topic[request]
    state.served[request] = False
    node = net.request_node[request]
    cost = 0.0
    while node != net.source[topic]:
        arc = state.entering[node, topic]
        link = arc >> 1
        cost += net.cost[link]
        state.through[node, topic] -= 1
        if state.through[node, topic] == 0:
            state.entering[node, topic] = -1
            state.room[link] += net.rate[topic]
            state.rent[0] -= net.rate[topic] * state.worth[link]
            state.users[link] -= 1
            if state.users[link] == 0:
                state.connections[net.tail[arc]] -= 1
                state.connections[net.head[arc]] -= 1
        node = net.tail[arc]
    return cost


@compiled
def way_worth(net: Net, state: State, request: int) -> float:
    """What the way of a served request costs, and its part of the worth of the capacity that its topic takes."""
    topic = net.request_topic[request]
    rate = net.rate[topic]
    node = net.request_node[request]
    total = 0.0
    while node != net.source[topic]:
        arc = state.entering[node, topic]
        total += net.cost[arc >> 1] + rate * state.worth[arc >> 1] / state.through[node, topic]
        node = net.tail[arc]
    return total


@compiled
def way_cost(net: Net, state: State, request: int) -> float:
    """What the way of a served request costs."""
    topic = net.request_topic[request]
    node = net.request_node[request]
    cost = 0.0
    while node != net.source[topic]:
        arc = state.entering[node, topic]
        cost += net.cost[arc >> 1]
        node = net.tail[arc]
    return cost


@compiled
def write_way(net: Net, state: State, request: int, way: Small) -> int:
    """Write the arcs of a request's way down, target first; their number, or -1 if it is unmet."""
    if not state.served[request]:
        return -1
    topic = net.request_topic[request]
    node = net.request_node[request]
    length = 0
    while node != net.source[topic]:
        arc = state.entering[node, topic]
        way[length] = arc
        length += 1
        node = net.tail[arc]
    return length


@compiled
def restore(net: Net, state: State, request: int, way: Small, length: int) -> None:
    """Serve an unmet request over a way that agrees with its topic's tree."""
    topic = net.request_topic[request]
    state.served[request] = True
    for place in range(length):
        head = net.head[way[place]]
        if state.entering[head, topic] < 0:
            take(net, state, topic, way[place])
        state.through[head, topic] += 1


@compiled
def erect(net: Net, state: State, entering: Small, served: Flags) -> None:
    """Serve requests of an empty state over ways that are given as the arcs by which topics enter nodes."""
    for request in range(len(served)):
        if not served[request]:
            continue
        state.served[request] = True
        topic = net.request_topic[request]
        node = net.request_node[request]
        while node != net.source[topic]:
            arc = entering[node, topic]
            if state.through[node, topic] == 0:
                take(net, state, topic, arc)
            state.through[node, topic] += 1
            node = net.tail[arc]
