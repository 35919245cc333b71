"""``/v1/heat``, ``/v1/demand`` and ``/v1/net``: heat tables in, demand and the network of brokers out, for programs.

The body of a POST to ``/v1/demand`` is the question of the management channel, and so is the answer.  A heat table is
taken in here, in the thread of the pages, with pauses in which the broker's own can run; the broker is given
the finished table.  One at a time: a table takes memory before anybody knows whether it is one.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol  # Any: values of JSON

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tieline.core.figures.demand import DemandError
from tieline.core.routing.heat_table import PERIOD_S, HeatError, HeatTable
from tieline.net.heat_upload import HeatUpload, period_of, pieces
from tieline.net.http.headers import read_body

#: Where whoever lets a request in leaves the name of who asks, for the log.
USER: Final = "tieline.user"

HEAT_PATH: Final = "/v1/heat"
#: The longest body: a hundred thousand topics of 160 letters.
MOST_TABLE: Final = 16_777_216
#: What the broker's thread gets between two turns of this one; both want the same interpreter.
_PAUSE_S: Final = 0.0005


class Heater(Protocol):
    """What this page asks of the broker."""

    @property
    def topic_levels(self) -> int:
        """How many levels a filter may have."""

    async def heat(self) -> dict[str, Any]:
        """Whose heat counts, and for how long."""

    async def give_heat(self, table: HeatTable | None, period_s: float, by: str) -> dict[str, Any]:
        """Let a table count, or the broker's own heat again; raises HeatError."""


class HeatPage:
    """What may be done with the table."""

    def __init__(self, broker: Heater) -> None:
        self._broker = broker
        self._taking = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """GET whose heat counts, PUT a table, DELETE the one there is."""
        try:
            if request.method == "PUT":
                return await self._put(request)
            if request.method == "DELETE":
                return JSONResponse(await self._broker.give_heat(None, 0.0, request.scope[USER]))
            return JSONResponse(await self._broker.heat())
        except TimeoutError:
            return PlainTextResponse("the broker does not answer\n", 503)

    async def _put(self, request: Request) -> Response:
        """Another table, whole or not at all."""
        if self._taking.locked():
            return PlainTextResponse("another table is being taken in: later\n", 503)
        try:
            async with self._taking:
                period_s = period_of(request.query_params.get("period", PERIOD_S))
                body = await read_body(request, MOST_TABLE)
                if body is None:
                    return PlainTextResponse(f"a table has at most {MOST_TABLE:,} bytes\n", 413)
                upload = HeatUpload(pause_s=_PAUSE_S)
                for piece in pieces(body):
                    await upload.add(piece, self._broker.topic_levels)
                return JSONResponse(await self._broker.give_heat(upload.take(), period_s, request.scope[USER]))
        except HeatError as error:
            return PlainTextResponse(f"{error}\n", 400)
        except ClientDisconnect:
            return PlainTextResponse("the table did not arrive whole\n", 400)


DEMAND_PATH: Final = "/v1/demand"
#: The longest question.
MOST_QUESTION: Final = 4_096


class Counter(Protocol):
    """What this page asks of the broker."""

    async def demand(self, question: dict[str, Any], by: str) -> dict[str, Any]:
        """Begin a count or take a portion of one; raises DemandError."""


class DemandPage:
    """Answers the questions of a planner."""

    def __init__(self, broker: Counter) -> None:
        self._broker = broker

    async def answer(self, request: Request) -> Response:
        """One question, one answer."""
        try:
            body = await read_body(request, MOST_QUESTION)
            if body is None:
                return PlainTextResponse(f"a question has at most {MOST_QUESTION:,} bytes\n", 413)
            question = msgspec.json.decode(body, type=dict[str, Any])
            return JSONResponse(await self._broker.demand(question, request.scope[USER]))
        except msgspec.DecodeError:
            return PlainTextResponse('a question is a JSON object such as {"do": "demand", "act": "begin"}\n', 400)
        except DemandError as error:
            return PlainTextResponse(f"{error}\n", 400)
        except ClientDisconnect:
            return PlainTextResponse("the question did not arrive whole\n", 400)
        except TimeoutError:
            return PlainTextResponse("the broker does not answer\n", 503)


NET_PATH: Final = "/v1/net"


class Networked(Protocol):
    """What this page asks of the broker."""

    async def network(self, *, everywhere: bool) -> dict[str, Any] | None:
        """The network of brokers as this one knows it, or as all of them do; None where it is alone."""


class NetPage:
    """Shows what ``tieline net`` does."""

    def __init__(self, broker: Networked) -> None:
        self._broker = broker
        self._asking = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """The network, one question at a time: other brokers answer no more often than they like."""
        everywhere = request.query_params.get("all", "") in {"1", "true"}
        if everywhere and self._asking.locked():
            return PlainTextResponse("other brokers are being asked: later\n", 503)
        try:
            if not everywhere:
                found = await self._broker.network(everywhere=False)
            else:
                async with self._asking:
                    found = await self._broker.network(everywhere=True)
        except TimeoutError:
            return PlainTextResponse("the broker does not answer\n", 503)
        if found is None:
            return PlainTextResponse("this broker is not joined with others\n", 404)
        return JSONResponse(found)
