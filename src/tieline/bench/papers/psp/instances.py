"""Instances of the paper's seven sizes, each solved by everybody: data of Tables 1 and 2.

The paper's model goes to the solver with one big M, as anybody would type it in; its heuristic is the one with Polyak's
step, with a repair of ours, since the paper does not describe its own; annealing runs five times, as in the paper.
Times are CPU seconds of one process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.plan.measures import warm_up
from tieline.plan.arrays import Arrays, arrays
from tieline.plan.generate.testset import SIZES, paper
from tieline.plan.instance import Instance
from tieline.plan.methods.annealing import annealing
from tieline.plan.methods.lagrangian import lagrangian
from tieline.plan.models.solve import solve_model
from tieline.plan.plan import Plan
from tieline.plan.proof import proven
from tieline.plan.run import Run
from tieline.plan.solve import solve

#: How often annealing runs on each instance, as in the paper.
ANNEALING_RUNS: Final = 5
#: Values are taken for equal within this share.
SAME: Final = 1e-6
NAIVE, OURS, LAGRANGIAN = "naive F1", "ours", "Lagrangian"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds for one instance by method, and which instances there are."""

    seeds: int
    tightness: tuple[float, ...]
    ours_s: float
    naive_s: float
    printed_s: float
    annealing_s: float


def limits(request: Request) -> Limits:
    """How much is done: ``--long`` has the 600 s of the paper."""
    return request.choose(
        quick=Limits(seeds=1, tightness=(2.0, 1.0), ours_s=4.0, naive_s=4.0, printed_s=2.0, annealing_s=0.6),
        full=Limits(seeds=3, tightness=(2.0, 1.0, 0.6), ours_s=8.0, naive_s=8.0, printed_s=3.0, annealing_s=1.5),
        long=Limits(seeds=1, tightness=(2.0, 1.0), ours_s=600.0, naive_s=600.0, printed_s=60.0, annealing_s=120.0),
    )


def measure(request: Request) -> list[Table]:
    """Every instance, solved by everybody."""
    allowed = limits(request)
    for name, value in (
        ("ours", allowed.ours_s), ("naive F1", allowed.naive_s), ("F1 as printed", allowed.printed_s),
        ("a run of annealing", allowed.annealing_s),
    ):  # fmt: skip
        request.state(f"limit of {name}", value, "s", note="for one instance, by the clock")
    request.state("tightness", allowed.tightness)
    request.seeds(quick=allowed.seeds, full=allowed.seeds, note="of each size; tiny is always the same")
    request.step("compiling and warming up")
    warm_up()
    instances: list[tuple[Cell, ...]] = []
    methods: list[tuple[Cell, ...]] = []
    runs: list[tuple[Cell, ...]] = []
    for size in SIZES:
        for tightness in allowed.tightness:
            # tinyInstance is always the same one
            for seed in range(request.seed, request.seed + (1 if size == "tiny" else allowed.seeds)):
                request.step(f"{size}, tightness {tightness:g}, seed {seed}")
                key = (size, tightness, seed)
                solved = _Solved(paper(size, seed=seed, tightness=tightness), seed, allowed)
                instances.append((*key, *solved.row()))
                methods += [(*key, *row) for row in solved.methods()]
                runs += [(*key, *row) for row in solved.annealing(allowed.annealing_s)]
    key_words = {"size": "size of the paper", "tightness": "capacity factor", "seed": "seed"}
    return [
        Table("instances", key_words | {
            "nodes": "nodes", "arcs": "arcs", "topics": "topics", "subscribers": "subscribers", "requests": "requests",
            "optimum": "optimal objective, if proven", "best": "best objective", "unmet":
            "requests unmet in the best plan", "paper_bound": "what the paper's heuristic calls a lower bound",
            "claims_optimal": "whether the paper would call its plan optimal",
            "printed_value": "value of F1 as printed, if there was one in time",
            "limit_s": "limit of the naive program, s",
        }, instances),
        Table("methods", key_words | {
            "method": "method", "cpu_s": "CPU seconds", "objective": "objective", "unmet": "requests unmet",
            "proven": "whether it proved its plan optimal", "bound": "valid lower bound",
            "distance": "how much dearer than the best, as a share; none if it serves fewer requests",
        }, methods),
        Table("annealing", key_words | {
            "run": "run", "cpu_s": "CPU seconds", "best_s": "CPU seconds until its best plan",
            "found": "whether it found a plan without overload", "objective": "objective",
            "distance": "how much dearer than the best, as a share; none if it serves fewer requests",
        }, runs),
    ]  # fmt: skip


