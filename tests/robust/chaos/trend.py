"""Whether what a process holds grows without end: the slope of what was weighed at rest, after a warm-up.

A slope is the median of those between any two weighings, so that a few that are far off do not decide.  What leaks
grows in the first half of the time and in the second: the smaller one of the two slopes counts, and a table that grows
in one step is no leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Final, NamedTuple

#: The part of the time in which caches fill, nothing is judged; and how long that is at least.
_WARM_UP: Final = 0.25
_WARM_UP_S: Final = 60.0
#: With fewer weighings than this nothing can be said.
_FEWEST: Final = 8


class Trend(NamedTuple):
    """What a series of weighings comes to, after its warm-up."""

    #: How many were judged, and over how many seconds.
    weighings: int
    seconds: float
    #: What it held at the first and at the last of them.
    first: int
    last: int
    #: Bytes in a second, in the half in which they were fewer.
    slope: float

    @property
    def grown(self) -> float:
        """Bytes by which it has grown over that time, as far as it did so steadily."""
        return self.slope * self.seconds

    def __str__(self) -> str:
        return (
            f"{self.first / 1e6:.1f} MB at first and {self.last / 1e6:.1f} MB at last, {self.slope * 60 / 1e3:+.0f} kB "
            f"in a minute over {self.weighings} weighings in {self.seconds:.0f} s"
        )


def trend(weighed: Sequence[tuple[float, int]]) -> Trend | None:
    """By the time and the bytes of each weighing, in order; None if there were too few."""
    if not weighed:
        return None
    began, ended = weighed[0][0], weighed[-1][0]
    warm = began + max(_WARM_UP_S, _WARM_UP * (ended - began))
    judged = [(at, held) for at, held in weighed if at >= warm]
    if len(judged) < _FEWEST:
        return None
    half = len(judged) // 2
    (first_at, first), (last_at, last) = judged[0], judged[-1]
    return Trend(len(judged), last_at - first_at, first, last, min(_slope(judged[:half]), _slope(judged[half:])))


def _slope(weighed: Sequence[tuple[float, int]]) -> float:
    return median((later - earlier) / (at - before) for (before, earlier), (at, later) in combinations(weighed, 2))
