"""Trees as they stand while a search changes them, and how requests enter and leave them.

A state is a tuple of arrays, which numba passes as it is.  The trees are dense: a row per node and a column per topic,
so that all topics that enter a node lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.kernels.network import Net, Small
from tieline.plan.routes import Trees, no_trees


class State(NamedTuple):
    """The trees of all topics as they stand, and what they take of the network."""

    #: Per node and topic: the arc by which the topic enters the node, or -1.
    entering: Small
    #: Per node and topic: how many served requests lie at or behind the node.
    through: Small
    #: Per request.
    served: Flags
    #: Per link: capacity that is left; negative where it is exceeded.
    room: Floats
    #: Per link: how many topics use it.
    users: Ints
    #: Per node: how many of its links are used.
    connections: Ints
    #: Per link: what a unit of its capacity is worth to others; and, as one number, what all topics pay at these
    #: prices.
    worth: Floats
    rent: Floats


def empty_state(arrays: Arrays, net: Net) -> State:
    """The state in which nobody is served."""
    return State(
        entering=np.full((arrays.nodes, arrays.topics), -1, np.int32),
        through=np.zeros((arrays.nodes, arrays.topics), np.int32),
        served=np.zeros(arrays.requests, np.bool_),
        room=net.capacity.copy(),
        users=np.zeros(arrays.links, np.int64),
        connections=np.zeros(arrays.nodes, np.int64),
        worth=np.zeros(arrays.links),
        rent=np.zeros(1),
    )


def state_of(arrays: Arrays, net: Net, trees: Trees) -> State:
    """The state in which exactly these trees stand, without arcs that serve nobody."""
    state = empty_state(arrays, net)
    entering = np.full_like(state.entering, -1)
    for topic, tree in enumerate(trees.entering):
        entering[list(tree), topic] = list(tree.values())
    erect(net, state, entering, trees.served)
    return state


def overwrite(state: State, other: State) -> None:
    """Let a state be like another one, in the arrays that it has."""
    for field in State._fields:
        getattr(state, field)[...] = getattr(other, field)


def trees_of(arrays: Arrays, state: State, only: Flags | None = None) -> Trees:
    """The trees that stand; with ``only``, those of some topics."""
    trees = no_trees(arrays)
    chosen = np.arange(arrays.topics) if only is None else np.flatnonzero(only)
    nodes, places = np.nonzero(state.entering[:, chosen] >= 0)
    topics = chosen[places]
    arcs = state.entering[nodes, topics]
    for node, topic, arc in zip(nodes.tolist(), topics.tolist(), arcs.tolist(), strict=True):
        trees.entering[topic][node] = arc
    trees.served[:] = state.served
    return trees


def way_of(arrays: Arrays, state: State, request: int) -> list[int]:
    """The arcs of a served request's way, target first."""
    topic = int(arrays.request_topic[request])
    node = int(arrays.request_node[request])
    way = []
    while node != arrays.source[topic]:
        way.append(int(state.entering[node, topic]))
        node = int(arrays.tail[way[-1]])
    return way


def set_worth(state: State, net: Net, prices: Floats) -> None:
    """Let capacity be worth these prices."""
    state.worth[:] = prices
    limited = np.isfinite(net.capacity)
    state.rent[0] = float(prices[limited] @ (net.capacity[limited] - state.room[limited]))


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
def passes(net: Net, state: State, request: int, link: int) -> bool:
    """Whether a served request's way leads over a link."""
    topic = net.request_topic[request]
    node = net.request_node[request]
    while node != net.source[topic]:
        arc = state.entering[node, topic]
        if arc >> 1 == link:
            return True
        node = net.tail[arc]
    return False
