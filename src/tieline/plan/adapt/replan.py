"""Warm re-planning: the plan for a changed instance that keeps as much as possible of the plan before."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tieline.plan.adapt.flows import compared, standing
from tieline.plan.adapt.ready import ready
from tieline.plan.adapt.repair import Repair
from tieline.plan.arrays import Floats
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.certify import certified
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance
from tieline.plan.loops.values import desk, net
from tieline.plan.plan import Plan
from tieline.plan.search.state import state_of, trees_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """A plan after a change, and what it took."""

    plan: Plan
    #: Requests served before and now over another way, or no longer.
    flows_moved: int
    #: Requests served before and now over the same way.
    flows_kept: int
    #: Requests served now that were not before.
    flows_added: int
    #: Without the proof of the plan.
    seconds: float


def replan(
    instance: Instance, before: Plan, *, seconds: float | None = None, seed: int = 0, prices: Floats | None = None
) -> Replanned:
    """The plan for a changed instance, by :class:`tieline.plan.adapt.repair.Repair` of the plan before.

    ``prices`` are what capacity is worth, if a search found that out; ``seconds`` bounds the attempts to make room.
    Whoever changes one network again and again keeps a :class:`tieline.plan.adapt.planner.Planner`, which is faster.
    """
    ready()
    began = time.perf_counter()
    arrays = as_arrays(checked(instance))
    network = net(arrays)
    state = state_of(arrays, network, standing(arrays, before.routes))
    deadline = np.inf if seconds is None else began + seconds
    repair = Repair(arrays, network, desk(arrays), state, seed=seed, deadline=deadline)
    repair.run(before.objective - before.cost, prices)
    elapsed = time.perf_counter() - began
    plan = certified(
        arrays,
        trees_of(arrays, repair.state),
        method="replan",
        bound=repair.bound(),
        seconds=elapsed,
        notes={"previous": before.method},
    )
    return Replanned(plan=plan, seconds=elapsed, **compared(before, plan))
