"""What a request says of itself: who asks, which machine it names, whether a page of another site sent it."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope

from tieline.conf.urls import is_loopback

CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="tieline", charset="UTF-8"'}


def credentials(scope: Scope) -> tuple[str, bytes] | None:
    """User and password of RFC 7617; None when the request brings none, ValueError when they make no sense."""
    given = _values(scope, b"authorization")
    if not given:
        return None
    scheme, _, token = given[0].partition(b" ")
    if len(given) > 1 or scheme.lower() != b"basic":
        raise ValueError("one Authorization header with Basic credentials is understood")
    try:
        user, colon, password = b64decode(token.strip(), validate=True).partition(b":")
        if not colon or not user:
            raise ValueError("user:password is missing")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("not base64 of UTF-8") from error


def peer_of(scope: Scope) -> str:
    """The address of who asks, as MQTT connections have it."""
    host, port = scope.get("client") or ("-", 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_addressed_locally(scope: Scope) -> bool:
    """Whether a request names this machine as such.

    Where nobody has to say who they are, a page in somebody's browser could otherwise reach the server under a name of
    its own that leads here (DNS rebinding).
    """
    hosts = _values(scope, b"host")
    if len(hosts) != 1:
        return False
    try:
        return is_loopback(urlsplit(f"//{hosts[0].decode('latin-1')}").hostname or "")
    except ValueError:
        return False


def named_host(scope: Scope) -> str:
    """Host and port that a request names; empty where it names none, or several."""
    hosts = _values(scope, b"host")
    return _host(hosts[0]) if len(hosts) == 1 else ""


def is_foreign(scope: Scope) -> bool:
    """Whether a browser sends this for a page of another site; other programs say nothing of the kind."""
    if any(site.strip().lower() not in {b"same-origin", b"none"} for site in _values(scope, b"sec-fetch-site")):
        return True
    origins = _values(scope, b"origin")
    if not origins:
        return False
    hosts = _values(scope, b"host")
    return len(origins) > 1 or len(hosts) != 1 or origin_host(origins[0].decode("latin-1")) != _host(hosts[0])


def origin_host(origin: str) -> str:
    """Host and port of an origin such as ``https://example.org``; empty when it names none (``null``)."""
    _, separator, rest = origin.strip().lower().partition("://")
    return rest if separator else ""


def _host(value: bytes) -> str:
    return value.decode("latin-1").strip().lower()


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


async def read_body(request: Request, most: int) -> bytes | None:
    """The body; None when there is too much of it."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)
