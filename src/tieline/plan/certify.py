"""From a solver's trees to a plan: the figures are computed, and the proof is passed, before anybody sees it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tieline.plan.arrays import Arrays
from tieline.plan.instance import Instance, has_whole_costs, unmet_price
from tieline.plan.kernels.shortest import distances
from tieline.plan.plan import SAME, Plan, Status, gap
from tieline.plan.proof import examine, proven
from tieline.plan.routes import Route, Trees, routes


def certified(
    arrays: Arrays,
    trees: Trees,
    *,
    method: str,
    bound: float,
    seconds: float,
    is_interrupted: bool = False,
    notes: Mapping[str, float | str] | None = None,
) -> Plan:
    """The proven plan that consists of these trees; ``bound`` must be valid for the instance's objective."""
    return certified_routes(
        arrays.instance,
        routes(arrays, trees),
        method=method,
        bound=bound,
        seconds=seconds,
        is_interrupted=is_interrupted,
        notes=notes,
    )


def certified_routes(
    instance: Instance,
    found: tuple[Route, ...],
    *,
    method: str,
    bound: float,
    seconds: float,
    is_interrupted: bool = False,
    notes: Mapping[str, float | str] | None = None,
) -> Plan:
    """The same from routes."""
    finding = examine(instance, found)
    bound = rounded(instance, bound)
    status: Status = "interrupted" if is_interrupted else "feasible"
    if gap(finding.objective, bound) == 0.0:
        status = "optimal"
    plan = Plan(
        instance=instance.name,
        method=method,
        status=status,
        objective=finding.objective,
        cost=finding.cost,
        unmet=finding.unmet,
        unmet_price=unmet_price(instance),
        bound=bound,
        seconds=seconds,
        routes=found,
        notes=dict(notes or {}),
    )
    return proven(instance, plan, finding)


def rounded(instance: Instance, bound: float) -> float:
    """A bound raised to the next whole number where every plan's objective is one."""
    return raised(bound) if has_whole_costs(instance) else bound


def raised(bound: float) -> float:
    """The next whole number; what is above one by rounding stays at it."""
    return float(math.ceil(bound - SAME - 1e-9 * abs(bound))) if math.isfinite(bound) else bound


def shortest_paths_bound(arrays: Arrays) -> float:
    """The sum over requests of the cheapest way from any source, or of the price of leaving it unmet if that is
    less.
    """
    total = 0.0
    cost = arrays.arc_cost()
    for topic in range(arrays.topics):
        weight = np.where(np.repeat(arrays.fits(topic), 2), cost, np.inf)
        found = np.full(arrays.nodes, np.inf)
        for source in arrays.sources(topic):
            found = np.minimum(found, distances(_from(arrays, topic, int(source)), topic, weight))
        ways = found[arrays.subscribers(topic)]
        total += float(np.minimum(ways, arrays.price[topic]).sum())
    return total


def _from(arrays: Arrays, topic: int, source: int) -> Arrays:
    """The same with another source of one topic, where it has several."""
    if source == arrays.source[topic]:
        return arrays
    moved = arrays.source.copy()
    moved[topic] = source
    return replace(arrays, source=moved)
