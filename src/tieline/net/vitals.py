"""How the process itself is doing: how late its timers are, and how long garbage collection stops it."""

from __future__ import annotations

import gc
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieline.core.timers import Timer, Timers

_PERIOD_S = 1.0


class Vitals:
    """Measures the broker's loop from inside."""

    def __init__(self) -> None:
        #: How late the last one-second timer was.
        self.lag_s = 0.0
        #: The longest collection since the start.
        self.longest_gc_s = 0.0
        #: The sum of all collections.
        self.gc_s = 0.0
        self._gc_began = 0.0
        self._timers: Timers | None = None
        self._timer: Timer | None = None

    def start(self, timers: Timers) -> None:
        """Begin to measure, by a timer and by the hooks of the garbage collector."""
        self._timers = timers
        gc.callbacks.append(self._on_gc)
        self._again(monotonic())

    def stop(self) -> None:
        if self._timers is not None:
            self._timers.cancel(self._timer)
            self._timers = None
            gc.callbacks.remove(self._on_gc)

    def _again(self, now: float) -> None:
        if self._timer is not None:
            self.lag_s = max(0.0, now - self._timer.when)
        if self._timers is not None:
            self._timer = self._timers.at(now + _PERIOD_S, self._again)

    def _on_gc(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = monotonic()
        else:
            paused_s = monotonic() - self._gc_began
            self.gc_s += paused_s
            self.longest_gc_s = max(self.longest_gc_s, paused_s)
