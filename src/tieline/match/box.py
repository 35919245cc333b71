"""Boxes: what a conjunction of comparisons allows, one closed interval of numbers per attribute.

Values are float64, so an open bound is the closed bound of the neighbouring number, and every comparison becomes exact
with closed intervals alone.  A value that is missing (or NaN, or of another kind) is the number ``MISSING``, beyond
every finite one; only the interval of an attribute that nobody asked about reaches that far.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

#: Stands for a value that is not there.
MISSING = math.inf
#: The ends of an interval that is open on one side: every number, but not a missing one.
LEAST, GREATEST = -sys.float_info.max, sys.float_info.max
#: The interval of an attribute without a condition: every number, and a missing one.
ANY = (-math.inf, math.inf)


class Box(NamedTuple):
    """A product of closed intervals, one for each attribute."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]

    def contains(self, point: Sequence[float]) -> bool:
        """Whether a point lies in the box."""
        return all(lo <= value <= hi for lo, value, hi in zip(self.lo, point, self.hi, strict=True))

    def covers(self, other: Box) -> bool:
        """Whether every point of the other box lies in this one."""
        return all(a <= b for a, b in zip(self.lo, other.lo, strict=True)) and all(
            a >= b for a, b in zip(self.hi, other.hi, strict=True)
        )

    def meets(self, other: Box) -> bool:
        """Whether the boxes have a point in common."""
        return all(a <= b for a, b in zip(self.lo, other.hi, strict=True)) and all(
            a >= b for a, b in zip(self.hi, other.lo, strict=True)
        )

    @property
    def is_empty(self) -> bool:
        return any(lo > hi for lo, hi in zip(self.lo, self.hi, strict=True))


def below(bound: float) -> float:
    """The greatest number less than a bound: what an open upper end becomes."""
    return math.nextafter(bound, -math.inf)


def above(bound: float) -> float:
    """The least number greater than a bound: what an open lower end becomes."""
    return math.nextafter(bound, math.inf)


def everything(dimensions: int) -> Box:
    """The box without a condition."""
    return Box((ANY[0],) * dimensions, (ANY[1],) * dimensions)
