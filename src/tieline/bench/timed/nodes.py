"""MQTT 5 clients on raw sockets that act by a timetable: with a level, with wishes, perhaps reading slowly."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Self

from tieline.bench.load import packets as plain
from tieline.bench.load.clients import PATIENCE_S
from tieline.bench.load.ends import Client
from tieline.bench.load.job import Stalled, TurnedDown
from tieline.bench.timed import packets

#: Does something at a time and says when it wants to be called again, if at all.
Action = Callable[[float], float | None]
clock = time.perf_counter
#: However little happens, it is asked this often whether everything is finished.
_LOOK_UP_S = 0.1


class Timetable:
    """Clients and an agenda."""

    def __init__(self) -> None:
        self.poller = select.epoll()
        self._clients: dict[int, tuple[Client, Callable[[], None]]] = {}
        self._agenda: list[tuple[float, int, Action]] = []
        self._serial = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.poller.close()

    def attend(self, client: Client, receive: Callable[[], None]) -> None:
        """Call ``receive`` whenever something has arrived for the client."""
        self._clients[client.fd] = (client, receive)

    def at(self, when: float, action: Action) -> None:
        """Put an action on the agenda."""
        self._serial += 1
        heappush(self._agenda, (when, self._serial, action))

    def every(self, period_s: float, begin: float, end: float, act: Callable[[], None]) -> None:
        """Do something again and again until the end."""

        def once(now: float) -> float | None:
            act()
            return now + period_s if now + period_s < end else None

        self.at(begin, once)

    def run(self, until: float, finished: Callable[[], bool] = lambda: False) -> None:
        """Act until the clock says so, or until everything is finished."""
        agenda = self._agenda
        while (now := clock()) < until and not finished():
            while agenda and agenda[0][0] <= now:
                _, _, action = heappop(agenda)
                again = action(now)
                if again is not None:
                    self.at(again, action)
                now = clock()
            due = min(until, agenda[0][0]) if agenda else until
            for fd, event in self.poller.poll(min(max(0.0, due - now), _LOOK_UP_S)):
                client, receive = self._clients[fd]
                if event & select.EPOLLOUT:
                    client.writable()
                if event & ~select.EPOLLOUT:
                    receive()


#: Kernel time of arrival with every read (SO_TIMESTAMPNS); Python has no name for it.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("qq")
_RECEIVE = 262_144

Receive = Callable[[packets.Arrival, int], None]


def open_node(  # what must be said before a socket connects
    host: str,
    port: int,
    client_id: str,
    user: Mapping[str, str] = plain.NOTHING,
    *,
    receive_buffer: int | None = None,
    segment: int | None = None,
    header_level: int | None = None,
    tls: ssl.SSLContext | None = None,
) -> socket.socket:
    """A connected socket; its receive buffer and segment size can only be bounded before it connects."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(PATIENCE_S)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if segment is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((host, port))
        if tls is not None:
            sock = tls.wrap_socket(sock)
        _exchange(sock, plain.connect(client_id, version=5, user=user), plain.CONNACK, header_level)
    except TimeoutError as error:
        sock.close()
        raise Stalled(f"{client_id}: no CONNACK within {PATIENCE_S:.0f} s") from error
    except OSError as error:
        sock.close()
        raise TurnedDown(f"{client_id}: {error}") from error
    except BaseException:
        sock.close()
        raise
    return sock


def subscribe(
    sock: socket.socket,
    filters: Sequence[str],
    user: Mapping[str, str] = plain.NOTHING,
    *,
    qos: int = 0,
    header_level: int | None = None,
) -> None:
    """Subscribe and wait for the broker's consent."""
    sock.settimeout(PATIENCE_S)
    body = _exchange(sock, plain.subscribe(1, filters, qos=qos, version=5, user=user), plain.SUBACK, header_level)
    if list(body[-len(filters) :]) != [qos] * len(filters):
        raise TurnedDown(f"SUBSCRIBE was answered with {body.hex(' ')}")


