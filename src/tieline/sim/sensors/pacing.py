"""Frames of one sender that come in a burst are spread over time, so that no queue on their way overflows.

A sender may be some frames ahead of its pace; what exceeds that waits for its turn, in order (the generic cell rate
algorithm: one number per sender, the slot in which it would be level with its pace).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.sim.sensors.simulation import Simulation

#: Frames that a sender may be ahead.
_AHEAD: Final = 6


class Pacer:
    """The senders of one simulation, by any number."""

    def __init__(self, run: Simulation) -> None:
        self._run: Final = run
        self._pace: Final = max(1, run.parameters.slots(run.parameters.hand_over_ms / 1000.0))
        self._level: dict[int, int] = {}

    def put(self, sender: int, frame: Callable[[], None]) -> None:
        """Send a frame now, or when it is its turn."""
        now = self._run.now
        level = max(self._level.get(sender, 0), now)
        self._level[sender] = level + self._pace
        wait = level - _AHEAD * self._pace - now
        if wait <= 0:
            frame()
        else:
            self._run.after(wait, frame)

    def is_level(self, sender: int) -> bool:
        """Whether nothing of a sender waits."""
        return self._level.get(sender, 0) - (_AHEAD + 1) * self._pace <= self._run.now
