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
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any  # Any: asyncio's own handles

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
            if not self.waiting:
                break

    @property
    def waiting(self) -> deque[Any]:
        """The callbacks that wait for an iteration; no descriptor is ready on their account.

        asyncio has no public name for this; the attribute has been the same since Python 3.4.
        """
        callbacks: deque[Any] = self._ready  # type: ignore[attr-defined]  # as said above
        return callbacks


class _Asyncio:
    """The asyncio loop as something to watch."""

    def __init__(self, aio: PumpedLoop) -> None:
        self._aio = aio
        self.fd = aio.fileno()
        #: It has had iterations since this was last cleared: what happens inside asyncio may have happened.
        self.has_stepped = True

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """Let asyncio run a few iterations, because something is ready for it."""
        self.has_stepped = True
        self._aio.step()


def pump(loop: Loop, aio: PumpedLoop, until: asyncio.Event) -> None:
    """Call turns until the event is set, which happens inside asyncio."""
    beside = _Asyncio(aio)
    loop.watch(beside)
    timers, changed = loop.broker.timers, loop.broker.delivery.changed
    waiting = aio.waiting
    next_step = wake = 0.0
    try:
        while True:
            now = monotonic()
            if now >= next_step:
                beside.handle(0, now, False)
                next_step = now + STEP_S
            if beside.has_stepped:
                # a message that comes alone pays for every look, and nobody but asyncio sets the event
                beside.has_stepped = False
                if until.is_set():
                    break
            if now >= wake or timers.is_changed or changed.connections:
                loop.catch_up()
                timers.is_changed = False
                due_s = loop.due_s()
                wake = next_step if due_s is None else min(next_step, now + due_s)
            loop.turn(0.0 if waiting else max(0.0, wake - now))
            if waiting:
                beside.handle(0, now, False)
    finally:
        loop.forget(beside)
