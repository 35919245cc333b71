"""A linear program with integers, collected block by block, and one run of HiGHS with it."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias  # Any: highspy has no types

import numpy as np
import numpy.typing as npt

from tieline.extras import needs
from tieline.plan.arrays import Floats, Ints
from tieline.plan.run import Run, Stop

if TYPE_CHECKING:
    import highspy

#: How often somebody who may want to end early is asked, and somebody who listens is told.
_ASK_S = 0.05


#: One number for all columns or rows, or one for each.
Amount: TypeAlias = float | Floats | Ints


@dataclass(slots=True)
class Program:
    """Columns and rows; every ``add`` is one family of variables or one constraint of a formulation."""

    cost: list[Floats] = field(default_factory=list)
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    is_integer: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    row_lower: list[Floats] = field(default_factory=list)
    row_upper: list[Floats] = field(default_factory=list)
    entries: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    columns: int = 0
    rows: int = 0

    def add_columns(
        self, count: int, *, cost: Amount = 0.0, lower: Amount = 0.0, upper: Amount = math.inf, integer: bool = False
    ) -> Ints:
        """New variables; their column numbers."""
        self.cost.append(_filled(cost, count))
        self.lower.append(_filled(lower, count))
        self.upper.append(_filled(upper, count))
        self.is_integer.append(np.full(count, integer))
        first = self.columns
        self.columns += count
        return np.arange(first, self.columns, dtype=np.int64)

    def add_rows(
        self, count: int, *parts: tuple[Ints, Ints, Amount], lower: Amount = -math.inf, upper: Amount = math.inf
    ) -> Ints:
        """New constraints from parts (row among the new ones, column, coefficient); their row numbers."""
        self.row_lower.append(_filled(lower, count))
        self.row_upper.append(_filled(upper, count))
        for rows, columns, values in parts:
            self.entries.append((rows + self.rows, columns, _filled(values, len(rows))))
        first = self.rows
        self.rows += count
        return np.arange(first, self.rows, dtype=np.int64)

    def costs(self) -> Floats:
        return _joined(self.cost)

    def highs(self) -> highspy.HighsLp:
        """The program as HiGHS takes it."""
        with needs("plan"):
            import highspy
            from scipy.sparse import coo_array

        rows = np.concatenate([part[0] for part in self.entries]) if self.entries else np.zeros(0, np.int64)
        columns = np.concatenate([part[1] for part in self.entries]) if self.entries else np.zeros(0, np.int64)
        values = _joined([part[2] for part in self.entries])
        matrix = coo_array((values, (rows, columns)), shape=(self.rows, self.columns)).tocsc()
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.costs(), _joined(self.lower), _joined(self.upper)
        lp.row_lower_, lp.row_upper_ = _joined(self.row_lower), _joined(self.row_upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = matrix.indptr
        lp.a_matrix_.index_ = matrix.indices
        lp.a_matrix_.value_ = matrix.data
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[flag] for flag in np.concatenate(self.is_integer).tolist()]
        return lp


def _filled(value: Amount, count: int) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), count)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SolverResult:
    """The best solution that a run of HiGHS found, and the best bound."""

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

    def run(self, run: Run, adopt: Callable[[Floats], None] | None = None) -> SolverResult:
        """Solve for as long as a run lasts; ``adopt`` gets better solutions meanwhile, if anybody listens."""
        began = time.perf_counter()
        left = run.left
        if left is not None:
            # HiGHS counts the time of all its runs together
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(0.01, left))
        if run.listener is None:
            adopt = None
        if run.stop is None and adopt is None:
            self._highs.run()
        else:
            self._run_until(run.stop, adopt)
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
        return SolverResult(
            solution=solution,
            objective=info.objective_function_value if has_solution else np.inf,
            bound=bound,
            is_optimal=is_optimal,
            seconds=time.perf_counter() - began,
        )

    def _run_until(self, stop: Stop | None, adopt: Callable[[Floats], None] | None) -> None:
        """Solve in a thread of HiGHS's own: inside its C++ no handler of a signal would run."""
        better: deque[Floats] = deque(maxlen=1)

        # highspy does not export the type of its events
        def hear(event: Any) -> None:
            better.append(np.array(event.data_out.mip_solution))

        self._highs.HandleUserInterrupt = True
        if adopt is not None:
            self._highs.cbMipImprovingSolution.subscribe(hear)
        self._highs.startSolve()
        while not self._highs.wait(_ASK_S)[0]:
            if stop is not None and stop():
                self._highs.cancelSolve()
            if adopt is not None and better:
                adopt(better.pop())
        if adopt is not None:
            self._highs.cbMipImprovingSolution.unsubscribe(hear)
