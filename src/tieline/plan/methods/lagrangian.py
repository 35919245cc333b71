"""The paper's Lagrangian matheuristic: shortest-path trees at prices, Polyak's step, repair to a feasible plan.

Its "bound" (20), (21) is reported as the paper computes it, in the notes, together with whether the paper would have
claimed optimality.  It is not a bound.  With capacity relaxed at prices λ, a topic pays c per subscriber and λ a once
per link.  The paper solves that by a shortest-path tree on c + λ a, as if every subscriber paid λ a alone.  The tree is
a feasible answer, so its value is at least the minimum: it lies on the wrong side.  It is a bound only where every
topic has one subscriber.  So the plan carries a valid one, computed from the same prices.

The paper does not say how it repairs; here every request keeps the way of its tree if there is room, cheapest first,
and the others look for the cheapest free way at the current prices.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.greedy import repaired
from tieline.plan.kernels.shortest import distances
from tieline.plan.plan import SAME, Plan
from tieline.plan.routes import Trees, no_trees, value
from tieline.plan.run import Run

#: Steps without a better "bound" after which the step is halved.
_PATIENCE = 10


def lagrangian(arrays: Arrays, run: Run, *, steps: int = 100) -> Plan:
    """The paper's method, for so many steps or until its run must end; at least one step."""
    prices = np.zeros(arrays.links)
    best: Trees | None = None
    best_value, claimed, scale, idle, step = np.inf, -np.inf, 1.0, 0, 0
    best_prices = prices
    limited = np.isfinite(arrays.capacity)
    is_interrupted = False
    while step < steps and not is_interrupted:
        step += 1
        total, trees, used = shortest_path_trees(arrays, prices)
        if total > claimed:
            claimed, idle, best_prices = total, 0, prices
        else:
            idle += 1
            if idle >= _PATIENCE:
                scale, idle = scale / 2, 0
        found = repaired(arrays, trees, prices)
        worth = sum(value(arrays, found))
        if worth < best_value:
            best, best_value = found, worth
        if claimed >= best_value - SAME * max(1.0, best_value):
            break
        slope = np.where(limited, used - np.where(limited, arrays.capacity, 0.0), 0.0)
        slope = np.where((prices <= 0) & (slope < 0), 0.0, slope)
        length = float(slope @ slope)
        if length == 0.0:
            break
        prices = np.maximum(0.0, prices + scale * max(best_value - total, 1e-9) / length * slope)
        is_interrupted = run.must_end
    assert best is not None
    shared = Relaxation(arrays, largest=1, is_adaptive=False).evaluate(best_prices).value
    plan = certified(
        arrays,
        best,
        method="lagrangian",
        bound=max(shared, shortest_paths_bound(arrays)),
        seconds=run.elapsed,
        is_interrupted=is_interrupted,
        notes={
            "steps": step,
            "paper_bound": claimed,
            "paper_claims_optimal": float(claimed >= best_value - SAME * max(1.0, best_value)),
        },
    )
    return run.told(plan)


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
