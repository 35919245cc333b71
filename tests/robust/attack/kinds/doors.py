"""Doors beside MQTT: pages over HTTP, the management socket, and openings of every listener that are never finished."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle, repeat
from json import dumps
from time import sleep
from typing import Final

from tests.kits.dial import open_socket
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import pour, pour_each, stranger
from tests.robust.attack.site import USER, Doors

_PAGES: Final = (
    "/health", "/metrics", "/v1/demand", "/v1/heat", "/ready", "/%2e%2e/", "/" + "x" * 4_000, "/page/",
    "/page/config.json", "/v1/history?span=900", "/mqtt",
)  # fmt: skip


def _requests(host: str) -> Iterator[bytes]:
    return (f"GET {page} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 20 for page in cycle(_PAGES))


def pages(doors: Doors, connections: int, bout: Bout) -> None:
    """Every page, as fast as it is answered."""
    pour(stranger(doors.http), connections, _requests("127.0.0.1"), bout)


def pages_that_nobody_waits_for(doors: Doors, connections: int, bout: Bout) -> None:
    """Requests whose senders hang up before they are answered, as fast as they can be sent."""
    asked = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    bout.bite()
    while not bout.is_over():
        opened = []
        with suppress(OSError):
            for _ in range(connections):
                opened.append(open_socket(doors.http))
                opened[-1].send(asked)
            sleep(0.001)
        for sock in opened:
            sock.close()


def questions_and_the_past(doors: Doors, connections: int, bout: Bout) -> None:
    """A user with all rights asks what was, and who would get a message of ninety thousand bytes, without end."""
    said = b64encode(":".join(USER).encode()).decode()
    head = f"Host: 127.0.0.1\r\nAuthorization: Basic {said}\r\n"
    payload = b64encode(b'{"v": [' + b"1," * 45_000 + b"1]}").decode()
    asked = (*({"do": verb} for verb in ("top", "sessions", "subscriptions", "conditions", "drops")),)
    bodies = [dumps(each) for each in (*asked, {"do": "trace", "topic": "t", "payload": payload})]
    posts = (f"POST /v1/ask HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}" for body in cycle(bodies))
    pasts = repeat(f"GET /v1/history?span=3600 HTTP/1.1\r\n{head}\r\n")
    requests = (each.encode() for pair in zip(posts, pasts, strict=False) for each in pair)
    pour_each(stranger(doors.http), connections, lambda _: requests, bout)


def management_questions(doors: Doors, connections: int, bout: Bout) -> None:
    """Questions on the management socket without end; whoever may open it may ask."""

    def opens(_: int) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(doors.management)
        return sock

    asked = b"".join(b'{"do": "%s"}\n' % verb for verb in (b"top", b"none", b"why", b"demand")) * 20
    pour(opens, connections, asked, bout)


def drop_by_drop(doors: Doors, connections: int, bout: Bout) -> None:
    """Openings of every door that come byte by byte and never end."""
    began = {
        doors.tcp: b"\x10\xff\x7f",
        doors.ws: b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n",
        doors.tls: b"\x16\x03\x01\x40\x00",
        doors.peer: b"tieline-peer/1 ",
        doors.http: b"GET /metrics HTTP/1.1\r\nX: ",
    }
    bout.bite()
    while not bout.is_over():
        opened: list[tuple[socket.socket, bytes]] = []
        try:
            for url, head in began.items():
                opened += [(open_socket(url), head) for _ in range(connections * 4)]
            for place in range(200):
                for sock, head in opened:
                    sock.send(head[place : place + 1] or b"x")
                sleep(0.01)
                if bout.is_over():
                    break
        except OSError:
            sleep(0.05)
        finally:
            for sock, _ in opened:
                sock.close()
