"""Solving an instance with one of the formulations: built, started from a plan, run in stages, read, proven.

Without ``unmet_cost`` the objective is lexicographic, and so are the stages: first the weight of the unmet requests,
then, with that fixed, the cost.  A starting plan that serves everybody makes the first stage superfluous, and the
second easier, since no request may be dropped any more.  With ``strict`` there is a first stage per class, the most
urgent first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from tieline.plan.arrays import TOLERANCE, Arrays, Floats
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.greedy import greedy
from tieline.plan.instance import has_whole_costs
from tieline.plan.models.f1 import f1, f1_naive, f1d
from tieline.plan.models.f1_paper import f1_paper
from tieline.plan.models.f2 import f2
from tieline.plan.models.f2_paper import f2_paper
from tieline.plan.models.formulation import Formulation, embed, extract
from tieline.plan.models.highs import Solver, SolverResult
from tieline.plan.models.limits import add_limits
from tieline.plan.models.tb import tb
from tieline.plan.models.tb_paper import tb_paper
from tieline.plan.plan import Plan
from tieline.plan.routes import Trees, load, no_trees, value
from tieline.plan.run import Run

#: Formulations by name; ``f1-naive`` is the baseline that speeds are compared with.
MODELS: Final[dict[str, Callable[[Arrays], Formulation]]] = {
    "f1": f1,
    "f1-paper": f1_paper,
    "f1-naive": f1_naive,
    "f1d": f1d,
    "f2": f2,
    "f2-paper": f2_paper,
    "tb": tb,
    "tb-paper": tb_paper,
}
#: Those that are as the paper prints them: in one stage, from nothing, and without limits that it does not have.
PRINTED: Final = ("f1-paper", "f2-paper", "tb-paper")
#: Those that minimise something else than the objective, so that their value bounds no plan.
_OTHER_OBJECTIVE: Final = ("f2", "f2-paper")
#: Those that know topics of several sources, and rates in intervals.
EXTENDED: Final = ("f1", "f1d")
#: Whole numbers differ by 1: a smaller distance to the bound is none.
_WHOLE: Final = 1.0 - 1e-4


def solve_model(
    arrays: Arrays,
    run: Run,
    *,
    model: str = "f1",
    start: Trees | None = None,
    strict: bool = False,
    naive: bool = False,
) -> Plan:
    """The best plan that HiGHS finds in a run, with its bound.

    ``start`` is a feasible plan to begin with; by default a greedy one is made, unless ``naive`` is set.  ``strict``
    serves each class as far as possible before the next, which may cost more weight than the objective counts; a plan
    that does has only the plainest bound.
    """
    if model not in MODELS:
        raise ValueError(f'"{model}" is no model; known: {", ".join(MODELS)}')
    if arrays.instance.is_extended and model not in EXTENDED:
        raise ValueError(
            f'the model "{model}" knows one source for each topic and fixed rates; for others there are '
            + " and ".join(f'"{name}"' for name in EXTENDED)
        )
    if start is None and not naive and model not in PRINTED:
        start = greedy(replace(arrays, rate=arrays.rate + arrays.swing))
    formulation = MODELS[model](arrays)
    if model not in PRINTED:
        add_limits(formulation)
    elif _has_limits(arrays):
        raise ValueError(f"{model} is as printed, and knows no limits on connections, duplications and latency")
    is_staged = arrays.instance.unmet_cost is None and model not in PRINTED
    stages = _Stages(arrays, formulation, start, run)
    stages.is_strict = strict and is_staged
    stages.is_other = model in _OTHER_OBJECTIVE
    trees, bound = stages.lexicographic() if is_staged else stages.single()
    notes: dict[str, float | str] = {"columns": formulation.program.columns, "rows": formulation.program.rows}
    if np.isfinite(stages.value):
        notes["model_value"] = stages.value
    if bound == np.inf:
        notes["infeasible"] = 1.0
    if model in PRINTED and (full := int((load(arrays, trees) > arrays.capacity * (1 + TOLERANCE)).sum())):
        # (29) counts each direction of a link by itself: such an answer is no plan
        notes["overloaded_links"] = full
        trees = no_trees(arrays)
    if model in _OTHER_OBJECTIVE:
        # its own value is about another objective
        bound = shortest_paths_bound(arrays)
    return certified(
        arrays,
        trees,
        method=f"mip:{model}",
        bound=max(bound, shortest_paths_bound(arrays)),
        seconds=run.elapsed,
        is_interrupted=stages.is_interrupted,
        notes=notes,
    )


def _has_limits(arrays: Arrays) -> bool:
    return (
        arrays.instance.n_max is not None
        or bool((arrays.max_connections >= 0).any())
        or bool(np.isfinite(arrays.max_latency).any())
    )


class _Stages:
    """The stages of one solution."""

    def __init__(self, arrays: Arrays, formulation: Formulation, start: Trees | None, run: Run) -> None:
        self.arrays = arrays
        self.formulation = formulation
        self.run = run
        self.solver = Solver(formulation.program, seed=run.seed)
        self.best = start
        self.is_interrupted = False
        #: Whether each class is served as far as possible before the next.
        self.is_strict = False
        #: Whether the program minimises something else than the objective: then its answer counts, not what is better.
        self.is_other = False
        #: The value of the last stage, in the program's own objective.
        self.value = np.inf
        self.whole = has_whole_costs(arrays.instance)

    def single(self) -> tuple[Trees, float]:
        """One stage: the objective as it is."""
        answer = self._stage(self.formulation.program.costs(), whole=self.whole)
        return self._best(), answer.bound

    def lexicographic(self) -> tuple[Trees, float]:
        """The least weight of unmet requests, then the least cost."""
        arrays, formulation = self.arrays, self.formulation
        price = arrays.price / arrays.weight
        unit_price = float(price[0]) if len(price) else 0.0
        weights = arrays.weight[arrays.request_topic]
        least = self._serve_most(weights)
        if least is None:
            # the time was over before the first stage was proven: what it knows about unmet requests is the bound
            return self._best(), -np.inf if self.is_strict else unit_price * self.proven_weight
        costs = formulation.program.costs().copy()
        costs[formulation.unmet] = 0.0
        if least == 0.0:
            self.solver.fix(formulation.unmet, 0.0)
        answer = self._stage(costs, whole=self.whole)
        # strict classes may give up more weight than the objective would
        is_bound = least == 0.0 or not self.is_strict
        return self._best(), unit_price * least + answer.bound if is_bound else -np.inf

    def _serve_most(self, weights: Floats) -> float | None:
        """The least weight of unmet requests, from then on a limit of the program; None if not proven in time."""
        arrays, formulation = self.arrays, self.formulation
        self.proven_weight = 0.0
        if self.best is not None and self.best.served.all():
            return 0.0
        levels = arrays.level[arrays.request_topic]
        groups = [np.ones(len(levels), np.bool_)]
        if self.is_strict:
            groups = [levels == level for level in np.unique(levels)[::-1]]
        total = 0.0
        for group in groups:
            costs = np.zeros(formulation.program.columns)
            costs[formulation.unmet[group]] = weights[group]
            answer = self._stage(costs, whole=True)
            if not answer.is_optimal or answer.solution is None:
                self.proven_weight = total + max(0.0, float(np.ceil(answer.bound - 1e-6)))
                return None
            least = float(round(answer.objective))
            self.solver.add_limit(formulation.unmet[group], weights[group], least + 1e-6)
            total += least
        self.proven_weight = total
        return total

    def _stage(self, costs: Floats, *, whole: bool) -> SolverResult:
        self.solver.set_costs(costs)
        self.solver.stop_within(_WHOLE if whole else 1e-9)
        if self.best is not None:
            self.solver.start_from(*embed(self.formulation, self.best))
        answer = self.solver.run(self.run, self._adopt)
        self.is_interrupted = self.is_interrupted or not answer.is_optimal
        self.value = answer.objective
        if answer.solution is not None:
            self._adopt(answer.solution)
        return answer

    def _adopt(self, solution: Floats) -> None:
        """Keep a solution if its plan is better."""
        found = extract(self.formulation, solution)
        if self.best is not None and not self.is_other and not self._rank(found) < self._rank(self.best):
            return
        self.best = found
        if self.run.listener is not None:
            objective, unmet = sum(value(self.arrays, found)), int((~found.served).sum())
            self.run.tell("mip", objective=objective, unmet=unmet, bound=-np.inf)

    def _rank(self, trees: Trees) -> tuple[float, ...]:
        """What makes one plan better than another: the objective or, class by class, the unmet and then the cost."""
        cost, price = value(self.arrays, trees)
        if not self.is_strict:
            return (cost + price,)
        unmet = np.bincount(self.arrays.level[self.arrays.request_topic[~trees.served]], minlength=4)
        return (*(float(count) for count in unmet[::-1]), cost)

    def _best(self) -> Trees:
        return no_trees(self.arrays) if self.best is None else self.best


def relaxed(arrays: Arrays, run: Run) -> float:
    """The value of the disaggregated formulation without integrality; minus infinity if the time was not enough."""
    formulation = f1d(arrays)
    add_limits(formulation)
    answer = Solver(formulation.program, is_relaxed=True).run(run)
    # feasibility tolerances of the program's rows, seen through the largest price
    slack = 1e-7 * max(1.0, abs(answer.bound)) if np.isfinite(answer.bound) else 0.0
    return answer.bound - slack
