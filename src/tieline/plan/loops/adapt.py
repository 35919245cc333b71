"""Failed links, and room for one more request at the cost of as few moved flows as possible."""

from __future__ import annotations

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats
from tieline.plan.loops.anneal import take_off, undo
from tieline.plan.loops.choose import blockers
from tieline.plan.loops.negotiate import passes
from tieline.plan.loops.values import BOUNDLESS, Desk, Net, Search, State
from tieline.plan.loops.ways import find, join, leave, restore


@compiled
def close_link(net: Net, state: State, link: int) -> None:
    """Leave all requests unmet that are served over a link."""
    for request in range(len(net.request_node)):
        if state.served[request] and passes(net, state, request, link):
            leave(net, state, request)


@compiled
def load_on(net: Net, state: State, link: int) -> float:
    """How much of a link the topics take that use it."""
    load = 0.0
    for topic in range(len(net.source)):
        if (
            state.entering[net.head[2 * link], topic] == 2 * link
            or state.entering[net.head[2 * link + 1], topic] == 2 * link + 1
        ):
            load += net.rate[topic]
    return load


@compiled
def make_room(
    net: Net, state: State, desk: Desk, search: Search, request: int, free: Floats, present: float, tries: int
) -> bool:
    """Serve an unmet request by moving flows that fill its way; whether that was possible.

    Few are moved first; those that can return to the way they had.  Nobody is dropped who is worth as much.
    """
    topic = net.request_topic[request]
    for attempt in range(tries):
        size = min(len(search.chosen), 2 + attempt * len(search.chosen) // tries)
        count = blockers(net, state, desk, search, request, size, present)
        before = take_off(net, state, search, count)
        after = 0.0
        _, cost, length = find(net, state, desk, request, free, np.inf, -1)
        if length < 0 or cost > net.price[topic]:
            undo(net, state, search, count)
            continue
        join(net, state, desk, request, length)
        after += cost
        for place in range(1, count):
            after += _return(net, state, desk, search, place, free)
        if after < before - 1e-9:
            return True
        undo(net, state, search, count)
    return False


@compiled
def _return(net: Net, state: State, desk: Desk, search: Search, place: int, free: Floats) -> float:
    """A victim returns, over its old way if that is free and agrees with its topic's tree; what it contributes."""
    victim = search.chosen[place]
    topic = net.request_topic[victim]
    cost = 0.0
    is_open = search.old_length[place] >= 0
    for step in range(search.old_length[place]):
        arc = search.old_way[place, step]
        cost += net.cost[arc >> 1]
        entering = state.entering[net.head[arc], topic]
        if entering != arc and (entering >= 0 or state.room[arc >> 1] < net.rate[topic]):
            is_open = False
    if is_open and not net.counts_connections and net.n_max == BOUNDLESS:
        restore(net, state, victim, search.old_way[place], search.old_length[place])
        return cost
    _, cost, length = find(net, state, desk, victim, free, np.inf, -1)
    if length < 0 or cost > net.price[topic]:
        return float(net.price[topic])
    join(net, state, desk, victim, length)
    return cost
