"""Heat for a broker that is reached over HTTP: ``PUT /v1/heat``, with a user's name and password if need be."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from tieline.cli.heat import pieces
from tieline.cli.over_http import Visitor, ask_over_http

_PATH: Final = "/v1/heat"


def give_over_http(
    url: str, table: dict[str, Any], period: str, *, user: str | None = None, password: str | None = None
) -> dict[str, Any]:
    """Let a table count; the broker's answer."""
    body = b"\n".join(msgspec.json.encode(each) for each in pieces(table))
    return ask_over_http(url, "PUT", f"{_PATH}?period={quote(period)}", body, Visitor(user, password))
