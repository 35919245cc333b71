"""Methods that raise a Lagrangian bound: when they stop, what they find, and the plainest of them.

Subgradient ascent with Polyak's step goes along the slope, as far as the distance to a known plan suggests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Floats
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.plan import SAME
from tieline.plan.run import Run

#: Steps without progress after which the step is halved, as Held, Wolfe and Crowder suggest.
_PATIENCE = 12
#: Steps of a run that does not say how many.
_STEPS = 300


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bound:
    """A lower bound of the objective, and the prices that show it."""

    value: float
    prices: Floats
    steps: int
    seconds: float


def is_over(run: Run, step: int, bound: float, target: float) -> bool:
    """Whether an ascent has used its steps, the iterations of its run, or come as close to the target as can be.

    The target is a value that the bound cannot exceed, such as that of a plan.
    """
    if step >= (_STEPS if run.iterations is None else run.iterations) or run.must_end:
        return True
    return bool(np.isfinite(target)) and target - bound <= SAME * max(1.0, abs(target))


def polyak(relaxation: Relaxation, run: Run, *, prices: Floats | None = None, target: float = np.inf) -> Bound:
    """The best bound found; a ``target`` is the value to step towards, and without one it is 5 % above the bound."""
    arrays = relaxation.arrays
    prices = np.zeros(arrays.links) if prices is None else prices.copy()
    best, best_prices = -np.inf, prices.copy()
    scale, idle, step = 1.0, 0, 0
    while True:
        evaluation = relaxation.evaluate(prices)
        if evaluation.value > best:
            best, best_prices, idle = evaluation.value, prices.copy(), 0
        else:
            idle += 1
            if idle >= _PATIENCE:
                scale, idle = scale / 2, 0
                prices = best_prices.copy()
        step += 1
        # a price of 0 on a link with room to spare cannot fall
        slope = np.where((prices <= 0) & (evaluation.slope < 0), 0.0, evaluation.slope)
        length = float(slope @ slope)
        is_flat = length == 0.0 and (not relaxation.is_adaptive or idle > 1)
        if is_flat or scale < 1e-4 or is_over(run, step, best, target):
            return Bound(value=best, prices=best_prices, steps=step, seconds=run.elapsed)
        if length == 0.0:
            # no price should move while shares are as they are; other shares may tell otherwise
            relaxation.share_by_use(evaluation, 1.0)
            continue
        ahead = target if np.isfinite(target) else best + 0.05 * max(1.0, abs(best))
        prices = np.maximum(0.0, prices + scale * max(ahead - evaluation.value, 1e-9) / length * slope)
        relaxation.share_by_use(evaluation, 0.3 * scale)
