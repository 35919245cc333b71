"""Questions to a running broker over HTTP, with a user's name and password if need be."""

from __future__ import annotations

import http.client
import ssl
from base64 import b64encode
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tieline.cli.trouble import MISUSED, Trouble

_ANSWER_S: Final = 30.0


class Visitor(NamedTuple):
    """Who asks, and whose certificates are trusted."""

    user: str | None = None
    password: str | None = None
    #: PEM file with the authorities to trust; None for the system's own.
    cafile: Path | None = None


def ask_over_http(url: str, method: str, path: str, body: bytes, visitor: Visitor) -> dict[str, Any]:
    """The broker's answer to one request."""
    asking = _connection(url, visitor)
    headers = {}
    if visitor.user is not None:
        token = b64encode(f"{visitor.user}:{visitor.password or ''}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    try:
        asking.request(method, path, body, headers)
        answer = asking.getresponse()
        text = answer.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as problem:
        raise Trouble(f"{url} cannot be reached: {problem}.") from None
    finally:
        asking.close()
    if answer.status != http.client.OK:
        raise Trouble(f"the broker at {url} refused ({answer.status}): {text.rstrip('.')}.")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise Trouble(f"the program at {url} is no broker: it answered {text[:60]!r}.") from None


def _connection(url: str, visitor: Visitor) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or host is None:
        raise Trouble(f'"{url}" is no address of a broker: write http://HOST:PORT or https://HOST:PORT.', code=MISUSED)
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=_ANSWER_S)
    try:
        context = ssl.create_default_context(cafile=visitor.cafile)
    except OSError as problem:
        raise Trouble(f"cannot use {visitor.cafile}: {(problem.strerror or str(problem)).lower()}.") from None
    return http.client.HTTPSConnection(host, port, timeout=_ANSWER_S, context=context)
