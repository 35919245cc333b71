"""The broker's own readiness loop, nested in whichever asyncio loop runs it.

All sockets of the broker are in one epoll set; that set is itself a file descriptor, and the asyncio loop watches only
it.  So one turn sees every ready connection at once, in an order that is ours to choose, without a callback object per
event; and the same code runs under uvloop, under plain asyncio and inside somebody else's program (docs/adr/0003).
"""

from __future__ import annotations

import asyncio
import select
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tieline.core.broker import Broker
    from tieline.net.link import Link

#: Connections handled in one turn before the asyncio loop gets control back.
EVENTS_PER_TURN = 256
#: Bytes read in one turn before what they caused is written: keeps latency and memory down under load.
FLUSH_AFTER = 65_536
#: How long one turn goes on while there is always something ready, before the asyncio loop gets control back.
STAY_S = 0.005


class Watched(Protocol):
    """Something with a file descriptor in the set."""

    fd: int

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """It is ready; ``is_alone`` when nothing else is."""


class Loop:
    """Drives a broker from sockets and a clock."""

    def __init__(
        self, broker: Broker, on_fault: Callable[[Watched, Exception], None], *, patience_s: float = 0.0
    ) -> None:
        """``patience_s``: how long a turn may wait for more, when the asyncio loop has nothing urgent to do."""
        self.broker = broker
        self._patience_s = patience_s
        #: When the last turn ended.
        self._last_s = 0.0
        self._epoll = select.epoll()
        self._watched: dict[int, Watched] = {}
        #: Links whose socket failed while it was written.
        self._gone: list[Link] = []
        self._on_fault = on_fault
        self._asyncio = asyncio.get_running_loop()
        self._asyncio.add_reader(self._epoll.fileno(), self._turn)
        self._timer: asyncio.TimerHandle | None = None
        #: When the timer will call, in monotonic time.
        self._armed = 0.0
        self._is_due = False
        #: Longest time one turn took since this was last read, in seconds.
        self.longest_turn_s = 0.0
        #: Set once the last descriptor was removed.
        self.emptied = asyncio.Event()
        self.after_turn: Callable[[], None] | None = None

    # -- the set

    def watch(self, watched: Watched) -> None:
        """Add a descriptor, for reading."""
        self._watched[watched.fd] = watched
        self._epoll.register(watched.fd, select.EPOLLIN)

    def modify(self, watched: Watched, events: int) -> None:
        """Change what a descriptor is watched for."""
        if watched.fd in self._watched:
            self._epoll.modify(watched.fd, events)

    def forget(self, watched: Watched) -> None:
        """Remove a descriptor, before it is closed."""
        if self._watched.pop(watched.fd, None) is not None:
            self._epoll.unregister(watched.fd)
            if not self._watched:
                self.emptied.set()

    def gone(self, link: Link) -> None:
        """A write found that the peer is gone: closed after this turn."""
        self._gone.append(link)

    # -- one turn

    def _turn(self) -> None:
        """Handle what is ready; under traffic, go on for as long as more comes at once, up to a bound."""
        ready = self._epoll.poll(0, EVENTS_PER_TURN)
        now = monotonic()
        until = now + STAY_S
        # waiting here pays only if the next message comes before the wait is over: otherwise it is one more wake-up
        patience_s = self._patience_s if now - self._last_s < self._patience_s / 2 else 0.0
        while ready:
            self._handle(ready, now)
            self._last_s = done = monotonic()
            if done - now > self.longest_turn_s:
                self.longest_turn_s = done - now
            if done > until or self._is_due or not patience_s:
                break
            ready = self._epoll.poll(patience_s, EVENTS_PER_TURN)
            now = monotonic()

    def _handle(self, ready: list[tuple[int, int]], now: float) -> None:
        watched = self._watched
        broker = self.broker
        account = broker.account
        is_alone = len(ready) == 1
        flush_at = account.bytes_in + FLUSH_AFTER
        for fd, events in ready:
            link = watched.get(fd)
            if link is None:
                continue
            try:
                link.handle(events, now, is_alone)
            except Exception as error:  # noqa: BLE001 - one connection's trouble must not stop the others
                self._on_fault(link, error)
            if account.bytes_in > flush_at:
                self._flush(now)
                flush_at = account.bytes_in + FLUSH_AFTER
        if broker.dirty or self._gone:
            self._flush(now)
        if broker.dirty or broker.timers.is_changed or account.events:
            self._settle()

    def _flush(self, now: float) -> None:
        """Write to every changed connection, once."""
        broker = self.broker
        dirty = broker.dirty
        broker.dirty = []
        for conn in dirty:
            conn.is_dirty = False
            link: Link | None = conn.link  # type: ignore[assignment]
            if link is not None:
                try:
                    link.flush(now)
                except Exception as error:  # noqa: BLE001 - as above
                    self._on_fault(link, error)
        if self._gone:
            gone, self._gone = self._gone, []
            for link in gone:
                link.abort(now)

    def poke(self) -> None:
        """Something outside a turn has changed the broker."""
        self._flush(monotonic())
        self._settle()

    def _settle(self) -> None:
        """After every turn: come back for what is left, arm the timer, let the shell look at the story."""
        if self.broker.dirty and not self._is_due:
            self._is_due = True
            self._asyncio.call_soon(self._again)
        self.broker.timers.is_changed = False
        when = self.broker.timer()
        if when is not None and (self._timer is None or when < self._armed):
            if self._timer is not None:
                self._timer.cancel()
            self._armed = when
            self._timer = self._asyncio.call_later(max(0.0, when - monotonic()), self._tick)
        if self.after_turn is not None and self.broker.account.events:
            self.after_turn()

    def _again(self) -> None:
        self._is_due = False
        self.poke()

    def _tick(self) -> None:
        self._timer = None
        now = monotonic()
        self.broker.tick(now)
        self._flush(now)
        self._settle()

    def close(self) -> None:
        """Stop watching; the owner has closed the descriptors."""
        if self._timer is not None:
            self._timer.cancel()
        self._asyncio.remove_reader(self._epoll.fileno())
        self._epoll.close()
