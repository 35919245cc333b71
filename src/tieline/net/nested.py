"""Turns called by an asyncio loop: for a broker that lives inside somebody else's program.

The broker's set is itself a file descriptor, and that is all the asyncio loop watches; whichever loop it is.  The host
is never made to wait: a turn takes what is ready and returns.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieline.net.loop import Loop


class Nested:
    """Ties a loop to the running asyncio loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._asyncio = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        #: When the timer will call, in monotonic time.
        self._armed = 0.0
        self._asyncio.add_reader(loop.fileno(), self._turn)
        self.poke()

    def poke(self) -> None:
        """Something outside a turn has changed the broker."""
        self._loop.catch_up()
        self._arm()

    def close(self) -> None:
        """Call no more turns."""
        if self._timer is not None:
            self._timer.cancel()
        self._asyncio.remove_reader(self._loop.fileno())

    def _turn(self) -> None:
        self._loop.turn()
        if self._loop.broker.dirty or self._loop.broker.timers.is_changed:
            self._arm()

    def _arm(self) -> None:
        """Come back when something is due."""
        self._loop.broker.timers.is_changed = False
        due_s = self._loop.due_s()
        if due_s is None:
            return
        when = monotonic() + due_s
        if self._timer is None or when < self._armed:
            if self._timer is not None:
                self._timer.cancel()
            self._armed = when
            self._timer = self._asyncio.call_later(due_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.poke()
