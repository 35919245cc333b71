"""What pages have to know about a request: who asks, whether it names this machine, and its body."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope

#: Where the guard leaves the name of who asks, for the log.
USER: Final = "tieline.user"


async def read_body(request: Request, most: int) -> bytes | None:
    """The body; None when there is too much of it."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


def is_addressed_locally(scope: Scope) -> bool:
    """Whether a request names this machine as such.

    Where nobody has to say who they are, a page in somebody's browser could otherwise reach the broker under a name of
    its own that leads here (DNS rebinding).
    """
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        return False
    try:
        host = urlsplit(f"//{hosts[0]}").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
