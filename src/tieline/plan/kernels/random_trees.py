"""Trees that a plan might want, drawn by chance: alone at other prices, or for the room that others leave.

A tree that a better plan needs is often one that is dear in itself and just fits between those of the others.  Prices
hardly lead to it; the room that is left does.  So some trees are drawn in the empty network at prices that are changed
by chance, and some where a few topics leave a plan and return one by one.
"""

from __future__ import annotations

import math

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats, Ints
from tieline.plan.kernels.chance import Seed, below, uniform
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.state import State, leave
from tieline.plan.kernels.ways import Scratch, find, join


@compiled
def route_each_alone(net: Net, state: State, scratch: Scratch, seed: Seed, worth: Floats, surcharge: float) -> None:
    """Let every topic have another tree; they need not fit together, but each keeps every limit of its own.

    Every request gets prices of its own, so that the ways of one topic vary apart from each other: those that capacity
    is worth, each times a number between 0 and 4, and on every other link a surcharge.  ``surcharge`` is the largest
    mean of what is added, per unit of rate.
    """
    price = np.empty(len(worth))
    for topic in range(len(net.source)):
        first = net.request_start[topic]
        count = net.request_start[topic + 1] - first
        for request in range(first, first + count):
            if state.served[request]:
                leave(net, state, request)
        state.room[:] = net.capacity
        offset = below(seed, max(1, count))
        for place in range(count):
            request = first + (place + offset) % count
            strength = 4.0 * uniform(seed)
            mean = surcharge * uniform(seed)
            for link in range(len(price)):
                price[link] = strength * uniform(seed) * worth[link]
                if below(seed, 2):
                    price[link] -= mean * math.log(1.0 - uniform(seed))
            _, cost, length = find(net, state, scratch, request, price, np.inf, -1)
            if length >= 0 and cost <= net.price[topic]:
                join(net, state, scratch, request, length)


@compiled
def reroute_some(net: Net, state: State, scratch: Scratch, seed: Seed, size: int, dearest: float) -> None:
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
        _return(net, state, scratch, seed, order[place], dearest, price)


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
def _return(net: Net, state: State, scratch: Scratch, seed: Seed, topic: int, dearest: float, price: Floats) -> None:
    """Serve a topic's requests, in turn from a random one on, if they find room."""
    first = net.request_start[topic]
    count = net.request_start[topic + 1] - first
    offset = below(seed, max(1, count))
    for place in range(count):
        request = first + (place + offset) % count
        mean = dearest * uniform(seed) / max(1e-9, net.rate[topic])
        surcharge(seed, price, mean)
        _, cost, length = find(net, state, scratch, request, price, np.inf, -1)
        if length >= 0 and cost <= net.price[topic]:
            join(net, state, scratch, request, length)


@compiled
def surcharge(seed: Seed, price: Floats, mean: float) -> None:
    """Let every other link, by chance, have a price with this mean, and the others none."""
    for link in range(len(price)):
        price[link] = -mean * math.log(1.0 - uniform(seed)) if below(seed, 2) else 0.0
