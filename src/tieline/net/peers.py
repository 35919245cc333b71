"""Sockets to other brokers: those that were accepted, those that are dialled for ever, and the node behind them all."""

from __future__ import annotations

import secrets
import select
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Final

from tieline.conf import urls
from tieline.core.account import Event
from tieline.net.address import bind
from tieline.net.listener import ListenError
from tieline.net.outq import SocketBuffer
from tieline.overlay.greeting import Greeting, Refusal, Self
from tieline.overlay.joined import Joined, number_of
from tieline.sched.outflow import FAST, LEAST, Outflow

if TYPE_CHECKING:
    from tieline.conf.schema import Listener, Settings
    from tieline.core.broker import Broker
    from tieline.net.loop import Loop

#: Bytes read from a peer before others get their turn; bytes of one write, and writes in one turn.
_READ: Final = 262_144
_WRITE: Final = 131_072
_WRITES: Final = 4
#: How long a greeting may take, and how many connections may be in theirs.
_GREETING_S: Final = 5.0
_STRANGERS: Final = 64
#: How long to wait before an address is dialled again: twice as long each time, and up to a quarter more or less.
_FIRST_S, _LAST_S = 0.2, 5.0
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class PeerLink:
    """One socket to another broker."""

    def __init__(self, peers: Peers, sock: socket.socket, address: str, dialler: Dialler | None) -> None:
        self._peers = peers
        self._sock = sock
        self.fd = sock.fileno()
        self.handle_number = self.fd
        #: Where it leads, for the log.
        self.address = address
        self.dialler = dialler
        self.greeting: Greeting | None = Greeting(peers.me, secrets.token_hex(16), has_dialled=dialler is not None)
        self.peer = ""
        self._is_connecting = dialler is not None
        self._unsent: memoryview | bytes = b""
        self._events = _IN
        self._outq = Outflow(SocketBuffer(sock), LEAST if peers.core.priorities.always_matter else FAST)
        self._is_waiting = False

    def __repr__(self) -> str:
        return f"<PeerLink {self.peer or '?'} {self.address}>"

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """The socket can be read or written."""
        if self._is_connecting:
            error = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                self.close(now, f"it cannot be reached: {_words(error)}")
                return
            self._is_connecting = False
            self._listen()
            self.write(now)
        if events & _OUT:
            self.write(now)
        if not events & ~_OUT or self.fd < 0:
            return
        try:
            data = self._sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(now, f"the connection broke: {error.strerror or error}")
            return
        if not data:
            self.close(now, "the other end has closed the connection")
            return
        if self.greeting is not None:
            data = self._greet(self.greeting, data, now)
        if data and self.fd >= 0:
            self._peers.joined.receive(self.handle_number, data, now)

    def _greet(self, greeting: Greeting, data: bytes, now: float) -> bytes:
        try:
            rest = greeting.take(data)
            if greeting.is_over:
                self.peer = greeting.peer
                self._peers.admit(self, now)
        except Refusal as refusal:
            if not refusal.is_theirs:
                greeting.out += f"no {refusal}\n".encode()
                self.write(now)
            self._peers.refused(self, refusal, now)
            self.close(now, "")
            return b""
        self.write(now)
        if greeting.is_over and not greeting.out:
            self.greeting = None
        return rest

    def write(self, now: float) -> None:
        """Write what is due, as far as the kernel takes it and should."""
        if self._is_connecting or self.fd < 0:
            return
        if self._unsent:
            self._send(self._unsent, now)
        greeting = self.greeting
        if greeting is not None:
            if greeting.out and not self._unsent:
                out, greeting.out = greeting.out, b""
                self._send(out, now)
            return
        outq = self._outq
        node = self._peers.joined.node
        for _ in range(_WRITES):
            if self._unsent or self.handle_number not in node.dirty or self.fd < 0:
                return
            if outq.is_due and outq.look(now) <= 0:
                self._look_again(now)
                return
            data = node.fill(self.handle_number, min(_WRITE, max(1, outq.room)), now)
            if not data:
                return
            self._send(data, now)
        # there is more: after the others
        self._peers.core.timers.soon(self.write)

    def _look_again(self, now: float) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._peers.core.timers.at(now + self._outq.drained_in(), self._resume)

    def _resume(self, now: float) -> None:
        self._is_waiting = False
        self.write(now)

    def _send(self, data: bytes | memoryview, now: float) -> None:
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._unsent = b""
            self._peers.core.timers.soon(partial(self.close, why=f"the connection broke: {error.strerror or error}"))
            return
        self._outq.written += sent
        if self._outq.is_due:
            self._outq.probe()
        self._unsent = memoryview(data)[sent:] if sent < len(data) else b""
        self._listen()

    def _listen(self) -> None:
        events = (_IN | _OUT) if self._unsent else _IN
        if events != self._events and self.fd >= 0:
            self._events = events
            self._peers.loop.modify(self, events)

    def await_connection(self) -> None:
        """It is being connected: the socket becomes writable when that is over."""
        self._events = _OUT
        self._peers.loop.modify(self, _OUT)

    def close(self, now: float, why: str) -> None:
        """Let go of the socket; ``why`` is for the log, where it was not said before."""
        if self.fd < 0:
            return
        self._peers.loop.forget(self)
        self.fd = -1
        self._sock.close()
        self._peers.closed(self, why, now)


