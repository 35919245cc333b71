"""A linear program with integers, collected block by block as arrays and handed to HiGHS in one piece."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tieline.extras import needs
from tieline.plan.arrays import Floats, Ints

if TYPE_CHECKING:
    import highspy


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
        self, count: int, *, cost: Any = 0.0, lower: Any = 0.0, upper: Any = math.inf, integer: bool = False
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
        self, count: int, *parts: tuple[Ints, Ints, Any], lower: Any = -math.inf, upper: Any = math.inf
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


def _filled(value: Any, count: int) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), count)


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)
