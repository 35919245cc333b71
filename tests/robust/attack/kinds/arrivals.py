"""Connections that come all at once, or without end."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from time import sleep
from typing import Final

from tests.kits.dial import hang_up, open_socket
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import hello, pour, stranger
from tests.robust.attack.site import USER, Doors

#: TLS handshakes begun at the same moment.
HELLOS: Final = 400
#: CONNECTs that are begun, for each hostile connection, and what of each is sent: nearly as much as a packet may have.
UNFINISHED: Final = 50
BEGUN: Final = b"\x10\xff\xff\x3e\x00\x04MQTT\x05\x02\x00\x00" + b"x" * 600_000


def _client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def tls_hellos(doors: Doors, connections: int, bout: Bout) -> None:
    """Handshakes that are begun all at once, again and again, and never finished."""
    said = _client_hello()
    bout.bite()
    while not bout.is_over():
        socks: list[socket.socket] = []
        with suppress(OSError):
            for _ in range(HELLOS):
                socks += [open_socket(doors.tls)]
        for sock in socks:
            with suppress(OSError):
                sock.sendall(said)
        sleep(0.5)
        for sock in socks:
            hang_up(sock)


def wrong_passwords(doors: Doors, connections: int, bout: Bout) -> None:
    """Logins that fail, as fast as they are refused."""
    said = hello("guess", username=USER[0], password=b"wrong")
    pour(stranger(doors.tcp), connections, said, bout)


def come_and_go(doors: Doors, connections: int, bout: Bout) -> None:
    """CONNECT and a reset, as fast as it goes."""
    said = hello("")
    bout.bite()
    while not bout.is_over():
        socks = []
        with suppress(OSError):
            for _ in range(connections * 8):
                sock = open_socket(doors.tcp)
                sock.sendall(said)
                socks.append(sock)
        for sock in socks:
            hang_up(sock)


def unfinished_connects(doors: Doors, connections: int, bout: Bout) -> None:
    """Hundreds of CONNECTs of a megabyte each, which are sent for the greater part and then no further."""
    bout.bite()
    while not bout.is_over():
        begun: list[tuple[socket.socket, memoryview]] = []
        with suppress(OSError):
            for _ in range(connections * UNFINISHED):
                sock = open_socket(doors.tcp)
                sock.setblocking(False)
                begun.append((sock, memoryview(BEGUN)))
        for _ in range(50):
            begun = [(sock, rest[_send(sock, rest) :]) for sock, rest in begun]
            sleep(0.02)
            if bout.is_over():
                break
        for sock, _rest in begun:
            hang_up(sock)


def _send(sock: socket.socket, rest: memoryview) -> int:
    """What the kernel takes; nothing, if the broker has closed it."""
    with suppress(OSError):
        return sock.send(rest)
    return 0
