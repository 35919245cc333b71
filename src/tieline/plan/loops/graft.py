"""Trees for the room that others leave: some topics of a plan leave it and return one by one.

A tree that a better plan needs is often one that is dear in itself and just fits between those of the others.  Prices
hardly lead to it; the room that is left does.
"""

from __future__ import annotations

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats, Ints
from tieline.plan.loops.chance import Seed, below, surcharge, uniform
from tieline.plan.loops.values import Desk, Net, State
from tieline.plan.loops.ways import find, join, leave


@compiled
def graft(net: Net, state: State, desk: Desk, seed: Seed, size: int, dearest: float) -> None:
    """Let so many topics, first those on some link, leave and return in an order by chance.

    Each request sees surcharges by chance on every other link, whose mean is at most ``dearest``; it is unmet if it
    finds no room.
    """
    order = np.arange(len(net.source))
    count = min(size, len(order))
    _around(net, state, seed, below(seed, len(net.cost)), order)
    for place in range(count):
        topic = order[place]
        for request in range(net.request_start[topic], net.request_start[topic + 1]):
            if state.served[request]:
                leave(net, state, request)
    price = np.empty(len(net.cost))
    for place in range(count):
        other = place + below(seed, count - place)
        order[place], order[other] = order[other], order[place]
        _return(net, state, desk, seed, order[place], dearest, price)


@compiled
def _around(net: Net, state: State, seed: Seed, link: int, order: Ints) -> None:
    """Put topics into an order by chance, those on a link first."""
    for place in range(len(order)):
        other = place + below(seed, len(order) - place)
        order[place], order[other] = order[other], order[place]
    count = 0
    for place in range(len(order)):
        topic = order[place]
        forth, back = 2 * link, 2 * link + 1
        if state.entering[net.head[forth], topic] == forth or state.entering[net.head[back], topic] == back:
            order[place], order[count] = order[count], order[place]
            count += 1


@compiled
def _return(net: Net, state: State, desk: Desk, seed: Seed, topic: int, dearest: float, price: Floats) -> None:
    """Serve a topic's requests, in turn from a random one on, if they find room."""
    first = net.request_start[topic]
    count = net.request_start[topic + 1] - first
    offset = below(seed, max(1, count))
    for place in range(count):
        request = first + (place + offset) % count
        mean = dearest * uniform(seed) / max(1e-9, net.rate[topic])
        surcharge(seed, price, mean)
        _, cost, length = find(net, state, desk, request, price, np.inf, -1)
        if length >= 0 and cost <= net.price[topic]:
            join(net, state, desk, request, length)
