"""Connections that come all at once, or without end."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from time import monotonic, sleep
from typing import Final

from tests.kits.dial import hang_up, open_socket
from tests.robust.attack.hostile import hello, pour, stranger
from tests.robust.attack.site import USER, Doors

#: TLS handshakes begun at the same moment.
HELLOS: Final = 400


def _client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def tls_hellos(doors: Doors, connections: int, until: float) -> None:
    """Handshakes that are begun all at once, again and again, and never finished."""
    said = _client_hello()
    while monotonic() < until:
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


def wrong_passwords(doors: Doors, connections: int, until: float) -> None:
    """Logins that fail, as fast as they are refused."""
    said = hello("guess", username=USER[0], password=b"wrong")
    pour(stranger(doors.tcp), connections, said, until)


def come_and_go(doors: Doors, connections: int, until: float) -> None:
    """CONNECT and a reset, as fast as it goes."""
    said = hello("")
    while monotonic() < until:
        socks = []
        with suppress(OSError):
            for _ in range(connections * 8):
                sock = open_socket(doors.tcp)
                sock.sendall(said)
                socks.append(sock)
        for sock in socks:
            hang_up(sock)
