"""The fast exact method: a Lagrangian bound first, then a program of only those pairs that can matter.

Theory of operation
-------------------
The bound at good prices says, for every topic and arc, how dear a plan must be in which the topic uses the arc.
Suppose the optimum is at most g: then every pair beyond g may go, and what is left of the disaggregated formulation is
small.  If its optimum is at most g, it is the optimum of the whole; if not, every plan costs more than g, and g was
too low.  g starts just above the bound and never exceeds the value of a known plan, so that some g succeeds.
"""

from __future__ import annotations

import math

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats
from tieline.plan.bounds.bundle import bundle
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.certify import certified, rounded
from tieline.plan.greedy import greedy
from tieline.plan.instance import has_whole_costs, unmet_price
from tieline.plan.models.f1 import f1d
from tieline.plan.models.formulation import embed, extract
from tieline.plan.models.highs import Solver
from tieline.plan.models.limits import add_limits
from tieline.plan.models.solve import solve_model
from tieline.plan.plan import SAME, Plan, gap
from tieline.plan.routes import Trees, trees, value
from tieline.plan.run import Run

#: How far above the bound the first guess lies, as a share of it, and how fast guesses grow.
_FIRST = 0.004
_GROWTH = 3.0
#: The share of the time that the bound may take, and the number of its steps.
_BOUND_TIME = 0.4
_BOUND_STEPS = 200


def exact(arrays: Arrays, run: Run, *, start: Trees | None = None, largest: int = 6) -> Plan:
    """An optimal plan, or the best found in the time, with its bound; groups of a topic have ``largest`` subscribers.

    Where not everybody can be served and ``unmet_cost`` is not given, the stages of
    :func:`tieline.plan.models.solve.solve_model` decide whom to serve first.
    """
    search = _ExactSearch(arrays, greedy(arrays) if start is None else start, run)
    if arrays.instance.unmet_cost is None and not search.best.served.all():
        search.serve_everybody(largest)
        if not search.best.served.all() and not run.must_end:
            staged = solve_model(arrays, run.part(), model="f1d", start=search.best)
            return certified(
                arrays,
                trees(arrays, staged.routes),
                method=staged.method,
                bound=max(staged.bound, search.bound),
                seconds=run.elapsed,
                is_interrupted=staged.status == "interrupted",
                notes=staged.notes,
            )
    else:
        search.bound_first(largest)
    search.close()
    return certified(
        arrays,
        search.best,
        method="mip:exact",
        bound=search.bound,
        seconds=run.elapsed,
        is_interrupted=run.must_end,
        notes={"programs": search.programs, "pairs": search.pairs, "lagrangian_bound": search.lagrangian},
    )


class _ExactSearch:
    """The best plan and the best bound so far, which approach each other."""

    def __init__(self, arrays: Arrays, start: Trees, run: Run) -> None:
        self.arrays = arrays
        self.run = run
        self.best = start
        self.worth = sum(value(arrays, start))
        self.bound = -np.inf
        self.lagrangian = -math.inf
        self.unit = 1.0 if has_whole_costs(arrays.instance) else 0.0
        self.programs = 0
        self.pairs = 0

    def is_closed(self) -> bool:
        return gap(self.worth, self.bound) == 0.0

    def bound_first(self, largest: int) -> None:
        """The Lagrangian bound and, for every topic and arc, what it costs to use it."""
        left = self.run.left
        ascent = self.run.part(seconds=None if left is None else _BOUND_TIME * left, iterations=_BOUND_STEPS)
        relaxation = Relaxation(self.arrays, largest=largest)
        found = bundle(relaxation, ascent, target=self.worth)
        self.lagrangian = found.value
        self._raise(found.value)
        self.uses = np.zeros(0) if self.is_closed() else relaxation.use_bounds(found.prices)

    def serve_everybody(self, largest: int) -> None:
        """A first plan that serves everybody, where the greedy one does not: some guess may find one at once."""
        self.bound_first(largest)
        cheap = self.bound
        for _ in range(2):
            cheap += max(self.unit, 4 * _FIRST * abs(self.bound))
            # a plan at a price of one request or more may leave one unmet, which these programs do not allow
            if self.run.must_end or cheap >= unmet_price(self.arrays.instance):
                return
            self._program(cheap)
            if self.best.served.all():
                return

    def close(self) -> None:
        """Programs of growing size, until bound and plan meet or the time is over."""
        step = max(self.unit, _FIRST * max(1.0, abs(self.bound)))
        while not self.is_closed() and not self.run.must_end:
            self._program(min(self.bound + step, self.worth))
            step *= _GROWTH

    def _program(self, guess: float) -> None:
        keep = self.uses <= guess + SAME * max(1.0, abs(guess))
        formulation = f1d(self.arrays, keep)
        add_limits(formulation)
        self.pairs = len(formulation.arc)
        self.programs += 1
        solver = Solver(formulation.program, seed=self.run.seed)
        solver.stop_within(1.0 - 1e-4 if self.unit else 1e-9)
        if self.arrays.instance.unmet_cost is None:
            solver.fix(formulation.unmet, 0.0)
        if self._is_inside(keep):
            solver.start_from(*embed(formulation, self.best))
        self._tell()

        def adopt(solution: Floats) -> None:
            found = extract(formulation, solution)
            worth = sum(value(self.arrays, found))
            if worth < self.worth:
                self.best, self.worth = found, worth
                self._tell()

        answer = solver.run(self.run, adopt)
        if answer.solution is not None:
            adopt(answer.solution)
        # up to the guess no plan uses what was left out, so what the program knows holds for all of them
        beyond = math.floor(guess + SAME) + 1.0 if self.unit else guess
        self._raise(min(answer.bound if answer.bound <= guess else beyond, self.worth))

    def _tell(self) -> None:
        self.run.tell("mip", objective=self.worth, unmet=int((~self.best.served).sum()), bound=self.bound)

    def _is_inside(self, keep: Flags) -> bool:
        """Whether the best plan uses only what is kept."""
        if self.arrays.instance.unmet_cost is None and not self.best.served.all():
            return False
        return all(keep[topic, arc] for topic, tree in enumerate(self.best.entering) for arc in tree.values())

    def _raise(self, bound: float) -> None:
        self.bound = max(self.bound, rounded(self.arrays.instance, bound))
