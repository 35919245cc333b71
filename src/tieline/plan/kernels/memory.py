"""What the neighbourhood search remembers: who was taken off, the ways they had, and the best plan so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.kernels.chance import Seed, seeded
from tieline.plan.kernels.network import Net, Small
from tieline.plan.kernels.state import State, leave, restore, write_way


class SearchMemory(NamedTuple):
    """The requests that are taken off together, the best plan, and the merits of each way of choosing."""

    seed: Seed
    #: Requests taken off together, the ways they had (target first), and the length of those; -1 where there was none.
    chosen: Ints
    old_way: Small
    old_length: Ints
    #: The order in which they return.
    order: Ints
    #: Per request: its way in the best plan so far.
    best_way: Small
    best_length: Ints
    #: Per request: whether its way may differ from the best plan's; and a list of those, with its length.
    is_dirty: Flags
    dirty: Ints
    dirty_count: Ints
    #: The objective of the plan that stands, and of the best.
    value: Floats
    #: Per request: what it pays at least at the worth of capacity; more is what it is wronged by.
    due: Floats
    #: Per way of choosing: how often it is used, and its recent merits.
    favour: Floats
    merit: Floats
    tries: Ints


def search_memory(arrays: Arrays, *, seed: int, largest: int, choices: int) -> SearchMemory:
    """A memory in which nothing is known; up to ``largest`` requests are taken off together."""
    longest = int(arrays.is_broker.sum()) + 2
    return SearchMemory(
        seed=seeded(seed),
        chosen=np.empty(largest, np.int64),
        old_way=np.empty((largest, longest), np.int32),
        old_length=np.empty(largest, np.int64),
        order=np.empty(largest, np.int64),
        best_way=np.empty((arrays.requests, longest), np.int32),
        best_length=np.full(arrays.requests, -1, np.int64),
        is_dirty=np.ones(arrays.requests, np.bool_),
        dirty=np.arange(arrays.requests, dtype=np.int64),
        dirty_count=np.array([arrays.requests], np.int64),
        value=np.full(2, np.inf),
        due=np.zeros(arrays.requests),
        favour=np.ones(choices),
        merit=np.zeros(choices),
        tries=np.zeros(choices, np.int64),
    )


@compiled
def take_off(net: Net, state: State, memory: SearchMemory, count: int) -> float:
    """The chosen requests leave; what they and the unmet among them contributed to the objective."""
    total = 0.0
    for place in range(count):
        request = memory.chosen[place]
        memory.old_length[place] = write_way(net, state, request, memory.old_way[place])
    for place in range(count):
        request = memory.chosen[place]
        if state.served[request]:
            total += leave(net, state, request)
        else:
            total += net.price[net.request_topic[request]]
    return total


@compiled
def undo(net: Net, state: State, memory: SearchMemory, count: int) -> None:
    """Put the old ways back."""
    for place in range(count):
        if state.served[memory.chosen[place]]:
            leave(net, state, memory.chosen[place])
    for place in range(count):
        if memory.old_length[place] >= 0:
            restore(net, state, memory.chosen[place], memory.old_way[place], memory.old_length[place])


@compiled
def remember(net: Net, state: State, memory: SearchMemory) -> None:
    """The plan that stands is the best: write down the ways that may differ."""
    memory.value[1] = memory.value[0]
    for place in range(memory.dirty_count[0]):
        request = memory.dirty[place]
        memory.is_dirty[request] = False
        memory.best_length[request] = write_way(net, state, request, memory.best_way[request])
    memory.dirty_count[0] = 0


@compiled
def recall(net: Net, state: State, memory: SearchMemory) -> None:
    """Let the best plan stand again."""
    for place in range(memory.dirty_count[0]):
        request = memory.dirty[place]
        if state.served[request]:
            leave(net, state, request)
    for place in range(memory.dirty_count[0]):
        request = memory.dirty[place]
        memory.is_dirty[request] = False
        if memory.best_length[request] >= 0:
            restore(net, state, request, memory.best_way[request], memory.best_length[request])
    memory.dirty_count[0] = 0
    memory.value[0] = memory.value[1]
