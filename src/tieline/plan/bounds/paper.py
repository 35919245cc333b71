"""The paper's Lagrangian "bound" (20), (21), kept as the paper's: it is not a bound.

With capacity relaxed at prices λ, a topic pays c per subscriber and λ a once per link.  The paper solves that by a
shortest-path tree on c + λ a, as if every subscriber paid λ a alone.  The tree is a feasible answer, so its value is
at least the minimum: it lies on the wrong side.  It is a bound only where every topic has one subscriber.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.bounds.shortest import distances
from tieline.plan.routes import Trees, no_trees


def shortest_path_trees(arrays: Arrays, prices: Floats) -> tuple[float, Trees, Floats]:
    """The paper's answer at given prices per link: its value, the trees, and the load they put on links.

    A request whose way costs more than its dummy arc takes the dummy.
    """
    total = -float(prices[np.isfinite(arrays.capacity)] @ arrays.capacity[np.isfinite(arrays.capacity)])
    cost = arrays.arc_cost()
    found = no_trees(arrays)
    used = np.zeros(arrays.links)
    entering = np.empty(arrays.nodes, np.int64)
    for topic in range(arrays.topics):
        fee = np.repeat(prices * arrays.rate[topic], 2)
        weight = np.where(np.repeat(arrays.fits(topic), 2), cost + fee, np.inf)
        entering.fill(-1)
        way = distances(arrays, topic, weight, entering)
        tree = found.entering[topic]
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            node = int(arrays.request_node[request])
            if way[node] > arrays.price[topic]:
                total += float(arrays.price[topic])
                continue
            found.served[request] = True
            while entering[node] >= 0:
                arc = int(entering[node])
                total += float(cost[arc])
                if node not in tree:
                    tree[node] = arc
                    total += float(fee[arc])
                    used[arc >> 1] += arrays.rate[topic]
                node = int(arrays.tail[arc])
    return total, found, used
