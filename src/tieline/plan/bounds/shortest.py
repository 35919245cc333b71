"""The plainest valid bound: nobody is served over a cheaper way than the cheapest, with every link empty."""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.kernels import spread


def distances(arrays: Arrays, topic: int, weight: Floats, entering: Ints | None = None) -> Floats:
    """How far each node is from a topic's source, when arcs have these weights; infinite where it may not go."""
    source = int(arrays.source[topic])
    relays = arrays.is_broker.copy()
    relays[source] = True
    distance = np.full(arrays.nodes, np.inf)
    distance[source] = 0.0
    if entering is None:
        entering = np.full(arrays.nodes, -1, np.int64)
    fixed = np.zeros(arrays.nodes, np.bool_)
    spread(arrays.out_start, arrays.out_arc, arrays.head, relays, weight, distance, entering, fixed, -1)
    return distance


def shortest_paths_bound(arrays: Arrays) -> float:
    """The sum over requests of the cheapest way, or of the price of leaving it unmet if that is less."""
    total = 0.0
    cost = arrays.arc_cost()
    for topic in range(arrays.topics):
        weight = np.where(np.repeat(arrays.fits(topic), 2), cost, np.inf)
        ways = distances(arrays, topic, weight)[arrays.subscribers(topic)]
        total += float(np.minimum(ways, arrays.price[topic]).sum())
    return total
