"""One socket to another broker: the greeting first, then what the node has to say, no faster than it leaves."""

from __future__ import annotations

import os
import secrets
import select
import socket
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from tieline.net.layer import LayerError
from tieline.net.outq import SocketBuffer
from tieline.overlay.links.greeting import Greeting, Refusal
from tieline.sched.outflow import LEAST, Outflow, Pacer

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.net.dialler import Dialler
    from tieline.net.tls import Tls
    from tieline.net.trust import Trust
    from tieline.net.turns import Turns
    from tieline.overlay.links.greeting import Self

#: Bytes read from a peer before others get their turn; bytes of one write, and writes in one turn.
_READ: Final = 262_144
#: The same of one that compresses what it sends, which it may have made of two hundred times as much.
_READ_PACKED: Final = 8_192
_WRITE: Final = 131_072
_WRITES: Final = 4
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class Carries(Protocol):
    """What a node says of the bytes of one connection."""

    @property
    def dirty(self) -> set[int]:
        """Connections with something to write."""

    def fill(self, handle: int, room: int, now: float) -> bytes:
        """What is to be written next, about as much as there is room for."""

    def packs(self, handle: int) -> bool:
        """Whether the other end compresses what it sends."""

    def note_rate(self, handle: int, bytes_per_s: float) -> None:
        """A connection carries so much."""


class Behind(Protocol):
    """What lies behind a link."""

    @property
    def node(self) -> Carries: ...

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """Bytes have come; True if some wait for :meth:`go_on`."""

    def go_on(self, handle: int, now: float) -> bool:
        """Others have had their turn; whether something still waits."""


class LinkOwner(Protocol):
    """To whom a link belongs."""

    core: Broker
    me: Self

    @property
    def joined(self) -> Behind: ...

    @property
    def loop(self) -> Turns: ...

    def admit(self, link: PeerLink, now: float) -> None:
        """Somebody has proven who it is; raises Refusal where it cannot be had."""

    def refused(self, link: PeerLink, refusal: Refusal, now: float) -> None:
        """A greeting ended with a refusal."""

    def closed(self, link: PeerLink, why: str, now: float) -> None:
        """A socket is gone."""


