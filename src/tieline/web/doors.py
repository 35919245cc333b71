"""The HTTP application: who may see which page, and what is on it.

Theory of operation
-------------------
Everything but ``/health`` is behind the same access control as MQTT.  Where the broker knows users, a request without
credentials gets 401, whatever it asked for, and a page about the broker needs the right to subscribe to ``$SYS/#``,
which holds the same numbers.  Who may not see a page is told 403 and by which rule, as in MQTT, and nothing else.  To
change something (:mod:`tieline.web.heat`), or to hear of every client (:mod:`tieline.web.demand`), takes a right of its
own.

The broker is asked for figures at most once a second, however many readers there are, and requests are served at a
bounded pace: a flood of them costs the broker a bounded share of its interpreter.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from time import monotonic
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tieline.web.demand import DEMAND, Counter, DemandPage
from tieline.web.demand import PATH as DEMAND_PATH
from tieline.web.figures import Figures
from tieline.web.heat import HEAT, Heater, HeatPage
from tieline.web.heat import PATH as HEAT_PATH
from tieline.web.metrics import render
from tieline.web.request import USER, is_addressed_locally

#: What a reader of pages about the broker must be allowed to subscribe to.
SEEN: Final = "$SYS/#"
#: What takes a right of its own, by path and method, and the topic that stands for the right.
RIGHTS: Final = {(HEAT_PATH, "PUT"): HEAT, (HEAT_PATH, "DELETE"): HEAT, (DEMAND_PATH, "POST"): DEMAND}
#: Figures are not older than this.
FRESH_S: Final = 1.0
#: Requests per second; more wait for their turn.
PACE_PER_S: Final = 100.0
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="tieline", charset="UTF-8"'}


class Broker(Heater, Counter, Protocol):
    """The broker as this thread sees it; every answer comes from the broker's own."""

    async def admit(
        self, user: str | None, password: bytes | None, peer: str, *, right: str, is_here: bool
    ) -> tuple[int, str]:
        """200 when somebody may see the pages, or do what takes a right, else why not, and the rule that decided.

        ``right`` is empty for the pages; ``is_here`` when the request names this machine as such.
        """

    async def figures(self) -> Figures:
        """What it shows now; raises TimeoutError when it does not answer."""


def application(broker: Broker) -> ASGIApp:
    """The pages, behind the checks that every request passes."""
    pages = _Pages(broker)
    heat, demand = HeatPage(broker), DemandPage(broker)
    inside = Starlette(
        routes=[
            Route("/metrics", pages.metrics),
            Route("/ready", pages.ready),
            Route(HEAT_PATH, heat.answer, methods=["GET", "PUT", "DELETE"]),
            Route(DEMAND_PATH, demand.answer, methods=["POST"]),
        ],
        exception_handlers={404: _unknown_page, 405: _unknown_method},
    )
    return _Guard(inside, broker)


async def _unknown_page(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("there is no such page\n", 404)


async def _unknown_method(_request: Request, error: Exception) -> Response:
    allowed: str = (getattr(error, "headers", None) or {}).get("Allow", "")
    *others, last = sorted(allowed.split(", "))
    return PlainTextResponse(f"only {', '.join(others)} and {last} are answered\n", 405, headers={"Allow": allowed})


class _Guard:
    """Paces requests, answers ``/health``, and lets nobody else in who may not see the pages."""

    def __init__(self, inside: ASGIApp, broker: Broker) -> None:
        self._inside = inside
        self._broker = broker
        self._next = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no lifespan, no WebSocket
        now = monotonic()
        self._next = max(now, self._next) + 1 / PACE_PER_S
        if self._next - now > 2 / PACE_PER_S:
            await asyncio.sleep(self._next - now)
        answer = await self._answer(scope)
        await (self._inside if answer is None else answer)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        if scope["path"] == "/health" and scope["method"] in {"GET", "HEAD"}:
            return PlainTextResponse("ok\n")
        rule = ""
        try:
            user, password = _credentials(scope)
            client = scope.get("client")
            peer = f"{client[0]}:{client[1]}" if client else ""
            right = RIGHTS.get((scope["path"], scope["method"]), "")
            is_here = is_addressed_locally(scope)
            status, rule = await self._broker.admit(user, password, peer, right=right, is_here=is_here)
            scope[USER] = user or ""
        except ValueError:
            status = 401
        except TimeoutError:
            return PlainTextResponse("the broker does not answer\n", 503)
        if status == 200:
            return None
        said = f"{_WORDS[status]}: {rule}" if rule else _WORDS[status]
        return PlainTextResponse(f"{said}\n", status, headers=_CHALLENGE if status == 401 else None)


_WORDS: Final = {401: "who are you?", 403: "not for you", 429: "too many failures: later", 503: "busy: later"}


def _credentials(scope: Scope) -> tuple[str | None, bytes | None]:
    """User and password of the request; None for both when it brings none, ValueError when they make no sense."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        return None, None
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


class _Pages:
    """What is on the pages."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._figures: Figures | None = None
        self._taken = 0.0
        self._taking = asyncio.Lock()

    async def metrics(self, request: Request) -> Response:
        """Answer a Prometheus that scrapes, or say that the broker does not answer."""
        try:
            figures = await self._fresh()
        except TimeoutError:
            return PlainTextResponse("the broker does not answer\n", 503)
        body, content_type = render(figures, request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type})

    async def ready(self, _request: Request) -> Response:
        """For whoever sends clients here."""
        try:
            troubles = (await self._fresh()).troubles
        except TimeoutError:
            troubles = ["the broker does not answer"]
        return JSONResponse({"ready": not troubles, "troubles": troubles}, 503 if troubles else 200)

    async def _fresh(self) -> Figures:
        """Figures of the last second; one reader asks for all."""
        async with self._taking:
            if self._figures is None or monotonic() - self._taken > FRESH_S:
                self._figures = await self._broker.figures()
                self._taken = monotonic()
            return self._figures
