"""Opening many client connections at once, plain or TLS, each up to its CONNACK and its SUBACK."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterator, Sequence

from tieline.bench.load import packets
from tieline.bench.load.job import Endpoint, Failure, Stalled, TurnedDown

#: Handshakes under way at a time.  Brokers listen with a backlog of 100 or more; beyond it a SYN waits a second.
IN_FLIGHT = 64
PATIENCE_S = 10.0
_FILTERS_PER_PACKET = 200
#: RST on close: thousands of short connections would otherwise hold their ports in TIME_WAIT.
NO_LINGER = b"\x01\x00\x00\x00\x00\x00\x00\x00"


class Opening:
    """One connection on its way to CONNACK."""

    __slots__ = ("_greeting", "_handshaken", "_received", "sock")

    def __init__(self, at: Endpoint, greeting: bytes, tls: ssl.SSLContext | None) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.connect((at.host, at.tls_port or 0) if tls else (at.host, at.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        sock.setblocking(False)
        self._greeting = greeting
        self._received = b""
        self._handshaken = tls is None
        if tls is None:
            self.sock = sock
            sock.send(greeting)
        else:
            self.sock = tls.wrap_socket(sock, do_handshake_on_connect=False, server_hostname=at.host)

    def advance(self) -> bool:
        """Go as far as the received bytes allow; true once connected."""
        try:
            if not self._handshaken:
                assert isinstance(self.sock, ssl.SSLSocket)
                self.sock.do_handshake()
                self._handshaken = True
                self.sock.send(self._greeting)
            chunk = self.sock.recv(4096)
        except (ssl.SSLWantReadError, BlockingIOError):
            return False
        if not chunk:
            raise TurnedDown("the broker closed a connection instead of answering CONNECT")
        self._received += chunk
        size = packets.length_of(self._received)
        if not size or len(self._received) < size:
            return False
        if self._received[0] != packets.CONNACK or self._received[3] != 0:
            raise TurnedDown(f"CONNECT was answered with {self._received[:8].hex(' ')}")
        return True


def tls_context(at: Endpoint) -> ssl.SSLContext:
    """A client context that trusts the benchmark's own certificate."""
    if at.tls_port is None or at.ca_file is None:
        raise Failure("the peer has no TLS listener here")
    return ssl.create_default_context(cafile=at.ca_file)


def open_clients(
    at: Endpoint,
    names: Sequence[str],
    *,
    version: int = 4,
    tls: bool = False,
    clean: bool = True,
    give_up_s: float = 60.0,
) -> list[socket.socket]:
    """Connected, non-blocking sockets in the order of the names."""
    context = tls_context(at) if tls else None
    deadline = time.monotonic() + give_up_s
    done: dict[str, socket.socket] = {}
    waiting: dict[int, tuple[str, Opening]] = {}
    upcoming = iter(names)
    poller = select.epoll()
    try:
        exhausted = False
        while waiting or not exhausted:
            while len(waiting) < IN_FLIGHT and not exhausted:
                name = next(upcoming, None)
                if name is None:
                    exhausted = True
                    break
                opening = Opening(at, packets.connect(name, version=version, clean=clean), context)
                # A TLS client speaks first: its hello leaves with the first attempt, and may be answered within it.
                if tls and opening.advance():
                    done[name] = opening.sock
                    continue
                waiting[opening.sock.fileno()] = (name, opening)
                poller.register(opening.sock, select.EPOLLIN)
            for fd, _ in poller.poll(PATIENCE_S if waiting else 0):
                name, opening = waiting[fd]
                if opening.advance():
                    poller.unregister(fd)
                    done[name] = opening.sock
                    del waiting[fd]
            if time.monotonic() > deadline:
                raise Stalled(f"{len(done)} of {len(names)} clients connected in {give_up_s:.0f} s")
    except BaseException as error:
        for sock in [*done.values(), *(opening.sock for _, opening in waiting.values())]:
            sock.close()
        if isinstance(error, OSError):
            raise TurnedDown(f"connecting failed after {len(done)} of {len(names)} clients: {error}") from error
        raise
    finally:
        poller.close()
    return [done[name] for name in names]


@contextlib.contextmanager
def clients(
    at: Endpoint, names: Sequence[str], *, version: int = 4, tls: bool = False, clean: bool = True
) -> Iterator[list[socket.socket]]:
    """Clients that are disconnected in the end."""
    socks = open_clients(at, names, version=version, tls=tls, clean=clean)
    try:
        yield socks
    finally:
        close(socks)


def forget(at: Endpoint, names: Sequence[str]) -> None:
    """End the sessions that these clients may have left."""
    with clients(at, names):
        pass


def close(socks: Sequence[socket.socket]) -> None:
    """Say DISCONNECT on each connection, and close it."""
    for sock in socks:
        with contextlib.suppress(OSError):
            sock.send(packets.DISCONNECT)
        sock.close()


def subscribe(sock: socket.socket, filters: Sequence[str], *, qos: int = 0, version: int = 4) -> None:
    """Subscribe and wait until the broker has confirmed every filter at that QoS."""
    blocking = sock.gettimeout()
    sock.settimeout(PATIENCE_S)
    try:
        for start in range(0, len(filters), _FILTERS_PER_PACKET):
            part = filters[start : start + _FILTERS_PER_PACKET]
            sock.sendall(packets.subscribe(start + 1, part, qos=qos, version=version))
            _confirm(_one_packet(sock), [qos] * len(part))
    except TimeoutError as error:
        raise Stalled(f"no SUBACK within {PATIENCE_S:.0f} s") from error
    except OSError as error:
        raise TurnedDown(f"subscribing failed: {error}") from error
    finally:
        sock.settimeout(blocking)


def _confirm(packet: bytes, granted: list[int]) -> None:
    codes = list(packet[-len(granted) :])
    if packet[0] != packets.SUBACK or codes != granted:
        raise TurnedDown(f"SUBSCRIBE was answered with {packet[:16].hex(' ')}")


def _one_packet(sock: socket.socket) -> bytes:
    data = sock.recv(2)
    while (size := packets.length_of(data)) == 0 or len(data) < size:
        chunk = sock.recv(size - len(data) if size else 1)
        if not chunk:
            raise TurnedDown("the broker closed a subscriber's connection")
        data += chunk
    return data
