"""Fluctuations that remember: Ornstein-Uhlenbeck processes, many at once, continued from one call to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.extra import need


class Fluctuation:
    """``width`` independent processes around zero, each with standard deviation ``sigma`` and memory ``tau_s``.

    Sampled every ``step_s`` such a process is an AR(1) sequence with coefficient exp(-step/tau), whatever the step is;
    it begins in its stationary distribution.
    """

    def __init__(self, rng: np.random.Generator, *, sigma: float, tau_s: float, step_s: float, width: int) -> None:
        self._filter: Any = need("scipy.signal").lfilter
        self._rng = rng
        self._memory = float(np.exp(-step_s / tau_s))
        self._gain = sigma * float(np.sqrt(1 - self._memory**2))
        self._last = sigma * rng.standard_normal(width)

    def next(self, count: int) -> NDArray[np.float64]:
        """The next ``count`` values of each process, one row for each step."""
        shocks = self._rng.standard_normal((count, len(self._last)))
        before = (self._memory * self._last)[np.newaxis]
        values, _state = self._filter([self._gain], [1.0, -self._memory], shocks, axis=0, zi=before)
        self._last = values[-1]
        made: NDArray[np.float64] = values
        return made
