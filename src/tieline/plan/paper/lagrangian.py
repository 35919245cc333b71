"""The paper's Lagrangian matheuristic: shortest-path trees at prices, Polyak's step, repair to a feasible plan.

Its "bound" is reported as the paper computes it, in the notes, together with whether the paper would have claimed
optimality. It is not a bound (:mod:`tieline.plan.bounds.paper`), so the plan carries a valid one, computed from the
same prices.  The paper does not say how it repairs; here every request keeps the way of its tree if there is room,
cheapest first, and the others look for the cheapest free way at the current prices.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tieline.plan.arrays import Arrays
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.bounds.paper import shortest_path_trees
from tieline.plan.bounds.shortest import shortest_paths_bound
from tieline.plan.certify import certified
from tieline.plan.greedy import repaired
from tieline.plan.plan import SAME, Plan
from tieline.plan.routes import Trees, value

#: Steps without a better "bound" after which the step is halved.
_PATIENCE = 10


def lagrangian(
    arrays: Arrays, *, steps: int = 100, seconds: float | None = None, stop: Callable[[], bool] | None = None
) -> Plan:
    """The paper's method, run for so many steps or seconds, or until ``stop`` says so; at least one step."""
    began = time.perf_counter()
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
        is_late = seconds is not None and time.perf_counter() - began >= seconds
        is_interrupted = is_late or (stop is not None and stop())
    assert best is not None
    shared = Relaxation(arrays, largest=1, is_adaptive=False).evaluate(best_prices).value
    return certified(
        arrays,
        best,
        method="lagrangian",
        bound=max(shared, shortest_paths_bound(arrays)),
        seconds=time.perf_counter() - began,
        is_interrupted=is_interrupted,
        notes={
            "steps": step,
            "paper_bound": claimed,
            "paper_claims_optimal": float(claimed >= best_value - SAME * max(1.0, best_value)),
        },
    )