def _exchange(sock: socket.socket, request: bytes, answer: int, header_level: int | None) -> bytes:
    sock.sendall(request if header_level is None else packets.with_header_byte(request, header_level))
    inbox = packets.Inbox(has_header_byte=header_level is not None)
    while True:
        chunk = sock.recv(1)  # one by one: what follows the answer is not ours to take
        if not chunk:
            raise TurnedDown("the broker closed the connection")
        for first, body in inbox.feed(chunk):
            if first != answer or (answer == plain.CONNACK and body[1] != 0):
                raise TurnedDown(f"{request[0]:#04x} was answered with {first:#04x} {body[:16].hex(' ')}")
            return body


def hang_up(socks: Sequence[socket.socket]) -> None:
    """Close the connections without waiting for anything."""
    for sock in socks:
        with contextlib.suppress(OSError):
            sock.close()


class Listener(Client, ABC):
    """A client that hears every packet with the kernel's time of its arrival; over TLS with that of the reading."""

    def __init__(
        self, sock: socket.socket, timetable: Timetable, *, has_header_byte: bool = False, most: int = _RECEIVE
    ) -> None:
        """``most`` bytes are read at once: what is read together has one time."""
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sock.setblocking(False)
        super().__init__(sock, timetable.poller)
        self._inbox = packets.Inbox(has_header_byte=has_header_byte)
        self._most = most
        timetable.attend(self, self._readable)

    @abstractmethod
    def heard(self, first: int, body: bytes, when_ns: int) -> None:
        """A packet has arrived: its first byte, and what follows its fixed header."""

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            if isinstance(self.sock, ssl.SSLSocket):
                while True:  # what one record brought is not announced again
                    self._take(self.sock.recv(self._most), time.time_ns())
            data, extra, _, _ = self.sock.recvmsg(self._most, 64)
            self._take(data, arrival_ns(extra))

    def _take(self, data: bytes, when_ns: int) -> None:
        if not data:
            raise TurnedDown("the broker closed a subscriber's connection")
        for first, body in self._inbox.feed(data):
            self.heard(first, body, when_ns)


class Reader(Listener):
    """A subscriber that takes everything at once."""

    def __init__(self, sock: socket.socket, timetable: Timetable, receive: Receive) -> None:
        super().__init__(sock, timetable)
        self._receive = receive

    def heard(self, first: int, body: bytes, when_ns: int) -> None:
        """Hand messages to whoever wants them."""
        if first & 0xF0 == plain.PUBLISH:
            self._receive(packets.arrival(first, body), when_ns)


class Writer(Client):
    """A publisher that reads nothing but acknowledgements, which it ignores."""

    def __init__(self, sock: socket.socket, timetable: Timetable) -> None:
        sock.setblocking(False)
        super().__init__(sock, timetable.poller)
        timetable.attend(self, self._readable)

    def _readable(self) -> None:
        self.receive()


class SlowReader:
    """A subscriber that takes so many bytes a second and no more: a port of limited capacity."""

    #: How often it reads.
    EVERY_S = 0.005

    def __init__(self, sock: socket.socket, timetable: Timetable, receive: Receive, *, bytes_per_s: float) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._inbox = packets.Inbox()
        self._receive = receive
        self._rate = bytes_per_s
        self._allowance = 0.0
        self._last = 0.0
        #: Bytes taken so far.
        self.taken = 0
        timetable.at(0.0, self._read)

    def _read(self, now: float) -> float:
        if self._last:
            self._allowance += (now - self._last) * self._rate
        self._last = now
        if self._allowance >= 1:
            try:
                data = self.sock.recv(int(self._allowance))
            except BlockingIOError:
                data = None
                self._allowance = 0.0  # what could have been taken while nothing was there is gone, as on a link
            if data == b"":
                raise TurnedDown("the broker closed a slow reader's connection")
            if data:
                self._allowance -= len(data)
                self.taken += len(data)
                when = time.time_ns()
                for first, body in self._inbox.feed(data):
                    if first & 0xF0 == plain.PUBLISH:
                        self._receive(packets.arrival(first, body), when)
        return now + self.EVERY_S


def arrival_ns(extra: list[tuple[int, int, bytes]]) -> int:
    """The kernel's time of arrival, or the time now if it gave none."""
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return time.time_ns()
