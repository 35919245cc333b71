"""Turns called by the process itself: for ``tieline serve``, where the broker comes first.

The nesting is turned inside out: the thread waits in the broker's own set, and the asyncio loop (management, signals,
and whatever later runs beside the broker) is one descriptor in it that is given a few iterations when it is ready,
and twice a second for its timers.  A message then costs no trip through an event loop's machinery at all.

Code that runs inside a turn and wants asyncio's attention at once uses ``call_soon_threadsafe``, which makes that
descriptor ready.
"""

from __future__ import annotations

import asyncio
import selectors
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieline.net.loop import Loop

#: asyncio's own timers may be late by this much.
STEP_S = 0.5
#: Iterations that asyncio gets in one go.
ITERATIONS = 50


class PumpedLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that can be run one iteration at a time, and says when it needs one."""

    def __init__(self) -> None:
        self._readiness = selectors.DefaultSelector()
        super().__init__(self._readiness)

    def fileno(self) -> int:
        """Readable when one of the loop's descriptors is."""
        return self._readiness.fileno()

    def step(self) -> None:
        """Iterations without waiting, for as long as one callback leads to the next, up to a bound."""
        for _ in range(ITERATIONS):
            self.call_soon(self.stop)
            self.run_forever()
            if not self.is_due:
                break

    @property
    def is_due(self) -> bool:
        """Whether callbacks wait for an iteration; no descriptor is ready on their account.

        asyncio has no public name for this; the attribute has been the same since Python 3.4.
        """
        return bool(self._ready)  # type: ignore[attr-defined]


class _Asyncio:
    """The asyncio loop as something to watch."""

    def __init__(self, aio: PumpedLoop) -> None:
        self._aio = aio
        self.fd = aio.fileno()

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """A few iterations."""
        self._aio.step()


def pump(loop: Loop, aio: PumpedLoop, until: asyncio.Event) -> None:
    """Call turns until the event is set, which happens inside asyncio."""
    beside = _Asyncio(aio)
    loop.watch(beside)
    timers = loop.broker.timers
    next_step = wake = 0.0
    try:
        while not until.is_set():
            now = monotonic()
            if now >= next_step:
                aio.step()
                next_step = now + STEP_S
            if now >= wake or timers.is_changed or loop.broker.dirty:
                loop.catch_up()
                timers.is_changed = False
                due_s = loop.due_s()
                wake = next_step if due_s is None else min(next_step, now + due_s)
            loop.turn(0.0 if aio.is_due or until.is_set() else max(0.0, wake - now))
            if aio.is_due:
                aio.step()
    finally:
        loop.forget(beside)