class PeerListener:
    """An address where other brokers connect."""

    def __init__(self, peers: Peers, conf: Listener) -> None:
        self._peers = peers
        asked = urls.parse(conf.url)
        try:
            self._sock = bind(asked.host, asked.port, backlog=64, options=_OPTIONS)
        except OSError as error:
            raise ListenError(f"cannot listen on {asked}: {error.strerror or error}.") from error
        self.fd = self._sock.fileno()
        self.url = replace(asked, port=self._sock.getsockname()[1])
        peers.loop.watch(self)

    def renew(self, conf: Listener, context: object) -> None:
        """Nothing of it can change under connected peers."""

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """Accept a connection, unless too many strangers are there already."""
        try:
            sock, address = self._sock.accept()
        except OSError:
            return
        sock.setblocking(False)
        self._peers.add(sock, f"{address[0]}:{address[1]}", None, now)

    def close(self) -> None:
        """Accept nobody any more; peers that are connected stay."""
        if self.fd >= 0:
            self._peers.loop.forget(self)
            self._sock.close()
            self.fd = -1


class Dialler:
    """One address that is dialled whenever there is no connection to it."""

    def __init__(self, peers: Peers, url: str) -> None:
        self._peers = peers
        self.url = urls.parse(url)
        #: Who was there last.
        self.peer = ""
        self._wait_s = _FIRST_S
        self._told = ""

    def dial(self, now: float) -> None:
        """Try to connect, unless the broker that was there last is connected in another way."""
        if self._peers.is_stopped:
            return
        if self.peer and self.peer in self._peers.up:
            self._later(now)
            return
        try:
            places = socket.getaddrinfo(self.url.host, self.url.port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, place = places[0]
            sock = socket.socket(family, kind, protocol)
        except OSError as error:
            self.failed(f"it cannot be reached: {error.strerror or error}", now)
            return
        sock.setblocking(False)
        for option in _OPTIONS:
            sock.setsockopt(*option)
        sock.connect_ex(place)
        link = self._peers.add(sock, str(self.url), self, now)
        if link is not None:
            link.await_connection()

    def failed(self, why: str, now: float) -> None:
        """There is no connection, or no longer: it is said once for each reason."""
        if why and why != self._told:
            self._told = why
            self._peers.tell("peer_away", self.peer, str(self.url), why, is_trouble=True)
        self._later(now)

    def succeeded(self, peer: str) -> None:
        """A broker is there."""
        self.peer, self._wait_s, self._told = peer, _FIRST_S, ""

    def _later(self, now: float) -> None:
        wait_s, self._wait_s = self._wait_s, min(_LAST_S, 2 * self._wait_s)
        self._peers.core.timers.at(now + wait_s * (0.75 + secrets.randbelow(1000) / 2000), self.dial)


class Peers:
    """Everything of one broker that touches other brokers."""

    def __init__(self, settings: Settings, core: Broker, loop: Loop) -> None:
        self.core = core
        self.loop = loop
        overlay = settings.overlay
        key = None if overlay.key_file is None else _read_key(overlay.key_file)
        self.me = Self(settings.name, overlay.cluster, key)
        # a life is larger than those before it, also where nothing is kept
        self.joined = Joined(core, life=int(time() * 100), strategy=overlay.strategy)
        #: Connections that are up, by the name of the peer.
        self.up: dict[str, PeerLink] = {}
        self._links: dict[int, PeerLink] = {}
        self.is_stopped = False
        self._diallers = [Dialler(self, peer.url) for peer in settings.peer]
        loop.on_flush = self.flush

    def begin(self) -> None:
        """Dial everything once; from then on each dialler looks after itself."""
        for dialler in self._diallers:
            dialler.dial(monotonic())

    def add(self, sock: socket.socket, address: str, dialler: Dialler | None, now: float) -> PeerLink | None:
        """A socket to somebody who has not said who it is; None where there are too many of those."""
        if dialler is None and sum(link.greeting is not None for link in self._links.values()) >= _STRANGERS:
            self.core.account.closed["peer_strangers"] += 1
            sock.close()
            return None
        link = PeerLink(self, sock, address, dialler)
        self._links[link.fd] = link
        self.loop.watch(link)
        if dialler is None:
            link.write(now)
        self.core.timers.at(now + _GREETING_S, partial(self._give_up, link))
        return link

    def _give_up(self, link: PeerLink, now: float) -> None:
        if link.fd >= 0 and link.greeting is not None:
            link.close(now, "its greeting took too long")

    def admit(self, link: PeerLink, now: float) -> None:
        """Somebody has proven who it is; raises Refusal where it cannot be had."""
        name, number = link.peer, number_of(link.peer)
        if self.joined.names.setdefault(number, name) != name:
            other = self.joined.names[number]
            raise Refusal(f"broker {name} has the same number {number} as broker {other}: give it another --name")
        old = self.up.get(name)
        if old is not None:
            was_ours, is_ours = old.dialler is not None, link.dialler is not None
            # of two connections that were dialled from both sides, that of the lesser name stays
            if was_ours != is_ours and was_ours == (self.me.name < name):
                if link.dialler is not None:
                    link.dialler.peer = name
                raise Refusal(f"broker {name} and broker {self.me.name} are connected already")
            old.close(now, "a newer connection replaces it")
        self.up[name] = link
        if link.dialler is not None:
            link.dialler.succeeded(name)
        self.tell("peer_up", name, link.address, "dialled" if link.dialler is not None else "accepted")
        self.joined.node.opened(link.handle_number, now)

    def refused(self, link: PeerLink, refusal: Refusal, now: float) -> None:
        """A greeting ended with a refusal: it is counted, and told in the words of whoever refused."""
        self.core.account.closed["peer_refused"] += 1
        if "connected already" not in str(refusal):
            self.tell("peer_refused", link.peer, link.address, str(refusal), is_trouble=True)

    def closed(self, link: PeerLink, why: str, now: float) -> None:
        """A socket is gone."""
        del self._links[link.handle_number]
        if self.up.get(link.peer) is link:
            del self.up[link.peer]
            self.tell("peer_down", link.peer, link.address, why)
            why = ""
        self.joined.node.closed(link.handle_number, now)
        if link.dialler is not None and not self.is_stopped:
            link.dialler.failed(why, now)

    def tell(self, kind: str, name: str, address: str, text: str, *, is_trouble: bool = False) -> None:
        """Add to the broker's story."""
        self.core.account.tell(Event(kind, f"broker {name}" if name else "", address, text, is_trouble=is_trouble))

    def flush(self, now: float) -> None:
        """A turn is over: what it caused for other brokers leaves."""
        node = self.joined.node
        self.joined.end_turn(now)
        for handle in list(node.doomed):
            link = self._links.get(handle)
            if link is not None:
                link.close(now, "it broke the rules, was silent, or was replaced")
            node.doomed.discard(handle)
        for handle in list(node.dirty):
            link = self._links.get(handle)
            if link is not None:
                link.write(now)

    def stop(self, now: float) -> None:
        """Close everything; what was gathered leaves first."""
        self.is_stopped = True
        self.flush(now)
        for link in list(self._links.values()):
            link.close(now, "this broker stops")
        self.loop.on_flush = None


_OPTIONS: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))


def _read_key(path: str) -> bytes:
    key = Path(path).read_bytes().strip()
    if len(key) < 16:
        raise ListenError(f"{path}: a key has at least 16 bytes.")
    return key


def _words(number: int) -> str:
    from os import strerror

    return strerror(number)
