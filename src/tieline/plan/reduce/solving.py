"""Solving what all exact reductions leave: every part of it is planned, and all that is said about it is lifted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from tieline.plan.certify import certified_routes
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.reduce.blocks import Blocks, blocks
from tieline.plan.reduce.chains import without_chains
from tieline.plan.reduce.pendant import without_pendants
from tieline.plan.reduce.reduction import Reduction, chained, unchanged
from tieline.plan.routes import Route
from tieline.plan.run import Listener, Progress, Run

#: What leaves more than this share of an instance saves less than the way back costs.
_WORTHWHILE: Final = 0.95
#: Blocks are planned one by one if none has more than this share of the links that leave a choice.
_LARGEST: Final = 0.8

#: Plans an instance in a run.
Solve: TypeAlias = Callable[[Instance, Run], Plan]


def reduced(instance: Instance) -> Reduction:
    """The instance without pendant trees and chains; blocks are a matter of the solver."""
    pendants = without_pendants(instance)
    found = chained(pendants, without_chains(pendants.instance))
    # clients at the end of a link of their own are drawn in as well, which alone saves nothing
    return found if _size(found.instance) <= _WORTHWHILE * _size(instance) else unchanged(instance)


def _size(instance: Instance) -> int:
    return len(instance.nodes) + len(instance.links) + instance.request_count


def solve_reduced(
    instance: Instance, solve: Solve, run: Run, *, method: str, block_seconds: float | None = None
) -> Plan:
    """The proven plan of an instance, found by way of smaller ones if there are any.

    Where blocks cannot be planned one by one, what the other reductions leave is planned as a whole.  The blocks
    together have ``block_seconds`` if the run counts none.
    """
    reduction = reduced(instance)
    parts = blocks(reduction.instance, largest=_LARGEST)
    if not reduction.is_smaller and parts is None:
        return solve(instance, run.part())
    lifted = run.heard_by(None if run.listener is None else _Lifted(reduction, run.listener))
    found = None
    if parts is not None:
        limited = lifted if lifted.seconds is not None else replace(lifted, seconds=block_seconds)
        found = _Parts(parts, solve, limited).planned()
    if found is None:
        whole = solve(reduction.instance, lifted.part())
        found = whole.routes, whole.bound, whole.status == "interrupted", dict(whole.notes)
        method = whole.method
    routes, bound, is_interrupted, notes = found
    plan = certified_routes(
        instance,
        reduction.lift(routes),
        method=method,
        bound=reduction.lift_bound(bound),
        seconds=run.elapsed,
        is_interrupted=is_interrupted,
        notes={
            **notes,
            "reduced_nodes": len(reduction.instance.nodes),
            "reduced_links": len(reduction.instance.links),
            "reduced_requests": reduction.instance.request_count,
        },
    )
    return run.told(plan)


class _Lifted:
    """A listener to the smaller instance that tells of the original."""

    def __init__(self, reduction: Reduction, listener: Listener) -> None:
        self._reduction = reduction
        self._listener = listener

    def __call__(self, progress: Progress) -> None:
        self._listener(
            Progress(
                doing=progress.doing,
                seconds=progress.seconds,
                objective=self._reduction.lift_value(progress.objective),
                unmet=progress.unmet + self._reduction.lost,
                bound=self._reduction.lift_bound(progress.bound),
            )
        )


class _Parts:
    """Blocks planned one after the other, the smallest first: the largest gets all the time that is left."""

    def __init__(self, parts: Blocks, solve: Solve, run: Run) -> None:
        self._blocks = parts
        self._solve = solve
        self._run = run
        self._plans: list[Plan] = []
        self._sizes = [len(part.links) * max(1, part.request_count) for part in parts.parts]

    def planned(self) -> tuple[tuple[Route, ...], float, bool, dict[str, float | str]] | None:
        """Routes, bound, whether the time ended it, and notes; None as soon as a part cannot serve everybody."""
        for at, part in enumerate(self._blocks.parts):
            left = self._run.left
            share = None if left is None else left * self._sizes[at] / sum(self._sizes[at:])
            listener = None if self._run.listener is None else self._tell
            plan = self._solve(part, self._run.part(seconds=share).heard_by(listener))
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
        parts = self._blocks
        is_last = len(self._plans) == len(parts.parts) - 1 and progress.unmet == 0
        objectives = [*(plan.objective for plan in self._plans), progress.objective]
        bounds = [*(min(plan.bound, plan.objective) for plan in self._plans), max(0.0, progress.bound)]
        self._run.tell(
            progress.doing,
            objective=parts.value(objectives) if is_last else math.inf,
            unmet=len(parts.impossible) if is_last else parts.original.request_count,
            bound=parts.bound(bounds),
        )
