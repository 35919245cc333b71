"""The HTTP application: who may see which page, and what is on it.

Theory of operation
-------------------
Everything but ``/health`` is behind the same access control as MQTT.  Where the broker knows users, a request without
credentials gets 401, whatever it asked for, and a page about the broker needs the right to subscribe to ``$SYS/#``,
which holds the same numbers.  Who may not see a page is told 403 and by which rule, as in MQTT, and nothing else.  To
change something, or to hear of every client (:mod:`tieline.web.programs`), takes a right of its own.  Each route names
the right that it takes (:mod:`tieline.net.http.routes`).

The broker is asked for figures at most once a second, however many readers there are, and requests are served at a
bounded pace: a flood of them costs the broker a bounded share of its interpreter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final, Literal, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Scope

from tieline.net.http.headers import CHALLENGE, credentials, is_addressed_locally, peer_of
from tieline.net.http.routes import Routes
from tieline.web.figures import Figures
from tieline.web.metrics import render
from tieline.web.programs import (
    DEMAND,
    DEMAND_PATH,
    HEAT,
    HEAT_PATH,
    NET_PATH,
    USER,
    Counter,
    DemandPage,
    Heater,
    HeatPage,
    NetPage,
    Networked,
)


@dataclass(frozen=True, slots=True)
class Right:
    """What a route takes of whoever asks: nothing, or to be allowed something that the rules of MQTT name."""

    #: A filter to subscribe to, or a topic to publish to; no client publishes there, it is a name for the right.
    subject: str = ""
    action: Literal["none", "subscribe", "publish"] = "none"


#: Whether the broker is alive is nobody's secret.
PUBLIC: Final = Right()
#: Pages about the broker show what ``$SYS`` does.
SEE: Final = Right("$SYS/#", "subscribe")
#: To change what counts as hot, and to hear of every client and topic.
GIVE_HEAT: Final = Right(HEAT, "publish")
ASK_DEMAND: Final = Right(DEMAND, "publish")

#: Figures are not older than this.
FRESH_S: Final = 1.0
#: Requests per second; more wait for their turn.
PACE_PER_S: Final = 100.0


class Crowd(Protocol):
    """The connections of this server."""

    @property
    def is_crowded(self) -> bool:
        """Whether there is room only for what takes no right."""


class AnsweringBroker(Heater, Counter, Networked, Protocol):
    """The broker as this thread sees it; every answer comes from the broker's own."""

    async def admit(
        self, user: str | None, password: bytes | None, peer: str, *, right: Right, is_here: bool
    ) -> tuple[int, str]:
        """200 when somebody has a right, else why not, and the rule that decided.

        ``is_here`` says that the request names this machine as such.
        """

    async def figures(self) -> Figures:
        """What it shows now; raises TimeoutError when it does not answer."""


def application(broker: AnsweringBroker, places: Crowd) -> Routes[Right]:
    """The whole application; ``places`` says whether there is room for more than the simplest question."""
    pages, heat, demand = _Pages(broker), HeatPage(broker), DemandPage(broker)
    routes = Routes(_Guard(broker, places).admit, _say, otherwise=SEE)
    routes.add("GET", "/health", pages.health, right=PUBLIC)
    routes.add("GET", "/metrics", pages.metrics, right=SEE)
    routes.add("GET", "/ready", pages.ready, right=SEE)
    routes.add("GET", NET_PATH, NetPage(broker).answer, right=SEE)
    routes.add("GET", HEAT_PATH, heat.answer, right=SEE)
    routes.add("PUT", HEAT_PATH, heat.answer, right=GIVE_HEAT)
    routes.add("DELETE", HEAT_PATH, heat.answer, right=GIVE_HEAT)
    routes.add("POST", DEMAND_PATH, demand.answer, right=ASK_DEMAND)
    return routes


def _say(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers=headers)


class _Guard:
    """Paces requests, and asks the broker about the right that a route takes."""

    def __init__(self, broker: AnsweringBroker, places: Crowd) -> None:
        self._broker = broker
        self._places = places
        self._next = 0.0

    async def admit(self, scope: Scope, right: Right) -> Response | None:
        if right.action == "none":
            return None
        if self._places.is_crowded:
            return _say(503, _WORDS[503])
        now = monotonic()
        self._next = max(now, self._next) + 1 / PACE_PER_S
        if self._next - now > 2 / PACE_PER_S:
            await asyncio.sleep(self._next - now)
        rule = ""
        try:
            user, password = credentials(scope) or (None, None)
            is_here = is_addressed_locally(scope)
            status, rule = await self._broker.admit(user, password, peer_of(scope), right=right, is_here=is_here)
            scope[USER] = user or ""
        except ValueError:
            status = 401
        except TimeoutError:
            return _say(503, "the broker does not answer")
        if status == 200:
            return None
        said = f"{_WORDS[status]}: {rule}" if rule else _WORDS[status]
        return _say(status, said, CHALLENGE if status == 401 else None)


_WORDS: Final = {401: "who are you?", 403: "not for you", 429: "too many failures: later", 503: "busy: later"}


class _Pages:
    """What is on the pages."""

    def __init__(self, broker: AnsweringBroker) -> None:
        self._broker = broker
        self._figures: Figures | None = None
        self._taken = 0.0
        self._taking = asyncio.Lock()

    async def health(self, _request: Request) -> Response:
        """For whoever restarts what is dead."""
        return PlainTextResponse("ok\n")

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
