"""Heat for a broker that is reached over HTTP: ``PUT /v1/heat``, with a user's name and password if need be."""

from __future__ import annotations

import http.client
from base64 import b64encode
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from tieline.cli.heat import pieces
from tieline.cli.trouble import MISUSED, Trouble

_PATH: Final = "/v1/heat"
_ANSWER_S: Final = 30.0


def give_over_http(
    url: str, table: dict[str, Any], period: str, *, user: str | None = None, password: str | None = None
) -> dict[str, Any]:
    """Let a table count; the broker's answer."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or host is None:
        raise Trouble(f'"{url}" is no address of a broker: write http://HOST:PORT or https://HOST:PORT.', code=MISUSED)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {} if user is None else {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}
    body = b"\n".join(msgspec.json.encode(each) for each in pieces(table))
    asking = kind(host, port, timeout=_ANSWER_S)
    try:
        asking.request("PUT", f"{_PATH}?period={quote(period)}", body, headers)
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
