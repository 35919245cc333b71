"""Virtual time: it stands still while something happens, and leaps to the next thing that is due.

Nothing here asks what time it really is, and nothing is left to chance, so a world that is run twice does the same
twice.  What is due at one moment happens in the order in which it was set; what that causes at the same moment comes
after it.
"""

from __future__ import annotations

from collections.abc import Callable

from tieline.core.timers import Action, Timer, Timers

#: Hears how much of a run is done, from 0 to 1.
Progress = Callable[[float], None]

#: When a world begins: not at zero, which the core takes for "never".
GENESIS = 1_000.0
#: Rounds at one moment after which a world is declared to be stuck.
PATIENCE = 100_000


class Stuck(Exception):
    """Things cause each other for ever, and no time passes."""


class Clock:
    """The time of one world, and everything that is still to happen in it."""

    def __init__(self, now: float = GENESIS) -> None:
        self._now = now
        self._timers = Timers()

    @property
    def now(self) -> float:
        """Seconds; what they are counted from is nobody's business."""
        return self._now

    @property
    def next(self) -> float | None:
        """When the next thing happens; None when nothing will."""
        return self._timers.next()

    def at(self, when: float, action: Action) -> Timer:
        """Call ``action(now)`` at a time to come, or at this moment after everything that was set for it before."""
        if not when >= self._now:
            raise ValueError(f"{when} is over: it is {self._now}")
        return self._timers.at(when, action)

    def after(self, seconds: float, action: Action) -> Timer:
        """Call ``action(now)`` so many seconds from now."""
        return self.at(self._now + seconds, action)

    def cancel(self, timer: Timer | None) -> None:
        """Let something not happen; what has happened, or None, is fine."""
        self._timers.cancel(timer)

    def step(self) -> bool:
        """Go to the next moment at which something happens, and let happen what was set for it; False if nothing is."""
        due = self._timers.next()
        if due is None:
            return False
        self._now = due
        self._timers.fire(due)
        return True

    def run_until(self, when: float, told: Progress | None = None) -> None:
        """Let everything happen up to a time, and at it; then it is that time.

        ``told`` hears the part of the way that is done, a hundred times at most.
        """
        if when < self._now:
            raise ValueError(f"{when} is over: it is {self._now}")
        begin, percent = self._now, 0
        rounds, moment = 0, self._now
        while (due := self._timers.next()) is not None and due <= when:
            self.step()
            rounds = rounds + 1 if due == moment else 0
            moment = due
            if rounds > PATIENCE:
                raise Stuck(f"{rounds} rounds at {moment}, and no end")
            if told is not None and (done := int(100 * (due - begin) / (when - begin or 1.0))) > percent:
                percent = done
                told(done / 100)
        self._now = when
        if told is not None and percent < 100:
            told(1.0)

    def run_for(self, seconds: float, told: Progress | None = None) -> None:
        """Let so much time pass."""
        self.run_until(self._now + seconds, told)
