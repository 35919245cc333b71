"""Which requests to take off together: those that stand in each other's way.

Every function fills ``search.chosen`` and says how many there are.  Related requests share a link, a node, or a
topic; the most promising start is a request that is wronged: unmet, or served over a way that is dearer, capacity at
its worth included, than the cheapest one in the relaxed problem.  What all requests are wronged by, and the worth of
idle capacity, add up to the gap.
"""

from __future__ import annotations

import numpy as np

from tieline.compiling import compiled
from tieline.plan.kernels.chance import below
from tieline.plan.kernels.memory import SearchMemory
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.state import State, leave, passes, restore, way_worth, write_way
from tieline.plan.kernels.ways import Scratch, find

#: How many are looked at to choose one that stands out.
_LOOKS = 6


@compiled
def around_link(net: Net, state: State, memory: SearchMemory, size: int) -> int:
    """Requests over one link, rather a full one."""
    link = -1
    least = np.inf
    for _ in range(_LOOKS):
        candidate = below(memory.seed, len(state.room))
        if state.users[candidate] > 1 and state.room[candidate] < least * net.capacity[candidate]:
            link = candidate
            least = state.room[candidate] / net.capacity[candidate] if net.capacity[candidate] < np.inf else np.inf
    return 0 if link < 0 else over_link(net, state, memory, link, 0, size)


@compiled
def around_node(net: Net, state: State, memory: SearchMemory, size: int) -> int:
    """Requests through one node of somebody's way."""
    request = below(memory.seed, len(net.request_node))
    if not state.served[request]:
        return 0
    topic = net.request_topic[request]
    node = net.request_node[request]
    for _ in range(1 + below(memory.seed, 8)):
        before = net.tail[state.entering[node, topic]]
        if before == net.source[topic]:
            break
        node = before
    count = 0
    for position in range(net.out_start[node], net.out_start[node + 1]):
        link = net.out_arc[position] >> 1
        if count < size and state.users[link] > 0:
            count = over_link(net, state, memory, link, count, size)
    return count


@compiled
def around_topic(net: Net, state: State, memory: SearchMemory, size: int) -> int:
    """All requests of a topic, and some that share a link with one of them."""
    topic = below(memory.seed, len(net.source))
    first = net.request_start[topic]
    wanted = net.request_start[topic + 1] - first
    if wanted == 0:
        return 0
    offset = below(memory.seed, wanted)
    count = 0
    for place in range(wanted):
        if count < size:
            count = _add(memory, first + (place + offset) % wanted, count)
    request = memory.chosen[0]
    if not state.served[request]:
        return count
    node = net.request_node[request]
    while node != net.source[topic] and count < size:
        arc = state.entering[node, topic]
        if state.room[arc >> 1] < net.rate[topic]:
            count = over_link(net, state, memory, arc >> 1, count, size)
        node = net.tail[arc]
    return count


@compiled
def around_wronged(net: Net, state: State, scratch: Scratch, memory: SearchMemory, size: int, present: float) -> int:
    """A wronged request first, then those that fill the links it would like."""
    wronged = -1
    most = 0.0
    for _ in range(_LOOKS):
        request = below(memory.seed, len(net.request_node))
        topic = net.request_topic[request]
        harm = (way_worth(net, state, request) if state.served[request] else net.price[topic]) - memory.due[request]
        if harm > most:
            most = harm
            wronged = request
    if wronged < 0:
        return 0
    return blockers(net, state, scratch, memory, wronged, size, present)


@compiled
def blockers(
    net: Net, state: State, scratch: Scratch, memory: SearchMemory, wronged: int, size: int, present: float
) -> int:
    """A request and those that fill the links of the way it would have if they gave way.

    That way is the cheapest at the worth of capacity and, for an unmet request, ``present`` per unit that is missing.
    """
    topic = net.request_topic[wronged]
    count = _add(memory, wronged, 0)
    if state.served[wronged]:
        # its own tree keeps it where it is: take a brother or two along
        for request in range(net.request_start[topic], net.request_start[topic + 1]):
            if count < 1 + size // 3 and request != wronged and state.served[request] and below(memory.seed, 2):
                count = _add(memory, request, count)
        length = _wanted_way(net, state, scratch, memory, wronged)
    else:
        _, _, length = find(net, state, scratch, wronged, state.worth, present, -1)
    if length <= 0:
        return count
    offset = below(memory.seed, length)
    for place in range(length):
        # scratch space keeps the way: nothing is searched while victims are collected
        link = scratch.way[(place + offset) % length] >> 1
        if count < size and state.room[link] < net.rate[topic]:
            count = over_link(net, state, memory, link, count, size)
    return count


@compiled
def _wanted_way(net: Net, state: State, scratch: Scratch, memory: SearchMemory, request: int) -> int:
    """The way that a served request would take if it paid what capacity is worth and found room everywhere."""
    length = write_way(net, state, request, memory.old_way[0])
    leave(net, state, request)
    _, _, wanted = find(net, state, scratch, request, state.worth, 0.0, -1)
    restore(net, state, request, memory.old_way[0], length)
    return wanted


@compiled
def over_link(net: Net, state: State, memory: SearchMemory, link: int, count: int, size: int) -> int:
    """Add requests that are served over a link, beginning with a topic chosen by chance."""
    topics = len(net.source)
    offset = below(memory.seed, topics)
    for place in range(topics):
        topic = (place + offset) % topics
        uses = state.entering[net.head[2 * link], topic] == 2 * link
        if uses or state.entering[net.head[2 * link + 1], topic] == 2 * link + 1:
            for request in range(net.request_start[topic], net.request_start[topic + 1]):
                if count == size:
                    return count
                if state.served[request] and passes(net, state, request, link):
                    count = _add(memory, request, count)
    return count


@compiled
def some_unmet(net: Net, state: State, memory: SearchMemory, count: int, most: int) -> int:
    """Add unmet requests, beginning anywhere."""
    requests = len(net.request_node)
    offset = below(memory.seed, requests)
    for place in range(requests):
        request = (place + offset) % requests
        if most == 0:
            return count
        if not state.served[request]:
            before = count
            count = _add(memory, request, count)
            most -= count - before
    return count


@compiled
def _add(memory: SearchMemory, request: int, count: int) -> int:
    """Put a request behind the others unless it is among them or there is no place."""
    for place in range(count):
        if memory.chosen[place] == request:
            return count
    if count == len(memory.chosen):
        return count
    memory.chosen[count] = request
    return count + 1
