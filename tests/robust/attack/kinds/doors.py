"""Doors beside MQTT: pages over HTTP, the management socket, and openings of every listener that are never finished."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import cycle
from time import monotonic, sleep
from typing import Final

from tests.kits.dial import open_socket
from tests.robust.attack.hostile import pour, stranger
from tests.robust.attack.site import Doors

_PAGES: Final = (
    "/health", "/metrics", "/v1/demand", "/v1/heat", "/ready", "/%2e%2e/", "/" + "x" * 4_000, "/page/",
    "/page/config.json", "/v1/history?span=900", "/mqtt",
)  # fmt: skip


def _requests(host: str) -> Iterator[bytes]:
    return (f"GET {page} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 20 for page in cycle(_PAGES))


def pages(doors: Doors, connections: int, until: float) -> None:
    """Every page, as fast as it is answered."""
    pour(stranger(doors.http), connections, _requests("127.0.0.1"), until)


def management_questions(doors: Doors, connections: int, until: float) -> None:
    """Questions on the management socket without end; whoever may open it may ask."""

    def opens(_: int) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(doors.management)
        return sock

    asked = b"".join(b'{"do": "%s"}\n' % verb for verb in (b"top", b"none", b"why", b"demand")) * 20
    pour(opens, connections, asked, until)


def drop_by_drop(doors: Doors, connections: int, until: float) -> None:
    """Openings of every door that come byte by byte and never end."""
    began = {
        doors.tcp: b"\x10\xff\x7f",
        doors.ws: b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n",
        doors.tls: b"\x16\x03\x01\x40\x00",
        doors.peer: b"tieline-peer/1 ",
        doors.http: b"GET /metrics HTTP/1.1\r\nX: ",
    }
    while monotonic() < until:
        opened: list[tuple[socket.socket, bytes]] = []
        try:
            for url, head in began.items():
                opened += [(open_socket(url), head) for _ in range(connections * 4)]
            for place in range(200):
                for sock, head in opened:
                    sock.send(head[place : place + 1] or b"x")
                sleep(0.01)
                if monotonic() > until:
                    break
        except OSError:
            sleep(0.05)
        finally:
            for sock, _ in opened:
                sock.close()
