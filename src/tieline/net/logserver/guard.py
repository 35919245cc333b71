"""The door of the log server: nothing is answered before it is known who asks; and what faults become as answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tieline.net.log import log
from tieline.net.logserver.answer import trouble
from tieline.net.logserver.question import Unanswerable
from tieline.net.logserver.readers import Backwards, Unknown
from tieline.net.logserver.response import error, json
from tieline.net.logserver.span import Beyond
from tieline.net.logserver.visitors import Turned, Visitors
from tieline.net.store.reading import Gap
from tieline.net.store.schema import Damaged, Unusable

_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="tieline", charset="UTF-8"'}
_NAMES: Final = {401: "unauthorized", 421: "misdirected", 429: "too_many_logins", 503: "busy"}


class Guard:
    """Admits requests, whatever they ask for: a stranger does not even learn which addresses there are."""

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self._app = app
        self._visitors = visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and let a server that stops end it quietly."""
        try:
            await self._answer(scope, receive, send)
        except asyncio.CancelledError:
            # Only the end of the server cancels; whoever is still reading then sees a broken connection.  Raised
            # further, it would stand in the log as a fault.
            log.info("a request was left unfinished: the server stops")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host, port = scope.get("client") or ("-", 0)
        peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        found = await self._visitors.admit(headers.get("authorization"), headers.get("host"), peer)
        if isinstance(found, Turned):
            extra = {401: _CHALLENGE, 429: {"Retry-After": "60"}, 503: {"Retry-After": "1"}}.get(found.status)
            await error(found.status, _NAMES[found.status], found.text, extra)(scope, receive, send)
            return
        scope["visitor"] = found
        await self._app(scope, receive, send)


Handler = Callable[[Request, Any], Response]


def faults() -> Mapping[Any, Handler]:
    """What each refusal becomes."""
    return {
        Unanswerable: lambda _request, fault: _unanswerable(fault),
        Gap: lambda _request, fault: json(trouble(fault), 410),
        Beyond: lambda _request, fault: error(
            416, "beyond", str(fault), {"Content-Range": f"records */{fault.latest}"}, latest=fault.latest
        ),
        Damaged: lambda _request, fault: json(trouble(fault), 500),
        Unusable: lambda _request, fault: _no_log(fault),
        Unknown: lambda _request, fault: error(404, "unknown_reader", str(fault)),
        Backwards: lambda _request, fault: error(409, "backwards", str(fault), position=fault.position),
        HTTPException: lambda _request, fault: error(
            fault.status_code, HTTPStatus(fault.status_code).name.lower(), f"{fault.detail}.", fault.headers
        ),
    }


def _no_log(fault: Unusable) -> Response:
    """Where the files of the store are is the operator's business."""
    log.warning("%s", fault)
    return error(503, "no_log", "there is no log to read; the server's own log says why", {"Retry-After": "5"})


def _unanswerable(fault: Unanswerable) -> Response:
    found = {"error": "refused", "text": fault.text, "rule": fault.rule}
    return json(found if fault.column is None else {**found, "column": fault.column}, 400)
