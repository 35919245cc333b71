"""A clock that all brokers share without agreeing on the time: of two writes of which one knew the other, it is later.

Theory of operation
-------------------
It is a hybrid clock: the milliseconds of the wall clock, and behind them a counter.  It never goes back, and it is
never behind a clock that was heard of.  So what a client writes at one broker after it has written at another is later
there too, if the brokers have heard of each other meanwhile: every ping says the clock, and so does everything that is
retained.  A wall clock that is wrong makes the clocks of all run ahead, which changes nothing but their distance from
the time of day.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Bits of the counter behind the milliseconds.
_COUNTER_BITS: Final = 16
#: What no clock reaches before the year 4000: whoever says more is wrong.
MOST_CLOCK: Final = 1 << 62


def clock_of(seconds: float) -> int:
    """What the clock shows at a time of day, in seconds since 1970, that nothing has pushed."""
    return max(0, int(seconds * 1000)) << _COUNTER_BITS


class HybridClock:
    """The clock of one broker."""

    __slots__ = ("_wall", "last")

    def __init__(self, wall: Callable[[float], float]) -> None:
        """``wall`` makes seconds since 1970 of the broker's time."""
        self._wall = wall
        #: The highest that was given out or heard of.
        self.last = 0

    def read(self, now: float) -> int:
        """What the clock shows, which is never less than it has shown or heard of."""
        return max(self.last, clock_of(self._wall(now)))

    def tick(self, now: float) -> int:
        """A moment that is later than all that were given out or heard of."""
        self.last = max(self.last + 1, clock_of(self._wall(now)))
        return self.last

    def hear(self, clock: int) -> None:
        """Another clock shows so much: this one is never behind it again."""
        if self.last < clock < MOST_CLOCK:
            self.last = clock

    def is_far_ahead(self, clock: int, now: float, by_s: float) -> bool:
        """Whether a clock is ahead of this one by more than so many seconds."""
        return clock > self.read(now) + clock_of(by_s)
