"""Every exact reduction that applies, one after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from tieline.plan.certify import certified_routes
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.reduce.blocks import Blocks, blocks
from tieline.plan.reduce.chains import without_chains
from tieline.plan.reduce.pendant import without_pendants
from tieline.plan.reduce.reduction import Reduction, chained, unchanged
from tieline.plan.routes import Route
from tieline.plan.search.progress import Listener, Progress

#: What leaves more than this share of an instance saves less than the way back costs.
_WORTHWHILE: Final = 0.95
#: Blocks are planned one by one if none has more than this share of the links that leave a choice.
_LARGEST: Final = 0.8


def reduced(instance: Instance) -> Reduction:
    """The instance without pendant trees and chains; blocks are a matter of the solver."""
    pendants = without_pendants(instance)
    found = chained(pendants, without_chains(pendants.instance))
    # clients at the end of a link of their own are drawn in as well, which alone saves nothing
    return found if _size(found.instance) <= _WORTHWHILE * _size(instance) else unchanged(instance)


def _size(instance: Instance) -> int:
    return len(instance.nodes) + len(instance.links) + instance.request_count


#: Plans an instance in so many seconds (None: as long as it takes) and tells a listener how far it is.
Solve: TypeAlias = Callable[[Instance, float | None, Listener | None], Plan]


def solve_reduced(
    instance: Instance,
    solve: Solve,
    *,
    method: str,
    seconds: float | None,
    together: float | None,
    watch: Listener | None,
) -> Plan:
    """The proven plan of an instance, found by way of smaller ones if there are any.

    Where blocks cannot be planned one by one, what the other reductions leave is planned as a whole.  ``together`` are
    the seconds of all blocks if none are given.
    """
    began = time.perf_counter()

    def left(limit: float | None = seconds) -> float | None:
        return None if limit is None else max(0.0, limit - (time.perf_counter() - began))

    reduction = reduced(instance)
    parts = blocks(reduction.instance, largest=_LARGEST)
    if not reduction.is_smaller and parts is None:
        return solve(instance, left(), watch)
    told = None if watch is None else _Lifted(reduction, watch, began)
    found = None
    if parts is not None:
        found = _Parts(parts, solve, told).planned(lambda: left(together if seconds is None else seconds))
    if found is None:
        whole = solve(reduction.instance, left(), told)
        found = whole.routes, whole.bound, whole.status == "interrupted", dict(whole.notes)
        method = whole.method
    routes, bound, is_interrupted, notes = found
    plan = certified_routes(
        instance,
        reduction.lift(routes),
        method=method,
        bound=reduction.lift_bound(bound),
        seconds=time.perf_counter() - began,
        is_interrupted=is_interrupted,
        notes={
            **notes,
            "reduced_nodes": len(reduction.instance.nodes),
            "reduced_links": len(reduction.instance.links),
            "reduced_requests": reduction.instance.request_count,
        },
    )
    if watch is not None:
        watch(
            Progress(doing=method, seconds=plan.seconds, objective=plan.objective, unmet=plan.unmet, bound=plan.bound)
        )
    return plan


class _Lifted:
    """A listener to the smaller instance that tells of the original."""

    def __init__(self, reduction: Reduction, watch: Listener, began: float) -> None:
        self._reduction = reduction
        self._watch = watch
        self._began = began

    def __call__(self, progress: Progress) -> None:
        self._watch(
            Progress(
                doing=progress.doing,
                seconds=time.perf_counter() - self._began,
                objective=self._reduction.lift_value(progress.objective),
                unmet=progress.unmet + self._reduction.lost,
                bound=self._reduction.lift_bound(progress.bound),
            )
        )


class _Parts:
    """Blocks planned one after the other, the smallest first: the largest gets all the time that is left."""

    def __init__(self, parts: Blocks, solve: Solve, watch: Listener | None) -> None:
        self._blocks = parts
        self._solve = solve
        self._watch = watch
        self._plans: list[Plan] = []
        self._sizes = [len(part.links) * max(1, part.request_count) for part in parts.parts]

    def planned(
        self, left: Callable[[], float | None]
    ) -> tuple[tuple[Route, ...], float, bool, dict[str, float | str]] | None:
        """Routes, bound, whether the time ended it, and notes; None as soon as a part cannot serve everybody."""
        for at, part in enumerate(self._blocks.parts):
            budget = left()
            share = None if budget is None else budget * self._sizes[at] / sum(self._sizes[at:])
            plan = self._solve(part, share, self._tell if self._watch is not None else None)
            if plan.unmet:
                return None
            self._plans.append(plan)
        joined = self._blocks.join(self._plans)
        if joined is None:
            return None
        is_interrupted = any(plan.status == "interrupted" for plan in self._plans)
        return *joined, is_interrupted, {"parts": len(self._plans)}

    def _tell(self, progress: Progress) -> None:
        """What the parts say together; before the last one has a plan, there is none of the whole."""
        assert self._watch is not None
        parts = self._blocks
        is_last = len(self._plans) == len(parts.parts) - 1 and progress.unmet == 0
        objectives = [*(plan.objective for plan in self._plans), progress.objective]
        bounds = [*(min(plan.bound, plan.objective) for plan in self._plans), max(0.0, progress.bound)]
        self._watch(
            Progress(
                doing=progress.doing,
                seconds=progress.seconds,
                objective=parts.value(objectives) if is_last else math.inf,
                unmet=len(parts.impossible) if is_last else parts.original.request_count,
                bound=parts.bound(bounds),
            )
        )
