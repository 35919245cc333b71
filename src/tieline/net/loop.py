"""The broker's own readiness loop: all of its sockets in one epoll set, handled in turns.

One turn sees every ready connection at once, in an order that is ours to choose, without a callback object per event.
Who calls the turns is somebody else's business: :mod:`tieline.net.nested` when the broker lives in an asyncio program,
:mod:`tieline.net.pump` when the process is the broker's alone (docs/adr/0003).
"""

from __future__ import annotations

import asyncio
import select
from time import monotonic
from typing import TYPE_CHECKING

from tieline.net.link import SocketLink
from tieline.net.turns import Turns, Watched
from tieline.net.urgent import BUDGET, Urgent
from tieline.sched.levels import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tieline.core.broker import Broker
    from tieline.core.client import Connection

#: Connections handled in one turn.
EVENTS_PER_TURN = 256
#: Bytes read in one turn before what they caused is written: keeps latency and memory down under load.
FLUSH_AFTER = 65_536


def _node_order(conn: Connection) -> tuple[int, int]:
    return (-conn.level, conn.serial)


class Loop(Turns):
    """Drives a broker from sockets and a clock, one turn at a time."""

    def __init__(self, broker: Broker, on_fault: Callable[[Watched | None, Exception], None]) -> None:
        super().__init__(broker, BUDGET)
        self._epoll = select.epoll()
        self._watched: dict[int, Watched] = {}
        #: Links whose socket failed while it was written.
        self._gone: list[SocketLink] = []
        self._on_fault = on_fault
        #: Urgent connections stand in a set of their own, which is looked at after every chunk.
        self._urgent = Urgent(self)
        #: Longest time one turn took since this was last read, in seconds.
        self.longest_turn_s = 0.0
        #: Set once the last descriptor was removed.
        self.emptied = asyncio.Event()
        #: Called after a turn that added to the broker's story.
        self.on_events: Callable[[], None] | None = None
        #: Called when connections have been written to: what is for other brokers leaves.
        self.on_flush: Callable[[float], None] | None = None
        #: Called after every turn: what it had to be made permanent is handed over.
        self.after_turn: Callable[[], None] | None = None

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
        if watched.fd in self._urgent.links:
            self._urgent.modify(watched.fd, events)
        elif watched.fd in self._watched:
            self._epoll.modify(watched.fd, events)

    def forget(self, watched: Watched) -> None:
        """Remove a descriptor, before it is closed."""
        if self._watched.pop(watched.fd, None) is not None:
            if watched.fd in self._urgent.links:
                self._urgent.remove(watched.fd)
            else:
                self._epoll.unregister(watched.fd)
            if not self._watched:
                self.emptied.set()

    def move(self, fd: int, events: int, other: select.epoll, *, is_back: bool) -> None:
        """Move a descriptor to another set, or back."""
        here, there = (other, self._epoll) if is_back else (self._epoll, other)
        here.unregister(fd)
        there.register(fd, events)

    def gone(self, link: Watched) -> None:
        """A write found that the peer is gone: closed after this turn."""
        if isinstance(link, SocketLink):
            self._gone.append(link)

    @property
    def watched(self) -> list[Watched]:
        """Everything in the set."""
        return list(self._watched.values())

    def close(self) -> None:
        """Stop watching; the owner has closed the descriptors."""
        self._urgent.close()
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
        self.flush(now)
        if self.after_turn is not None:
            self.after_turn()

    def _handle(self, ready: list[tuple[int, int]], now: float) -> None:
        watched = self._watched
        broker = self.broker
        account = broker.account
        broker.work.busy = len(ready)
        is_alone = broker.work.busy == 1
        if broker.serves_by_level and not is_alone:
            ready.sort(key=self._turn_of)
        flush_at = account.bytes_in + FLUSH_AFTER
        for fd, events in ready:
            link = watched.get(fd)
            if link is None:
                continue
            self.serve(link, events, now, is_alone)
            if self._urgent.links and link is not self._urgent:
                self._urgent.look(now)
                self._serve_again(link, now)
            if account.bytes_in > flush_at:
                self.flush(now)
                flush_at = account.bytes_in + FLUSH_AFTER
        self.flush(now)
        if self.after_turn is not None:
            self.after_turn()

    def serve(self, link: Watched, events: int, now: float, is_alone: bool) -> None:
        """Handle one ready descriptor."""
        try:
            link.handle(events, now, is_alone)
        except Exception as error:  # noqa: BLE001 - one connection's trouble must not stop the others
            self._on_fault(link, error)
        self._urgent.consider(link, now)

    def _serve_again(self, link: Watched, now: float) -> None:
        """While connections are read in small pieces, a higher node gets more of them in its turn."""
        if not isinstance(link, SocketLink):
            return
        conn = link.conn
        for _ in range((1 << conn.level) - 1):
            if not link.has_more or conn.hold is not None or link.fd < 0:
                break
            self.serve(link, select.EPOLLIN, now, False)
            self._urgent.look(now)

    def _turn_of(self, ready: tuple[int, int]) -> tuple[int, int]:
        """Higher nodes first, equal ones in the order in which they connected (the second paper)."""
        link = self._watched.get(ready[0])
        if link is self._urgent:
            return (-LEVELS, 0)
        return (-link.conn.level, link.conn.serial) if isinstance(link, SocketLink) else (0, 0)

    def flush(self, now: float) -> None:
        """Write to every changed connection, once, and hand over to the store what has changed.

        Higher nodes come first, equal ones in the order of connection.
        """
        broker = self.broker
        dirty = broker.take_dirty()
        if len(dirty) > 1 and broker.serves_by_level:
            dirty.sort(key=_node_order)
        for conn in dirty:
            conn.is_dirty = False
            link: SocketLink | None = conn.link  # type: ignore[assignment]  # the only outlet here
            if link is not None:
                try:
                    link.flush(now)
                except Exception as error:  # noqa: BLE001 - as above
                    self._on_fault(link, error)
        if self.on_flush is not None:
            try:
                self.on_flush(now)
            except Exception as error:  # noqa: BLE001 - as above
                self._on_fault(None, error)
        if self._gone:
            gone, self._gone = self._gone, []
            for link in gone:
                link.abort(now)
        broker.seal()
        if self.on_events is not None and broker.account.events:
            self.on_events()
