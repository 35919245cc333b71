"""How many requests are answered in a second: those that come faster wait for their turn.

Both threads of the process share an interpreter, so whatever is answered here is time that the broker does not have.
"""

from __future__ import annotations

import asyncio
from time import monotonic


class Pace:
    """So many turns a second, and so many at once after a pause."""

    def __init__(self, per_s: float, *, burst: float) -> None:
        self._step_s = 1 / per_s
        self._slack_s = burst / per_s
        #: When the next turn would be if nobody had paused.
        self._next = 0.0

    async def turn(self) -> None:
        """Wait until it is the turn of whoever calls this."""
        now = monotonic()
        self._next = max(now - self._slack_s, self._next) + self._step_s
        if self._next > now:
            await asyncio.sleep(self._next - now)
