"""The linear relaxation of a formulation: the strongest easy bound of moderate instances, from one linear program."""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays
from tieline.plan.models.f1d import f1d
from tieline.plan.models.highs import Solver
from tieline.plan.models.limits import add_limits


def relaxed(arrays: Arrays, *, seconds: float | None = None) -> float:
    """The value of the disaggregated formulation without integrality; minus infinity if the time was not enough."""
    frame = f1d(arrays)
    add_limits(frame)
    answer = Solver(frame.program, is_relaxed=True).run(seconds)
    # feasibility tolerances of the program's rows, seen through the largest price
    slack = 1e-7 * max(1.0, abs(answer.bound)) if np.isfinite(answer.bound) else 0.0
    return answer.bound - slack
