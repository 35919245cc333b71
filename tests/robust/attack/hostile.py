"""What attacks are made of: sockets that pour bytes into the broker as fast as it takes them."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from time import sleep
from typing import Final

from tests.kits.dial import dial, open_socket
from tests.robust.attack.bout import Bout
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Packet

#: An attacker that was thrown out comes back after this long.
RETURN_S: Final = 0.05
_PIECE: Final = 65_536

Opens = Callable[[int], socket.socket]


def visitor(url: str, name: str) -> Opens:
    """Opens connections of MQTT 5 clients that were let in; each gets a name of its own."""
    return lambda number: dial(url, f"{name}-{number}").sock


def stranger(url: str) -> Opens:
    """Opens connections that have not said a word."""
    return lambda _: open_socket(url)


class _Pouring:
    """One connection, and what of its bytes is still to be sent."""

    def __init__(self, sock: socket.socket, data: bytes | Iterator[bytes]) -> None:
        self.sock = sock
        self._pieces = repeat(data) if isinstance(data, bytes) else data
        self._rest = memoryview(next(self._pieces))

    def send(self) -> None:
        """As much as the kernel takes; from the beginning again, or what comes next, when all is sent."""
        with suppress(BlockingIOError):
            self._rest = self._rest[self.sock.send(self._rest) :]
        if not self._rest:
            self._rest = memoryview(next(self._pieces))

    def read(self) -> bool:
        """Read and forget; False at the end of the stream."""
        with suppress(BlockingIOError):
            return bool(self.sock.recv(_PIECE))
        return True


def pour(opens: Opens, connections: int, data: bytes | Iterator[bytes], bout: Bout, *, reads: bool = True) -> None:
    """Send the same bytes again and again on so many connections, or pieces without end; a closed one is opened anew.

    Without ``reads`` nothing is ever read: whatever the broker answers stays with it.
    """
    pour_each(opens, connections, lambda _: data, bout, reads=reads)


def pour_each(
    opens: Opens, connections: int, says: Callable[[int], bytes | Iterator[bytes]], bout: Bout, *, reads: bool = True
) -> None:
    """The same, where each connection has something of its own to say, by its number; from here on the attack bites."""
    poll = select.epoll()
    events = select.EPOLLOUT | (select.EPOLLIN if reads else 0)
    open_: dict[int, _Pouring] = {}
    opened = 0
    bout.bite()
    try:
        while not bout.is_over():
            while len(open_) < connections:
                try:
                    sock = opens(opened)
                except (OSError, AssertionError):
                    sleep(RETURN_S)
                    break
                sock.setblocking(False)
                open_[sock.fileno()] = _Pouring(sock, says(opened))
                opened += 1
                poll.register(sock.fileno(), events)
            for fd, found in poll.poll(0.1):
                one = open_[fd]
                try:
                    is_alive = one.read() if found & select.EPOLLIN else True
                    if is_alive and found & select.EPOLLOUT:
                        one.send()
                    elif found & (select.EPOLLERR | select.EPOLLHUP):
                        is_alive = False
                except OSError:
                    is_alive = False
                if not is_alive:
                    poll.unregister(fd)
                    del open_[fd]
                    one.sock.close()
                    sleep(RETURN_S)
    finally:
        for one in open_.values():
            one.sock.close()
        poll.close()


def hello(client_id: str, **fields: object) -> bytes:
    """A CONNECT of MQTT 5."""
    return encode(Connect(version=5, client_id=client_id, clean_start=True, keep_alive=0, **fields), 5)  # type: ignore[arg-type]


def packed(*packets: Packet) -> bytes:
    """Packets of MQTT 5, back to back."""
    return b"".join(encode(packet, 5) for packet in packets)