class PeerLink:
    """One socket to another broker, and the bytes that the kernel has not taken yet."""

    def __init__(  # who it belongs to, the socket, where it leads, who has dialled, and what lies on it
        self, owner: LinkOwner, sock: socket.socket, address: str, dialler: Dialler | None, tls: Tls | None
    ) -> None:
        self._owner = owner
        self._sock = sock
        self.fd = sock.fileno()
        #: By which the node knows it.
        self.handle_number = self.fd
        #: Where it leads, for the log; and the machine, as far as it is known.
        self.address = address
        self.host = address.rpartition(":")[0]
        #: None if the other end has dialled.
        self.dialler = dialler
        self._tls = tls
        self._me = owner.me
        self.greeting: Greeting | None = Greeting(
            owner.me, secrets.token_hex(16), has_dialled=dialler is not None, check=self._check
        )
        #: Who is there; empty until it has proven that.
        self.peer = ""
        #: The key by which it has done so.
        self._key: bytes | None = None
        self._is_connecting = dialler is not None
        #: What was read and is looked at when others have had their turn.
        self._put_off = b""
        self._appetite = _READ
        #: The node has something to look at still, when others have had their turn; until then nothing is read.
        self._is_behind = False
        self._unsent: memoryview | bytes = b""
        self._events = _IN
        # what is urgent may come at any time, and a fast link is past every bound after a few writes
        self._outq = Outflow(SocketBuffer(sock), LEAST)
        #: Where it is known what the link carries.
        self._pacer: Pacer | None = None
        self._is_waiting = False
        #: Bytes in both directions, as they are on the wire.
        self.bytes_in = self.bytes_out = 0

    def __repr__(self) -> str:
        return f"<PeerLink {self.peer or '?'} {self.address}>"

    @property
    def is_tls(self) -> bool:
        return self._tls is not None

    def is_believed(self, me: Self, trust: Trust | None) -> bool:
        """Whether what the other end has proven is still good; what it is proving now counts as that."""
        if self._tls is not None and trust is not None and not self._tls.is_believed(trust):
            return False
        if not self.peer:
            # the keys were handed out when the greeting began
            return self._me == me
        keys = me.keys_of(self.peer)
        return not keys or self._key in keys

    @property
    def round_trip_s(self) -> float:
        """The smallest that the kernel has seen; 0 where it does not know."""
        return SocketBuffer(self._sock).round_trip_s() if self.fd >= 0 else 0.0

    @property
    def unsent(self) -> int:
        """Bytes that were made, and are not on their way: ours and the kernel's."""
        return len(self._unsent) + (SocketBuffer(self._sock).count_held() if self.fd >= 0 else 0)

    # -- reading

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """The socket can be read or written."""
        try:
            self._handle(events, now, is_alone)
        except Exception:
            self._fail(now)
            raise

    def _fail(self, now: float) -> None:
        """A bug of ours met this peer: it is over for the peer alone."""
        self._owner.core.account.closed["internal_error"] += 1
        self.close(now, "an internal error")

    def _handle(self, events: int, now: float, is_alone: bool) -> None:
        if self._is_connecting:
            problem = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if problem:
                self.close(now, f"it cannot be reached: {os.strerror(problem)}")
                return
            self._is_connecting = False
            self._listen()
            self._read(b"", now)
        if events & _OUT:
            self.write(now)
        if not events & ~_OUT or self.fd < 0 or self._put_off or self._is_behind:
            return
        try:
            data = self._sock.recv(self._appetite)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(now, f"the connection broke: {error.strerror or error}")
            return
        if not data:
            self.close(now, "the other end has closed the connection")
            return
        self.bytes_in += len(data)
        if self._tls is not None and self._tls.is_costly and not is_alone:
            # an exchange of keys takes a millisecond: others come first
            self._put_off = data
            self._listen()
            self._owner.core.work.later(self._read_on)
            return
        self._read(data, now)

    def _read_on(self, now: float) -> None:
        data, self._put_off = self._put_off, b""
        if self.fd >= 0:
            self._listen()
            self._read(data, now)

    def _read(self, data: bytes, now: float) -> None:
        tls = self._tls
        if tls is not None:
            trouble = ""
            try:
                data = tls.received(data)
            except LayerError as error:
                self._owner.core.account.closed[f"peer_{error.name}"] += 1
                data, trouble = error.before, f"TLS: {error.text}"
            self._owner.core.work.did(tls.take_work())
            self._take(data, now)
            if trouble or tls.is_over:
                self.write(now)
                self.close(now, trouble or "the other end has closed the connection")
                return
            if not tls.is_ready:
                self.write(now)
                return
        else:
            self._take(data, now)
        if self.greeting is not None:
            self.write(now)

    def _take(self, data: bytes, now: float) -> None:
        if self.greeting is not None and data:
            data = self._greet(self.greeting, data, now)
        if not data or self.fd < 0:
            return
        joined = self._owner.joined
        is_behind = joined.receive(self.handle_number, data, now)
        self._appetite = _READ_PACKED if joined.node.packs(self.handle_number) else _READ
        if is_behind:
            if not self._is_behind:
                self._owner.core.work.later(self._go_on)
            self._is_behind = True
            self._listen()

    def _go_on(self, now: float) -> None:
        """Others have had their turn."""
        if self.fd < 0:
            return
        try:
            self._is_behind = self._owner.joined.go_on(self.handle_number, now)
        except Exception:
            self._fail(now)
            raise
        if self._is_behind:
            self._owner.core.work.later(self._go_on)
        else:
            self._listen()

    def _greet(self, greeting: Greeting, data: bytes, now: float) -> bytes:
        try:
            rest = greeting.take(data)
            if greeting.is_over:
                self.peer, self._key = greeting.peer, greeting.key
                self._owner.admit(self, now)
        except Refusal as refusal:
            if not refusal.is_theirs:
                greeting.out += f"no {refusal}\n".encode()
                self.write(now)
            self._owner.refused(self, refusal, now)
            self.close(now, "")
            return b""
        self.write(now)
        if greeting.is_over and not greeting.out:
            self.greeting = None
        return rest

    def _check(self, name: str) -> None:
        """Refuse whom the settings or its certificate do not know by that name."""
        expected = None if self.dialler is None else self.dialler.conf.name
        if expected is not None and name != expected:
            raise Refusal(f"broker {name} is where broker {expected} was expected")
        names = frozenset((name,)) if self._tls is None else self._tls.names
        if name not in names:
            known = ", ".join(sorted(names)) or "nobody"
            raise Refusal(f"broker {name} has a certificate for {known}, and not for {name}")

    # -- writing

    def write(self, now: float) -> None:
        """Write what is due, as far as the kernel takes it and should."""
        try:
            self._write(now)
        except Exception:
            self._fail(now)
            raise

    def _write(self, now: float) -> None:
        if self._is_connecting or self.fd < 0:
            return
        if self._unsent:
            self._send(self._unsent, now)
        tls = self._tls
        if tls is not None and tls.has_pending and not self._unsent:
            self._send(tls.pending(), now)
        greeting = self.greeting
        if greeting is not None:
            if greeting.out and not self._unsent and (tls is None or tls.is_ready):
                out, greeting.out = greeting.out, b""
                self._wrap(out, now)
            return
        self._write_more(now)

    def _write_more(self, now: float) -> None:
        outq = self._outq
        node = self._owner.joined.node
        for _ in range(_WRITES):
            if self._unsent or self.handle_number not in node.dirty or self.fd < 0:
                return
            if outq.is_due and outq.look(now) <= 0:
                if outq.is_slow:
                    node.note_rate(self.handle_number, outq.path.rate)
                self._look_again(now + outq.drained_in())
                return
            room = min(_WRITE, max(1, outq.room))
            if self._pacer is not None:
                room = min(room, self._pacer.room(now))
                if room <= 0:
                    node.note_rate(self.handle_number, self._pacer.bytes_per_s)
                    self._look_again(self._pacer.next_at())
                    return
            data = node.fill(self.handle_number, room, now)
            if not data:
                return
            self._wrap(data, now)
        # there is more: after the others
        self._owner.core.timers.soon(self.write)

    def _look_again(self, when: float) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._owner.core.timers.at(when, self._resume)

    def _resume(self, now: float) -> None:
        self._is_waiting = False
        self.write(now)

    def _wrap(self, data: bytes, now: float) -> None:
        wrapped = data if self._tls is None else self._tls.wrap(data)
        if self._pacer is not None:
            self._pacer.gave(len(wrapped), now)
        self._send(wrapped, now)

    def pace(self, bits_per_s: float | None) -> None:
        """Give no more from now on than the link carries; None where that has to be found out."""
        self._pacer = None if bits_per_s is None else Pacer(bits_per_s)

    def _send(self, data: bytes | memoryview, now: float) -> None:
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._unsent = b""
            why = f"the connection broke: {error.strerror or error}"
            self._owner.core.timers.soon(partial(self.close, why=why))
            return
        self.bytes_out += sent
        self._outq.written += sent
        if self._outq.is_due:
            self._outq.probe()
        self._unsent = memoryview(data)[sent:] if sent < len(data) else b""
        self._listen()

    def _listen(self) -> None:
        events = (0 if self._put_off or self._is_behind else _IN) | (_OUT if self._unsent else 0)
        if events != self._events and self.fd >= 0:
            self._events = events
            self._owner.loop.modify(self, events)

    def await_connection(self) -> None:
        """It is being connected: the socket becomes writable when that is over."""
        self._events = _OUT
        self._owner.loop.modify(self, _OUT)

    def close(self, now: float, why: str) -> None:
        """Let go of the socket; ``why`` is for the log, where it was not said before."""
        if self.fd < 0:
            return
        if self._tls is not None and self._tls.is_ready and not self._unsent:
            self._send(self._tls.farewell(), now)
        self._owner.loop.forget(self)
        self.fd = -1
        self._sock.close()
        self._owner.closed(self, why, now)