class _Solved:
    """One instance with everybody's answers."""

    def __init__(self, instance: Instance, seed: int, allowed: Limits) -> None:
        self.instance = instance
        self.seed = seed
        self.compact: Arrays = arrays(instance)
        self.plans: dict[str, tuple[Plan, float]] = {}
        self._timed(OURS, lambda: solve(instance, seconds=allowed.ours_s, seed=seed))
        self._timed(
            NAIVE, lambda: solve_model(self.compact, Run(seconds=allowed.naive_s), model="f1-naive", naive=True)
        )
        self._timed(LAGRANGIAN, lambda: lagrangian(self.compact, Run()))
        self.limit_s = allowed.naive_s
        printed = solve_model(self.compact, Run(seconds=allowed.printed_s), model="f1-paper")
        self.printed = printed.notes.get("model_value")
        self.best = min((plan for plan, _ in self.plans.values()), key=lambda plan: plan.objective)

    def _timed(self, name: str, work: Callable[[], Plan]) -> None:
        began = time.process_time()
        plan = work()
        cpu_s = time.process_time() - began
        self.plans[name] = (proven(self.instance, plan), cpu_s)

    def row(self) -> tuple[Cell, ...]:
        """The instance itself, and what the paper's heuristic says of it."""
        instance, theirs = self.instance, self.plans[LAGRANGIAN][0]
        proofs = [plan for plan, _ in self.plans.values() if plan.status == "optimal"]
        return (
            len(instance.nodes), instance.arc_count, len(instance.topics),
            sum("subscriber" in node.roles for node in instance.nodes), instance.request_count,
            proofs[0].objective if proofs else None, self.best.objective, self.best.unmet,
            float(theirs.notes["paper_bound"]), bool(theirs.notes["paper_claims_optimal"]),
            None if self.printed is None else float(self.printed), self.limit_s,
        )  # fmt: skip

    def methods(self) -> list[tuple[Cell, ...]]:
        """A row for each method."""
        return [
            (name, cpu_s, plan.objective, plan.unmet, plan.status == "optimal", plan.bound, self.distance(plan))
            for name, (plan, cpu_s) in self.plans.items()
        ]

    def annealing(self, seconds: float) -> list[tuple[Cell, ...]]:
        """A row for each run of annealing."""
        rows: list[tuple[Cell, ...]] = []
        for number in range(ANNEALING_RUNS):
            began = time.process_time()
            plan = annealing(self.compact, Run(seed=self.seed * ANNEALING_RUNS + number, seconds=seconds))
            cpu_s = time.process_time() - began
            found = bool(plan.notes["found_feasible"])
            proven(self.instance, plan)
            rows.append((
                number, cpu_s, min(cpu_s, float(plan.notes["best_seconds"])), found,
                plan.objective if found else None, self.distance(plan) if found else None,
            ))  # fmt: skip
        return rows

    def distance(self, plan: Plan) -> float | None:
        """How much dearer than the best plan, as a share; None if it serves fewer requests."""
        if plan.unmet > self.best.unmet:
            return None
        distance = (plan.objective - self.best.objective) / max(1.0, abs(self.best.objective))
        return distance if math.isfinite(distance) and distance > SAME else 0.0
