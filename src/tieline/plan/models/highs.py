"""One run of HiGHS: a program in, the best solution and the best bound out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tieline.extras import needs
from tieline.plan.arrays import Floats, Ints
from tieline.plan.models.program import Program

#: How often somebody who may want to end early is asked, and somebody who listens is told.
_ASK_S = 0.05


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """What HiGHS found."""

    #: Values of the columns; None if there is no solution.
    solution: Floats | None
    objective: float
    #: No solution of the program is better.
    bound: float
    is_optimal: bool
    seconds: float


class Solver:
    """A program inside HiGHS, which may be changed and run again."""

    def __init__(self, program: Program, *, seed: int = 0, is_relaxed: bool = False) -> None:
        with needs("plan"):
            import highspy

        # its types are incomplete
        self._highspy: Any = highspy
        self._highs = self._highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("random_seed", seed)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        lp = program.highs()
        self.is_relaxed = is_relaxed
        if is_relaxed:
            lp.integrality_ = []
        self._highs.passModel(lp)
        self.columns = program.columns

    def stop_within(self, gap: float) -> None:
        """Call a solution optimal that is at most so far from the bound, as when values are whole numbers."""
        self._highs.setOptionValue("mip_abs_gap", gap)

    def set_costs(self, costs: Floats) -> None:
        numbers = np.arange(self.columns, dtype=np.int32)
        self._highs.changeColsCost(self.columns, numbers, np.ascontiguousarray(costs))

    def fix(self, columns: Ints, value: float) -> None:
        values = np.full(len(columns), value)
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), values, values)

    def add_limit(self, columns: Ints, weights: Floats, upper: float) -> None:
        """One more row: the weighted sum of the columns is at most ``upper``."""
        self._highs.addRow(
            -self._highs.inf, upper, len(columns), columns.astype(np.int32), np.ascontiguousarray(weights)
        )

    def start_from(self, columns: Ints, values: Floats) -> None:
        """Begin with a solution of which these columns are known; HiGHS completes it."""
        self._highs.setSolution(len(columns), columns.astype(np.int32), np.ascontiguousarray(values))

    def run(
        self,
        seconds: float | None,
        stop: Callable[[], bool] | None = None,
        watch: Callable[[Floats], None] | None = None,
    ) -> Answer:
        """Solve, for so long at most and no longer than until ``stop`` says so; ``watch`` hears of better solutions."""
        began = time.perf_counter()
        if seconds is not None:
            # HiGHS counts the time of all its runs together
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(0.01, seconds))
        if stop is None and watch is None:
            self._highs.run()
        else:
            self._run_until(stop, watch)
        status = self._highs.getModelStatus()
        info = self._highs.getInfo()
        is_optimal = status == self._highspy.HighsModelStatus.kOptimal
        has_solution = info.primal_solution_status == self._highspy.SolutionStatus.kSolutionStatusFeasible
        solution = np.array(self._highs.getSolution().col_value) if has_solution else None
        bound = info.mip_dual_bound
        if self.is_relaxed:
            bound = info.objective_function_value if is_optimal else -np.inf
        if status == self._highspy.HighsModelStatus.kInfeasible:
            bound = np.inf
        return Answer(
            solution=solution,
            objective=info.objective_function_value if has_solution else np.inf,
            bound=bound,
            is_optimal=is_optimal,
            seconds=time.perf_counter() - began,
        )

    def _run_until(self, stop: Callable[[], bool] | None, watch: Callable[[Floats], None] | None) -> None:
        """Solve in a thread of HiGHS's own: inside its C++ no handler of a signal would run."""
        better: deque[Floats] = deque(maxlen=1)

        def hear(event: Any) -> None:
            better.append(np.array(event.data_out.mip_solution))

        self._highs.HandleUserInterrupt = True
        if watch is not None:
            self._highs.cbMipImprovingSolution.subscribe(hear)
        self._highs.startSolve()
        while not self._highs.wait(_ASK_S)[0]:
            if stop is not None and stop():
                self._highs.cancelSolve()
            if watch is not None and better:
                watch(better.pop())
        if watch is not None:
            self._highs.cbMipImprovingSolution.unsubscribe(hear)
