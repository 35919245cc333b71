"""Trees that a plan might want: each topic alone in the network, at prices that are changed by chance.

Every request gets prices of its own, so that the ways of one topic vary apart from each other.  The prices are those
that capacity is worth, each times a number between 0 and 4, and on every other link a surcharge.
"""

from __future__ import annotations

import math

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats
from tieline.plan.loops.chance import Seed, below, uniform
from tieline.plan.loops.values import Desk, Net, State
from tieline.plan.loops.ways import find, join, leave


@compiled
def scatter(net: Net, state: State, desk: Desk, seed: Seed, worth: Floats, surcharge: float) -> None:
    """Let every topic have another tree; they need not fit together, but each keeps every limit of its own.

    ``surcharge`` is the largest mean of what is added, per unit of rate.
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
            _, cost, length = find(net, state, desk, request, price, np.inf, -1)
            if length >= 0 and cost <= net.price[topic]:
                join(net, state, desk, request, length)
