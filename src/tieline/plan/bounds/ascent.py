"""What methods that raise a Lagrangian bound have in common: when to stop, and what they found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tieline.plan.arrays import Floats


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
