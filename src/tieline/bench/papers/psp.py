"""The planner's paper on instances of its dimensions: its model, its heuristics and its bound, beside ours."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tieline.bench.machine import describe_commit, describe_machine, versions
from tieline.bench.papers import psp_claims
from tieline.bench.papers.psp_record import Measured, Outcome, PlanReproduction
from tieline.bench.plan.bounds import PAPER, tallies
from tieline.bench.plan.measures import warm_up
from tieline.bench.suite.runner import Watcher
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import SIZES, paper
from tieline.plan.instance import Instance
from tieline.plan.methods.annealing import annealing
from tieline.plan.methods.lagrangian import lagrangian
from tieline.plan.models.solve import solve_model
from tieline.plan.plan import Plan
from tieline.plan.proof import proven
from tieline.plan.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is done."""

    seeds: int
    tightness: Sequence[float]
    #: Seconds for one instance: ours, the naive model, F1 as printed, annealing.
    ours_s: float
    naive_s: float
    printed_s: float
    annealing_s: float
    #: Small instances on which the paper's bound is held against the optimum.
    bounded: int


FULL = Effort(
    seeds=3, tightness=(2.0, 1.0, 0.6), ours_s=10.0, naive_s=10.0, printed_s=4.0, annealing_s=4.0, bounded=400
)
QUICK = Effort(seeds=1, tightness=(2.0, 1.0), ours_s=4.0, naive_s=4.0, printed_s=2.0, annealing_s=2.0, bounded=60)


def run(*, quick: bool, watcher: Watcher) -> PlanReproduction:
    """All instances, each solved by everybody."""
    began = time.monotonic()
    effort = QUICK if quick else FULL
    found = PlanReproduction(
        quick=quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine=describe_machine(),
        versions=versions("highspy", "numba"),
        naive_limit_s=effort.naive_s,
    )
    watcher.planned(2 + len(SIZES) * len(effort.tightness))
    watcher.step("compiling and warming up")
    warm_up()
    for name in SIZES:
        for tightness in effort.tightness:
            # tinyInstance is always the same one
            seeds = 1 if name == "tiny" else effort.seeds
            watcher.step(f"{name}, tightness {tightness:g}: {seeds} instances")
            found.measured += [_measure(name, seed, tightness, effort) for seed in range(seeds)]
    watcher.step(f"the bound, on {effort.bounded} small instances")
    tally = tallies(effort.bounded)[PAPER]
    found.small_instances, found.small_above = tally.instances, tally.above
    found.counterexample = psp_claims.counterexample()
    found.seconds = round(time.monotonic() - began, 1)
    found.claims = psp_claims.hold(found)
    return found


def _measure(name: str, seed: int, tightness: float, effort: Effort) -> Measured:
    instance = paper(name, seed=seed, tightness=tightness)
    compact = arrays(instance)
    ours, ours_s = _timed(instance, lambda: solve(instance, seconds=effort.ours_s, seed=seed))
    naive, naive_s = _timed(
        instance, lambda: solve_model(compact, model="f1-naive", seconds=effort.naive_s, naive=True)
    )
    theirs, theirs_s = _timed(instance, lambda: lagrangian(compact))
    annealed, annealed_s = _timed(instance, lambda: annealing(compact, seed=seed, seconds=effort.annealing_s))
    printed = solve_model(compact, model="f1-paper", seconds=effort.printed_s)
    return Measured(
        size=name,
        seed=seed,
        tightness=tightness,
        nodes=len(instance.nodes),
        arcs=instance.arc_count,
        topics=len(instance.topics),
        subscribers=sum("subscriber" in node.roles for node in instance.nodes),
        requests=instance.request_count,
        ours=_outcome(ours, ours_s),
        naive=_outcome(naive, naive_s),
        lagrangian=_outcome(theirs, theirs_s),
        annealing=_outcome(annealed, annealed_s),
        has_annealed=bool(annealed.notes["found_feasible"]),
        paper_bound=float(theirs.notes["paper_bound"]),
        claims_optimal=bool(theirs.notes["paper_claims_optimal"]),
        printed_value=float(printed.notes["model_value"]) if "model_value" in printed.notes else None,
    )


def _timed(instance: Instance, solve_it: Callable[[], Plan]) -> tuple[Plan, float]:
    began = time.process_time()
    plan = solve_it()
    cpu = time.process_time() - began
    return proven(instance, plan), cpu


def _outcome(plan: Plan, cpu_s: float) -> Outcome:
    return Outcome(
        cpu_s=cpu_s,
        objective=plan.objective,
        cost=plan.cost,
        unmet=plan.unmet,
        bound=plan.bound,
        is_proven=plan.status == "optimal",
    )
