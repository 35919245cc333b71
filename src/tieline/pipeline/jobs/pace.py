"""When a recorded message is due: the times between messages as they were, divided by a speed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

_SPEED: Final = re.compile(r"(\d+(?:\.\d+)?)x?")
#: A message that goes out later than this was late; less is the noise of any clock and scheduler.
LATE_S: Final = 0.1


class NoSpeed(ValueError):
    """A speed that cannot be meant; the text is a sentence."""


def speed_of(text: str) -> float:
    """How many times faster than recorded: ``10x``, ``0.5``, or ``max``, which never waits."""
    if text == "max":
        return math.inf
    found = _SPEED.fullmatch(text)
    if found is None or float(found[1]) == 0:
        raise NoSpeed(f'"{text}" is no speed; write 10x, 0.5x, or max.')
    return float(found[1])


class Pace:
    """Turns recorded times into waiting, and counts what could not keep up.

    Falling behind does not move the schedule: what comes next is sent at once until it is made up for.
    """

    def __init__(self, speed: float, clock: Callable[[], float]) -> None:
        self._speed = speed
        self._clock = clock
        self._began: tuple[datetime, float] | None = None
        self.late = 0
        self.most_late_s = 0.0

    def wait_s(self, recorded: datetime) -> float:
        """How long to wait before a message goes out; zero if it is due or late."""
        if math.isinf(self._speed):
            return 0.0
        now = self._clock()
        if self._began is None:
            self._began = recorded, now
        first, began = self._began
        behind_s = now - (began + (recorded - first).total_seconds() / self._speed)
        if behind_s > LATE_S:
            self.late += 1
            self.most_late_s = max(self.most_late_s, behind_s)
        return max(0.0, -behind_s)
