"""The broker's end of one virtual connection: reads a chunk, writes what is due, closes without a reset.

What :class:`tieline.net.link.Link` is to a socket, this is to an endpoint, step by step: the two are compared by a
test that tells both the same conversations.  There is nothing here between the bytes and MQTT, no TLS and no
WebSocket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tieline.sched.outflow import FAST, LEAST, Outflow

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.client import Connection
    from tieline.sim.endpoint import Endpoint

#: Bytes read from one connection before the others get their turn.
READ = 65_536
#: Bytes asked of the core for one write, and how many such writes one connection gets per turn.
WRITE = 131_072
WRITES_PER_TURN = 4
#: How long a closed connection is still read, so that our last words are not lost to a reset.
LINGER_S = 2.0


class Turns(Protocol):
    """Who gives a port its turns."""

    broker: Broker

    def note(self, port: Port) -> None:
        """A port may be ready to be read or written."""

    def forget(self, port: Port) -> None:
        """A port is closed, and gets no turn any more."""


class _EndpointBuffer:
    """The share of an endpoint that stands for the kernel."""

    __slots__ = ("_end",)

    def __init__(self, end: Endpoint) -> None:
        self._end = end

    def count_held(self) -> int:
        """Bytes that the other end does not have yet."""
        return self._end.held

    def round_trip_s(self) -> float:
        """As the link is made."""
        return self._end.round_trip_s


class Port:
    """An endpoint, its connection in the core, and the bytes that the endpoint has not taken yet."""

    __slots__ = (
        "_end",
        "_is_ending",
        "_is_lingering",
        "_is_waiting",
        "_node",
        "_outflow",
        "_unsent",
        "conn",
        "is_closed",
        "is_reading",
    )

    def __init__(self, node: Turns, end: Endpoint, conn: Connection) -> None:
        self._node = node
        self._end = end
        self.conn = conn
        #: Bytes that are encoded and not in the endpoint; while there are any, the core is not asked for more.
        self._unsent: memoryview | bytes = b""
        self._outflow = Outflow(_EndpointBuffer(end), LEAST if node.broker.priorities.always_matter else FAST)
        #: What has arrived may be read.
        self.is_reading = True
        #: A timer will look at the endpoint's share again.
        self._is_waiting = False
        #: The connection is over for the core; the endpoint only waits for its peer to close.
        self._is_lingering = False
        #: A deadline for the end of this port is set.
        self._is_ending = False
        self.is_closed = False

    @property
    def unsent(self) -> int:
        """Bytes encoded and not yet in the endpoint."""
        return len(self._unsent)

    @property
    def is_ready(self) -> bool:
        """Whether there is something to read for somebody who reads; a broken connection is always news."""
        return not self.is_closed and (self._end.is_broken or (self.is_reading and self._end.is_readable))

    # -- reading

    def handle(self, now: float, is_alone: bool) -> None:
        """The endpoint can be read or written; ``is_alone`` when nothing else can."""
        if self._unsent and self._end.is_writable:
            self._send(self._unsent)
            if not self._unsent:
                self._node.broker.mark(self.conn)
        if not self.is_ready:
            return
        data = self._end.read(READ)
        if data:
            # the core ignores what comes after the end
            self._node.broker.take(self.conn, data, now, is_alone)
        else:
            self.abort(now)

    # -- writing

    def write(self, data: bytes, now: float) -> None:
        """Write bytes that the core says may go at once."""
        self._send(data)
        if self._outflow.is_due:
            self._look(now)

    def flush(self, now: float) -> None:
        """Write what is due, as far as the endpoint takes it."""
        conn, outflow = self.conn, self._outflow
        if self._is_lingering or self._unsent:
            if conn.hold is not None:
                # what is not read stays with the client, also while the endpoint takes nothing from us
                self._listen()
            return
        for _ in range(WRITES_PER_TURN):
            if outflow.is_due and self._look(now) <= 0 and not conn.closing:
                self._look_again(now)
                self._note_waiting(now)
                break
            limit = min(WRITE, max(1, outflow.room))
            data = b"".join(self._node.broker.fill(conn, limit, now))
            if data:
                self._send(data)
            if self._unsent:
                self._note_waiting(now)
                break
            if len(data) < limit:
                break
        else:
            # there is more, and the endpoint would take it: after the others
            self._node.broker.mark(conn)
        if not conn.closing:
            self._listen()
        elif self._unsent or conn.is_dirty:
            self._set_deadline(now)
        else:
            self._finish(now)

    def _send(self, data: bytes | memoryview) -> None:
        sent = self._end.write(data)
        outflow = self._outflow
        outflow.written += sent
        if outflow.is_due:
            outflow.probe()
        if sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self.conn.is_blocked = True
        elif self._unsent:
            self._unsent = b""
            self.conn.is_blocked = outflow.is_slow

    def _look(self, now: float) -> int:
        """How many more bytes may be written; a slow receiver gets nothing past the scheduler any more."""
        room = self._outflow.look(now)
        self.conn.path = self._outflow.path
        self.conn.is_blocked = room <= 0 or self._outflow.is_slow or len(self._unsent) > 0
        return room

    def _look_again(self, now: float) -> None:
        """Enough is under way to this receiver: come back when some of it has arrived."""
        if not self._is_waiting:
            self._is_waiting = True
            self._node.broker.timers.at(now + self._outflow.drained_in(), self._resume)

    def _resume(self, now: float) -> None:
        self._is_waiting = False
        if not self.is_closed:
            self._node.broker.mark(self.conn)

    def _note_waiting(self, now: float) -> None:
        """What is left for the session waits from now on."""
        session = self.conn.session
        if session is not None and not session.oldest:
            session.oldest = now

    def _listen(self) -> None:
        """Read if the core can use it now."""
        self.is_reading = self.conn.hold is None or self._is_lingering
        if self.is_ready:
            self._node.note(self)

    # -- the end

    def _set_deadline(self, now: float) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._node.broker.timers.at(now + LINGER_S, self.abort)

    def _finish(self, now: float) -> None:
        """Everything is written: say so, and wait for the peer to close."""
        self._is_lingering = True
        self._end.finish()
        self._listen()
        self._set_deadline(now)
        self._node.broker.closed(self.conn, now)

    def abort(self, now: float) -> None:
        """Close without a farewell and without waiting for what is still to be written."""
        if self.is_closed:
            return
        self.is_closed = True
        self._end.close()
        self._unsent = b""
        self._node.forget(self)
        self._node.broker.closed(self.conn, now)
        self.conn.link = None

    def kill(self) -> None:
        """The broker's process has died: nobody says goodbye, and the core is not asked."""
        self.is_closed = True
        self._end.reset()
