"""The broker's own readiness loop: all of its sockets in one epoll set, handled in turns.

One turn sees every ready connection at once, in an order that is ours to choose, without a callback object per event.
Who calls the turns is somebody else's business: :mod:`tieline.net.nested` when the broker lives in an asyncio program,
:mod:`tieline.net.pump` when the process is the broker's alone (docs/adr/0003).
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

#: Connections handled in one turn.
EVENTS_PER_TURN = 256
#: Bytes read in one turn before what they caused is written: keeps latency and memory down under load.
FLUSH_AFTER = 65_536


class Watched(Protocol):
    """Something with a file descriptor in the set."""

    fd: int

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """It is ready; ``is_alone`` when nothing else is."""


class Loop:
    """Drives a broker from sockets and a clock, one turn at a time."""

    def __init__(self, broker: Broker, on_fault: Callable[[Watched | None, Exception], None]) -> None:
        self.broker = broker
        self._epoll = select.epoll()
        self._watched: dict[int, Watched] = {}
        #: Links whose socket failed while it was written.
        self._gone: list[Link] = []
        self._on_fault = on_fault
        #: Longest time one turn took since this was last read, in seconds.
        self.longest_turn_s = 0.0
        #: Set once the last descriptor was removed.
        self.emptied = asyncio.Event()
        #: Called after a turn that added to the broker's story.
        self.on_events: Callable[[], None] | None = None

    # -- the set

    def fileno(self) -> int:
        """The set itself: readable when something in it is ready."""
        return self._epoll.fileno()

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

    def close(self) -> None:
        """Stop watching; the owner has closed the descriptors."""
        self._epoll.close()

    # -- turns

    def due_s(self) -> float | None:
        """How long until there is something to do without any socket being ready; None when never."""
        if self.broker.dirty:
            return 0.0
        when = self.broker.timer()
        return None if when is None else max(0.0, when - monotonic())

    def turn(self, timeout_s: float = 0.0) -> None:
        """Wait for something to be ready, up to a time, and handle it."""
        ready = self._epoll.poll(timeout_s, EVENTS_PER_TURN)
        if not ready:
            return
        began = monotonic()
        self._handle(ready, began)
        spent = monotonic() - began
        if spent > self.longest_turn_s:
            self.longest_turn_s = spent

    def catch_up(self) -> None:
        """Do what is due, and write what something outside a turn has caused."""
        now = monotonic()
        try:
            self.broker.tick(now)
        except Exception as error:  # noqa: BLE001 - the timers that were not called are still due
            self._on_fault(None, error)
        self._flush(now)

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
        if broker.dirty or self._gone or account.events:
            self._flush(now)

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
        if self.on_events is not None and broker.account.events:
            self.on_events()
