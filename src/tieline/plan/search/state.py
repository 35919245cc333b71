"""Between trees as values and the dense state that the loops change."""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats
from tieline.plan.loops.values import Net, State
from tieline.plan.loops.ways import erect
from tieline.plan.routes import Trees, no_trees


def empty_state(arrays: Arrays, net: Net) -> State:
    """Nobody is served."""
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
