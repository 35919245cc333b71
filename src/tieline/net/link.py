"""One socket and its connection in the core: reads a chunk, writes what is due, and closes without a reset."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING

from tieline.net.layer import LayerError
from tieline.net.outq import SocketBuffer
from tieline.sched.outflow import FAST, LEAST, Outflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tieline.core.client import Connection
    from tieline.net.layer import Layer
    from tieline.net.turns import Turns

#: Bytes read from one connection before the others get their turn.
READ = 65_536
READ_MORE = 262_144
#: Bytes asked of the core for one write, and how many such writes one connection gets per turn.
WRITE = 131_072
WRITES_PER_TURN = 4
#: Pieces of this length, on average, are sent as they are; shorter ones are joined, which costs less than to list them.
LONG = 2_048
#: Most pieces that one call takes; the system's own limit is 1,024.
MOST_PIECES = 256
#: Answers of a layer (pongs) that a client leaves unread before it is no longer read itself.
MOST_ANSWERS = 4_096
#: How long a closed connection is still read, so that our last words are not lost to a reset.
LINGER_S = 2.0

_IN = select.EPOLLIN
_OUT = select.EPOLLOUT


class SocketLink:
    """A socket, the layers on it, and the bytes the kernel has not taken yet."""

    __slots__ = (
        "_appetite",
        "_is_ending",
        "_is_lingering",
        "_is_put_off",
        "_is_waiting",
        "_layer",
        "_loop",
        "_on_closed",
        "_outq",
        "_put_off",
        "_sock",
        "_unsent",
        "conn",
        "events",
        "fd",
        "has_more",
        "is_urgent",
    )

    def __init__(
        self, loop: Turns, sock: socket.SocketType, conn: Connection, layer: Layer | None, on_closed: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._on_closed = on_closed
        self._sock = sock
        self.fd = sock.fileno()
        self.conn = conn
        self._layer = layer
        conn.is_wrapped = layer is not None
        #: Bytes that are encoded and not in the kernel; while there are any, the core is not asked for more.
        self._unsent: memoryview | bytes = b""
        self.events = _IN
        self._appetite = READ
        self._outq = Outflow(SocketBuffer(sock), LEAST if loop.broker.priorities.always_matter else FAST)
        #: What was read for a layer and is looked at when others have had their turn, and whether it is.
        self._put_off = b""
        self._is_put_off = False
        #: A timer will look at the kernel's share again.
        self._is_waiting = False
        #: In the set that is looked at after every chunk.
        self.is_urgent = False
        #: The last read brought as much as was asked for, so there is probably more.
        self.has_more = False
        #: The connection is over for the core; the socket only waits for the peer to close.
        self._is_lingering = False
        #: A deadline for the end of this link is set.
        self._is_ending = False

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """The socket can be read or written; ``is_alone`` when nothing else can."""
        if events & _OUT and self._unsent:
            self._send(self._unsent)
            if not self._unsent:
                self._loop.broker.mark(self.conn)
        self.has_more = False
        if not events & ~_OUT:
            return
        # nothing outranks an urgent connection: it is read as if there were no others
        appetite = self._appetite if self.is_urgent else min(self._appetite, self._loop.read_budget)
        try:
            data = self._sock.recv(appetite)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.abort(now)
            return
        self.has_more = len(data) == appetite
        # a flood is read in larger pieces: fewer packets are cut in two
        self._appetite = READ if len(data) < READ else READ_MORE
        if self._layer is None:
            # the core ignores what comes after the end
            self._loop.broker.take(self.conn, data, now, is_alone)
        elif not self._is_lingering:
            self._read_layer(self._layer, data, now, is_alone)

    def begin(self, data: bytes, now: float) -> None:
        """Take in what somebody else has read of this socket before it came here."""
        if self._layer is None:
            self._loop.broker.receive(self.conn, data, now)
        else:
            self._read_layer(self._layer, data, now, True)

    def write(self, data: bytes, now: float) -> None:
        """Write bytes that the core says may go at once."""
        self._send(data if self._layer is None else self._layer.wrap(data))
        outq = self._outq
        if outq.written >= outq.due_at:
            self._look(now)

    def _look(self, now: float) -> int:
        """How many more bytes the kernel should get; a slow receiver gets nothing past the scheduler any more."""
        room = self._outq.look(now)
        self.conn.path = self._outq.path
        self.conn.is_blocked = room <= 0 or self._outq.is_slow or len(self._unsent) > 0
        return room

    def _read_layer(self, layer: Layer, data: bytes, now: float, is_alone: bool) -> None:
        """Let the layer read; what takes long is put off, and so is what is left of much."""
        broker = self._loop.broker
        if layer.is_costly and not is_alone:
            self._put_off += data
            self._read_later()
            return
        work = broker.work
        work.enough()
        plain = b""
        try:
            plain = layer.received(data)
            work.did(layer.take_work())
            while layer.has_more and not work.is_spent() and layer.waiting < MOST_ANSWERS:
                plain += layer.received(b"")
                work.did(layer.take_work())
        except LayerError as error:
            plain += error.before
            if plain:
                broker.receive(self.conn, plain, now)
            broker.shut(self.conn, error.name, now, text=error.text)
            return
        if plain:
            broker.take(self.conn, plain, now, is_alone)
        broker.note_framed(self.conn, layer.held, now)
        if layer.is_over and not self.conn.closing:
            broker.shut(self.conn, "connection_lost", now)
        elif layer.has_pending:
            broker.mark(self.conn)
        if layer.has_more or layer.waiting >= MOST_ANSWERS:
            self._listen()

    def _read_later(self) -> None:
        """Go on with what was read when the others have had their turn."""
        if not self._is_put_off:
            self._is_put_off = True
            self._loop.broker.work.later(self._read_on)
            self._listen()

    def _read_on(self, now: float) -> None:
        self._is_put_off = False
        if self._layer is None or self.fd < 0 or self._is_lingering:
            return
        data, self._put_off = self._put_off, b""
        self._read_layer(self._layer, data, now, True)
        if not self.conn.closing:
            self._listen()

    def flush(self, now: float) -> None:
        """Write what is due, as far as the kernel takes it."""
        conn = self.conn
        if self._is_lingering or self._unsent:
            if conn.hold is not None:
                # what is not read stays with the client, also while the kernel takes nothing from us
                self._listen()
            return
        outq = self._outq
        for _ in range(WRITES_PER_TURN):
            if outq.written >= outq.due_at and self._look(now) <= 0 and not conn.closing:
                self._look_again(now)
                self._note_waiting(now)
                break
            limit = min(WRITE, max(1, outq.room))
            pieces, is_last = self._next(now, limit)
            if len(pieces) == 1:
                self._send(pieces[0])
            elif pieces:
                self._send_together(pieces)
            if self._unsent:
                self._note_waiting(now)
                break
            if is_last:
                break
        else:
            # there is more, and the kernel would take it: after the others
            self._loop.broker.mark(conn)
        if conn.closing:
            if self._unsent or conn.is_dirty:
                self._set_deadline(now)
            else:
                self._finish(now)
        elif conn.hold is not None or self.events != _IN:
            self._listen()

    def _note_waiting(self, now: float) -> None:
        """What is left for the session waits from now on."""
        session = self.conn.session
        if session is not None and not session.oldest:
            session.oldest = now

    def _look_again(self, now: float) -> None:
        """The kernel holds enough for this receiver: come back when some of it has left."""
        if not self._is_waiting:
            self._is_waiting = True
            self._loop.broker.timers.at(now + self._outq.drained_in(), self._resume)

    def _resume(self, now: float) -> None:
        self._is_waiting = False
        if self.fd >= 0:
            self._loop.broker.mark(self.conn)

    def _next(self, now: float, limit: int) -> tuple[list[bytes], bool]:
        """The next bytes for the socket, in pieces, and whether they are the last for this time."""
        layer = self._layer
        if layer is not None and not layer.is_ready:
            said = layer.pending()
            return [said] if said else [], True
        pieces = self._loop.broker.fill(self.conn, limit, now)
        is_last = sum(map(len, pieces)) < limit
        if layer is not None:
            said = layer.pending()
            if pieces:
                said += layer.wrap(pieces[0] if len(pieces) == 1 else b"".join(pieces))
            return [said] if said else [], is_last
        return pieces, is_last

    def _set_deadline(self, now: float) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._loop.broker.timers.at(now + LINGER_S, self.abort)

    def _send_together(self, pieces: list[bytes]) -> None:
        """Send several pieces with one call; long ones are not copied into one before."""
        size = sum(map(len, pieces))
        if size < len(pieces) * LONG or len(pieces) > MOST_PIECES:
            self._send(b"".join(pieces))
            return
        try:
            sent = self._sock.sendmsg(pieces)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lose()
            return
        # what the kernel did not take is copied: it may wait for long, and the pieces belong to others
        self._note_sent(sent, memoryview(b"".join(pieces))[sent:] if sent < size else b"")

    def _send(self, data: bytes | memoryview) -> None:
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lose()
            return
        self._note_sent(sent, memoryview(data)[sent:] if sent < len(data) else b"")

    def _lose(self) -> None:
        """The peer is gone; the read side will say so."""
        self._unsent = b""
        self._loop.gone(self)

    def _note_sent(self, sent: int, rest: bytes | memoryview) -> None:
        """So much went to the kernel, and the rest did not."""
        outq = self._outq
        outq.written += sent
        if outq.written >= outq.due_at:
            outq.probe()
        if rest:
            self._unsent = rest
            self.conn.is_blocked = True
            self._loop.broker.note_unsent(self.conn, len(rest))
            self._listen()
        elif self._unsent:
            self._unsent = b""
            self.conn.is_blocked = self._outq.is_slow
            self._loop.broker.note_unsent(self.conn, 0)
            self._listen()

    def _listen(self) -> None:
        """Ask the kernel for what this link can use now."""
        events = _IN if self._is_lingering or (self.conn.hold is None and self._can_read()) else 0
        if self._unsent:
            events |= _OUT
        if events != self.events:
            self.events = events
            self._loop.modify(self, events)

    def _can_read(self) -> bool:
        """Whether the layer has nothing left of what it read before, and of what it answers."""
        layer = self._layer
        if layer is None:
            return True
        if layer.waiting >= MOST_ANSWERS:
            return False
        if layer.has_more:
            self._read_later()
        return not self._is_put_off

    def _finish(self, now: float) -> None:
        """Everything is written: say goodbye, and wait for the peer to close.

        Closing a socket with unread bytes in it sends a reset, and a reset may overtake what we have just said.  A
        client that has said goodbye sends nothing more, and is not waited for.
        """
        if self.conn.has_left and self._layer is None:
            self.abort(now)
            return
        if self._layer is not None:
            farewell = self._layer.farewell()
            if farewell:
                self._send(farewell)
        self._is_lingering = True
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.abort(now)
            return
        self._listen()
        self._set_deadline(now)
        self._loop.broker.closed(self.conn, now)

    def abort(self, now: float) -> None:
        """Close without a farewell and without waiting for what is still to be written."""
        if self.fd < 0:
            return
        self._loop.forget(self)
        self.fd = -1
        self._sock.close()
        self._on_closed()
        self._unsent = b""
        self._loop.broker.closed(self.conn, now)
        self.conn.link = None

    @property
    def unsent(self) -> int:
        """Bytes encoded and not yet in the kernel."""
        return len(self._unsent)
