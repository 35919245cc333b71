"""Methods that raise a Lagrangian bound: when they stop, what they find, and the plainest of them.

Subgradient ascent with Polyak's step goes along the slope, as far as the distance to a known plan suggests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tieline.plan.arrays import Floats
from tieline.plan.bounds.groups import Relaxation

#: Steps without progress after which the step is halved, as Held, Wolfe and Crowder suggest.
_PATIENCE = 12


@dataclass(slots=True, kw_only=True)
class Until:
    """When to stop: steps, seconds, or a target that the bound cannot exceed, such as the value of a plan."""

    steps: int = 300
    seconds: float | None = None
    #: The value of a plan: a bound within the tolerance of it is as good as can be.
    target: float = np.inf
    tolerance: float = 1e-6
    #: Somebody wants to end early.
    stop: Callable[[], bool] | None = None
    began: float = field(default_factory=time.perf_counter)

    def left(self) -> float | None:
        """Seconds that are left; None if they are not counted."""
        return None if self.seconds is None else max(0.0, self.seconds - (time.perf_counter() - self.began))

    def is_over(self, step: int, bound: float) -> bool:
        if step >= self.steps:
            return True
        if self.left() == 0.0 or (self.stop is not None and self.stop()):
            return True
        return bool(np.isfinite(self.target)) and self.target - bound <= self.tolerance * max(1.0, abs(self.target))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bound:
    """A lower bound of the objective, and the prices that show it."""

    value: float
    prices: Floats
    steps: int
    seconds: float


def polyak(relaxation: Relaxation, until: Until, *, prices: Floats | None = None, target: float | None = None) -> Bound:
    """The best bound found; ``target`` is the value to step towards, by default that of ``until``, or 5 % above."""
    arrays = relaxation.arrays
    prices = np.zeros(arrays.links) if prices is None else prices.copy()
    best, best_prices = -np.inf, prices.copy()
    scale, idle, step = 1.0, 0, 0
    goal = until.target if target is None else target
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
        if is_flat or scale < 1e-4 or until.is_over(step, best):
            return Bound(value=best, prices=best_prices, steps=step, seconds=time.perf_counter() - until.began)
        if length == 0.0:
            # no price should move while shares are as they are; other shares may tell otherwise
            relaxation.share_by_use(evaluation, 1.0)
            continue
        ahead = goal if np.isfinite(goal) else best + 0.05 * max(1.0, abs(best))
        prices = np.maximum(0.0, prices + scale * max(ahead - evaluation.value, 1e-9) / length * slope)
        relaxation.share_by_use(evaluation, 0.3 * scale)
