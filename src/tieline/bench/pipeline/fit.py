"""Lines through measurements: time = a + b · rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Line(NamedTuple):
    """``start`` is what nothing takes, ``slope`` what each more takes."""

    start: float
    slope: float


def line(x: Sequence[float], y: Sequence[float]) -> Line:
    """The line with the least squares of relative errors: a second counts less in a long run than in a short one."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(xs) < 2 or len(set(x)) < 2 or (ys <= 0).any():
        raise ValueError("a line needs two different places and times above zero")
    weights = 1 / ys
    found, *_ = np.linalg.lstsq(np.stack([weights, xs * weights], axis=1), np.ones(len(xs)), rcond=None)
    return Line(float(found[0]), float(found[1]))


def bend(x: Sequence[float], y: Sequence[float]) -> float:
    """How many times steeper the steeper end of a curve is than the other one; 1 means straight.

    The ends are the first and the last half of the points, two at least.
    """
    half = max(2, len(x) // 2)
    first, last = line(x[:half], y[:half]).slope, line(x[-half:], y[-half:]).slope
    low, high = min(first, last), max(first, last)
    return high / low if low > 0 else float("inf")
