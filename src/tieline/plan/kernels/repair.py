"""Failed links, and room for one more request at the cost of as few moved flows as possible."""

from __future__ import annotations

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats
from tieline.plan.kernels.memory import SearchMemory, take_off, undo
from tieline.plan.kernels.network import BOUNDLESS, Net
from tieline.plan.kernels.state import State, leave, passes, restore
from tieline.plan.kernels.victims import blockers
from tieline.plan.kernels.ways import Scratch, find, join


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
def make_room(  # numba passes arrays, not objects
    net: Net,
    state: State,
    scratch: Scratch,
    memory: SearchMemory,
    request: int,
    free: Floats,
    present: float,
    tries: int,
) -> bool:
    """Serve an unmet request by moving flows that fill its way; whether that was possible.

    Few are moved first; those that can return to the way they had.  Nobody is dropped who is worth as much.
    """
    topic = net.request_topic[request]
    for attempt in range(tries):
        size = min(len(memory.chosen), 2 + attempt * len(memory.chosen) // tries)
        count = blockers(net, state, scratch, memory, request, size, present)
        before = take_off(net, state, memory, count)
        after = 0.0
        _, cost, length = find(net, state, scratch, request, free, np.inf, -1)
        if length < 0 or cost > net.price[topic]:
            undo(net, state, memory, count)
            continue
        join(net, state, scratch, request, length)
        after += cost
        for place in range(1, count):
            after += _return(net, state, scratch, memory, place, free)
        if after < before - 1e-9:
            return True
        undo(net, state, memory, count)
    return False


@compiled
def _return(net: Net, state: State, scratch: Scratch, memory: SearchMemory, place: int, free: Floats) -> float:
    """A victim returns, over its old way if that is free and agrees with its topic's tree; what it contributes."""
    victim = memory.chosen[place]
    topic = net.request_topic[victim]
    cost = 0.0
    is_open = memory.old_length[place] >= 0
    for step in range(memory.old_length[place]):
        arc = memory.old_way[place, step]
        cost += net.cost[arc >> 1]
        entering = state.entering[net.head[arc], topic]
        if entering != arc and (entering >= 0 or state.room[arc >> 1] < net.rate[topic]):
            is_open = False
    if is_open and not net.counts_connections and net.n_max == BOUNDLESS:
        restore(net, state, victim, memory.old_way[place], memory.old_length[place])
        return cost
    _, cost, length = find(net, state, scratch, victim, free, np.inf, -1)
    if length < 0 or cost > net.price[topic]:
        return float(net.price[topic])
    join(net, state, scratch, victim, length)
    return cost
