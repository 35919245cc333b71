"""The HTTP application: who may see which page, and what is on it.

Theory of operation
-------------------
Everything but ``/health`` is behind the same access control as MQTT.  Where the broker knows users, a request without
credentials gets 401, whatever it asked for, and a page about the broker needs the right to subscribe to ``$SYS/#``,
which holds the same numbers.  Who may not see a page is told 403 and by which rule, as in MQTT, and nothing else.  To
change something, or to hear of every client (:mod:`tieline.web.programs`), takes a right of its own.  Each route names
the right that it takes (:mod:`tieline.net.http.routes`).

The files of the page, and what it has to know before anybody has logged in, are open: they are the same for everybody.
Where there are no users, and only this machine is served, a page about the broker is for requests that name this
machine: a name of somebody else's that leads here would let his page read it (DNS rebinding).

The broker is asked for figures at most once a second, however many readers there are, and requests are served at a
bounded pace: a flood of them costs the broker a bounded share of its interpreter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import ceil
from time import monotonic
from typing import Final, Protocol

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tieline.net.http.headers import (
    CHALLENGE,
    credentials,
    is_addressed_locally,
    named_host,
    origin_host,
    peer_of,
)
from tieline.net.http.pace import Pace
from tieline.net.http.routes import Routes
from tieline.web.figures import Figures
from tieline.web.metrics import render
from tieline.web.page_data import ASK_PATH, CONFIG_PATH, HISTORY_PATH, PageData, Remembers
from tieline.web.page_files import PAGE, PageFiles
from tieline.web.programs import (
    DEMAND_PATH,
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
from tieline.web.rights import ASK_DEMAND, ASK_QUESTIONS, GIVE_HEAT, PUBLIC, SEE, Right

#: Figures are not older than this.
FRESH_S: Final = 1.0
#: Requests per second; more wait for their turn.
PACE_PER_S: Final = 100.0


class Crowd(Protocol):
    """The connections of this server."""

    @property
    def is_crowded(self) -> bool:
        """Whether there is room only for what takes no right."""


class AnsweringBroker(Heater, Counter, Networked, Remembers, Protocol):
    """The broker as this thread sees it; every answer comes from the broker's own."""

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach the server."""

    async def admit(
        self, user: str | None, password: bytes | None, peer: str, *, right: Right, is_here: bool
    ) -> tuple[int, str]:
        """200 when somebody has a right, else why not, and the rule that decided.

        ``is_here`` says that the request names this machine as such.
        """

    async def patience(self, user: str | None, peer: str) -> tuple[int | None, float]:
        """How many logins may still fail, None for any number, and how long to wait if that is none."""

    async def figures(self) -> Figures:
        """What it shows now; raises TimeoutError when it does not answer."""


def application(
    broker: AnsweringBroker, places: Crowd, *, has_page: bool = False, origins: tuple[str, ...] = ()
) -> ASGIApp:
    """The whole application; ``places`` says whether there is room for more than the simplest question."""
    return headed(routes(broker, places, has_page=has_page, origins=origins))


def routes(
    broker: AnsweringBroker, places: Crowd, *, has_page: bool = False, origins: tuple[str, ...] = ()
) -> Routes[Right]:
    """Every address with its right; ``origins`` are names of this server that are not its own."""
    pages, heat, demand = _Pages(broker), HeatPage(broker), DemandPage(broker)
    found = Routes(_Guard(broker, places, origins).admit, _say, otherwise=SEE)
    found.add("GET", "/health", pages.health, right=PUBLIC)
    found.add("GET", "/metrics", pages.metrics, right=SEE)
    found.add("GET", "/ready", pages.ready, right=SEE)
    found.add("GET", NET_PATH, NetPage(broker).answer, right=SEE)
    found.add("GET", HEAT_PATH, heat.answer, right=SEE)
    found.add("PUT", HEAT_PATH, heat.answer, right=GIVE_HEAT)
    found.add("DELETE", HEAT_PATH, heat.answer, right=GIVE_HEAT)
    found.add("POST", DEMAND_PATH, demand.answer, right=ASK_DEMAND)
    files = PageFiles() if has_page else None
    data = PageData(broker, "" if files is None else files.build)
    found.add("GET", HISTORY_PATH, data.history, right=SEE)
    found.add("POST", ASK_PATH, data.ask, right=ASK_QUESTIONS)
    if files is not None:
        found.add("GET", "/", to_the_page, right=PUBLIC)
        found.add("GET", CONFIG_PATH, data.config, right=PUBLIC)
        for path in files.by_path:
            found.add("GET", path, files.answer, right=PUBLIC)
    return found


def headed(app: ASGIApp) -> ASGIApp:
    """The same application with the headers of every answer; only files of the page leave a connection open."""

    async def headed_app(scope: Scope, receive: Receive, send: Send) -> None:
        is_file = scope["type"] == "http" and scope["path"].startswith(PAGE)

        async def headed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
                if not is_file:
                    headers["Connection"] = "close"
                message["headers"] = headers.raw
            await send(message)

        await app(scope, receive, headed_send)

    return headed_app


async def to_the_page(_request: Request) -> Response:
    """Whoever opens the address alone wants the page."""
    return RedirectResponse(PAGE, 307)


def _say(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers=headers)


class _Guard:
    """Paces requests, and asks the broker about the right that a route takes."""

    def __init__(self, broker: AnsweringBroker, places: Crowd, origins: tuple[str, ...]) -> None:
        self._broker = broker
        self._places = places
        self._names = frozenset(map(origin_host, origins))
        self._pace = Pace(PACE_PER_S, burst=2)

    async def admit(self, scope: Scope, right: Right) -> Response | None:
        if right.action == "none":
            return None
        if self._places.is_crowded:
            return _refuse(scope, 503)
        if not await self._pace.turn(scope):
            return _refuse(scope, 503)  # nobody hears it
        is_here = is_addressed_locally(scope) or named_host(scope) in self._names
        if right.action == "subscribe" and self._broker.is_local and not is_here and not self._broker.has_users:
            return _refuse(scope, 403, _NOT_BY_THIS_NAME)
        try:
            return await self._ask(scope, right, is_here=is_here)
        except TimeoutError:
            return _refuse(scope, 503, "the broker does not answer")

    async def _ask(self, scope: Scope, right: Right, *, is_here: bool) -> Response | None:
        user: str | None = None
        peer, rule = peer_of(scope), ""
        try:
            user, password = credentials(scope) or (None, None)
            status, rule = await self._broker.admit(user, password, peer, right=right, is_here=is_here)
            scope[USER] = user or ""
        except ValueError:
            status = 401
        if status == 200:
            return None
        if status == 403:
            return _refuse(scope, 403, rule)
        left, retry_s = (None, 1.0) if status == 503 else await self._broker.patience(user, peer)
        return _refuse(scope, status, left=left if user is not None else None, retry_s=retry_s)


def _refuse(scope: Scope, status: int, rule: str = "", *, left: int | None = None, retry_s: float = 1.0) -> Response:
    """Say no, in the words of whoever asks: programs get a line, the page an object."""
    said = f"{_WORDS[status]}: {rule}" if rule and status == 403 else rule or _WORDS[status]
    headers = dict(CHALLENGE) if status == 401 else {}
    if status in {429, 503}:
        headers["Retry-After"] = str(ceil(retry_s))
    if scope["path"] not in {HISTORY_PATH, ASK_PATH}:
        return _say(status, said, headers or None)
    known = {"rule": rule} if status == 403 else {"tries_left": left} if status == 401 else {"retry_s": retry_s}
    return JSONResponse({"error": said, **known}, status, headers=headers)


_NOT_BY_THIS_NAME: Final = "there are no users here, and so only programs of this machine are answered that call it so"
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
