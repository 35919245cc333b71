"""What the page asks over HTTP: who this is, what the numbers were, and questions about clients and messages."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator
from math import isnan
from time import monotonic
from typing import Any, Final, Protocol  # Any: values of JSON

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tieline.core.figures.history import SECONDS, STEP_S, STEPS, Extract
from tieline.net.http.headers import read_body
from tieline.net.http.pace import Pace
from tieline.net.inquiry import InquiryError
from tieline.net.page.report import CONTRACT
from tieline.version import __version__
from tieline.web.upgrade import MQTT_PATH

CONFIG_PATH: Final = "/page/config.json"
HISTORY_PATH: Final = "/v1/history"
ASK_PATH: Final = "/v1/ask"
#: The longest question: a message of a hundred kilobytes in base64.
MOST_QUESTION: Final = 147_456
#: An answer is sent in pieces of this size, each when the connection has room for it.
_PIECE: Final = 16_384
#: What the past was is found once a second, however many ask.
_FRESH_S: Final = 1.0
#: Answers about the past in a second, and at once after a pause; and what the broker's thread gets between two columns.
HISTORIES_PER_S: Final = 10.0
HISTORIES_AT_ONCE: Final = 40.0
_PAUSE_S: Final = 0.0005
#: Questions under way at once; after one the broker is left alone for so many times as long as it took.
MOST_ASKING: Final = 4
_REST: Final = 9.0
_LONGEST_REST_S: Final = 5.0


class Remembers(Protocol):
    """What is asked of the broker here."""

    @property
    def name(self) -> str:
        """What the broker is called."""

    @property
    def has_users(self) -> bool:
        """Whether a reader has to say who it is."""

    async def history(self, span_s: int) -> Extract:
        """What is remembered of the last so many seconds."""

    async def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to one question that changes nothing; raises InquiryError."""


class PageData:
    """Answers what the page asks."""

    def __init__(self, broker: Remembers, build: str) -> None:
        self._broker = broker
        self._build = build
        #: By span: when it was found, and the answer in bytes.
        self._found: dict[int, tuple[float, bytes]] = {}
        self._finding = asyncio.Lock()
        self._pace = Pace(HISTORIES_PER_S, burst=HISTORIES_AT_ONCE)
        self._asking = asyncio.Lock()
        self._waiting = 0
        #: No question is asked before then.
        self._rests_until = 0.0

    async def config(self, _request: Request) -> Response:
        """What a page has to know before anybody has logged in."""
        return JSONResponse(
            {
                "contract": CONTRACT,
                "name": self._broker.name,
                "version": __version__,
                "build": self._build,
                "websocket": MQTT_PATH.decode(),
                "users": self._broker.has_users,
                "right": "$SYS/#",
            }
        )

    async def history(self, request: Request) -> Response:
        """The last so many seconds of every series."""
        text = request.query_params.get("span", "600")
        span_s = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if not 1 <= span_s <= STEP_S * STEPS:
            return error(400, f"a span is a number of seconds from 1 to {STEP_S * STEPS:,}")
        if not await self._pace.turn(request.scope):
            return error(503, "nobody waits for the answer")
        # few spans are worth being kept: what is asked for is rounded up to one of them
        span_s = next(each for each in (120, 600, SECONDS, STEP_S * STEPS) if each >= span_s)
        try:
            async with self._finding:
                data = await self._history(span_s)
        except TimeoutError:
            return error(503, "the broker does not answer")
        return StreamingResponse(
            _pieces(data), headers={"Content-Length": str(len(data))}, media_type="application/json"
        )

    async def _history(self, span_s: int) -> bytes:
        then, data = self._found.get(span_s, (float("-inf"), b""))
        if monotonic() - then > _FRESH_S:
            data = await written(await self._broker.history(span_s))
            self._found[span_s] = monotonic(), data
        return data

    async def ask(self, request: Request) -> Response:
        """One question, one answer; questions take turns."""
        try:
            body = await read_body(request, MOST_QUESTION)
        except ClientDisconnect:
            return error(400, "the question did not arrive whole")
        if body is None:
            return error(413, f"a question has at most {MOST_QUESTION:,} bytes")
        # not before: a question that comes byte by byte would keep others from asking
        if self._waiting >= MOST_ASKING:
            return error(503, "too many questions at once: later")
        self._waiting += 1
        try:
            question = msgspec.json.decode(body, type=dict[str, Any])
            async with self._asking:
                await asyncio.sleep(max(0.0, self._rests_until - monotonic()))
                began = monotonic()
                try:
                    data = msgspec.json.encode(await self._broker.answer(question))
                finally:
                    ended = monotonic()
                    self._rests_until = ended + min(_REST * (ended - began), _LONGEST_REST_S)
            return StreamingResponse(_pieces(data), media_type="application/json")
        except (msgspec.DecodeError, RecursionError):
            return error(400, 'a question is a JSON object such as {"do": "top"}')
        except InquiryError as problem:
            return error(400, str(problem))
        except TimeoutError:
            return error(503, "the broker does not answer")
        finally:
            self._waiting -= 1


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), _PIECE):
        yield data[begin : begin + _PIECE]


def error(status: int, text: str, **more: object) -> Response:
    """Why there is no answer, in a sentence."""
    return JSONResponse({"error": text, **more}, status)


async def written(found: Extract) -> bytes:
    """An extract as JSON, column by column, with pauses in which the broker's thread can run."""
    columns = []
    for name, column in found.series.items():
        columns.append(b"%s:%s" % (msgspec.json.encode(name), msgspec.json.encode(_rounded(column))))
        await asyncio.sleep(_PAUSE_S)
    times = msgspec.json.encode([round(time, 1) for time in found.times])
    return b'{"step_s":%d,"time":%s,"series":{%s}}' % (found.step_s, times, b",".join(columns))


def _rounded(column: array[float]) -> list[float | None]:
    """Four digits are more than anybody sees in a chart."""
    return [None if isnan(value) else 0.0 if not value else float(f"{value:.4g}") for value in column]
