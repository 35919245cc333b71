"""The HTTP endpoints of the log server, behind one door."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from tieline.conf.schema import Settings
from tieline.net.http.headers import read_body
from tieline.net.http.routes import Routes
from tieline.net.logserver import question
from tieline.net.logserver.answer import Answer
from tieline.net.logserver.fast import Fast
from tieline.net.logserver.offsets import Offsets, Readers, offsets_of, readable
from tieline.net.logserver.question import Beyond, Question, Unanswerable
from tieline.net.logserver.response import FAULTS, Stream, error, json, say
from tieline.net.logserver.visitors import Guard, Right, Visitor, Visitors, piece_by_piece, until_stopped

#: A request to move a reader is a few words.
_MOST_BODY: Final = 4_096
#: How long a reader waits while as many as allowed are reading, before it is told to come back.
_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What readers may take together, and one request alone."""

    #: Ranges read at the same time; each has a thread, and a batch or two in memory.
    reads: int = 8
    #: Offsets of one request.
    rows: int = 10_000_000


class Move(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request to move a reader."""

    position: Annotated[int, msgspec.Meta(ge=0)]
    force: bool = False


class LogServer:
    """Answers questions about one data directory."""

    def __init__(self, data: str | Path, settings: Settings, bounds: Bounds, *, is_configured: bool) -> None:
        """``is_configured`` says that the settings are the broker's, so that its readers are known."""
        self._data = data
        self._bounds = bounds
        self._is_configured = is_configured
        self._free = asyncio.Semaphore(bounds.reads)
        self._fast = Fast()
        self._fast.begin()
        self.renew(settings)

    def renew(self, settings: Settings) -> None:
        """Other event types and readers from now on."""
        self._settings = settings
        self._readers = Readers(self._data, settings.log.readers if self._is_configured else None)

    def app(self, visitors: Visitors) -> ASGIApp:
        """The application, with its door."""
        routes: Routes[Right] = Routes(Guard(visitors).admit, say, otherwise=piece_by_piece, faults=FAULTS)
        routes.add("GET", "/v1/offsets", self._offsets, right=piece_by_piece)
        routes.add("GET", "/v1/read", self._read, right=piece_by_piece)
        routes.add("GET", "/v1/readers", self._list, right=piece_by_piece)
        routes.add("PUT", "/v1/readers/{name}", self._move, right=Visitor.why_not_move)
        return until_stopped(routes)

    async def _offsets(self, request: Request) -> Response:
        _check_names(request.query_params, "stream")
        stream = question.stream(_single(request.query_params, "stream") or "log")
        visitor: Visitor = request.scope["visitor"]
        found = await self._look(stream)
        hidden = {} if visitor.sees_size else {"bytes": None, "oldest": None}
        return json({"broker": self._settings.name, **found._asdict(), **hidden})

    async def _read(self, request: Request) -> Response:
        visitor: Visitor = request.scope["visitor"]
        answer = Answer(
            self._data,
            read(request.query_params),
            self._settings,
            visitor,
            most=self._bounds.rows,
            is_fast=self._fast.is_ready,
        )
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._free.acquire()
        except TimeoutError:
            text = f"{self._bounds.reads} ranges are being read already, and none ended within {_PATIENCE_S:g} s"
            return error(503, "busy", text, {"Retry-After": "1"})
        thread = ThreadPoolExecutor(1, "tieline-log-read")

        def finish() -> None:
            thread.submit(answer.close)
            thread.shutdown(wait=False)
            self._free.release()

        try:
            pieces = await asyncio.get_running_loop().run_in_executor(thread, answer.open)
        except BaseException:
            finish()
            raise
        return Stream(pieces, thread, finish)

    async def _list(self, request: Request) -> Response:
        _check_names(request.query_params)
        visitor: Visitor = request.scope["visitor"]
        latest = (await self._look("log")).latest
        found = await run_in_threadpool(self._readers.positions)
        return json(
            [_reader(name, place, latest) for name, place in found.items() if visitor.sees_reader(name)],
        )

    async def _move(self, request: Request) -> Response:
        _check_names(request.query_params)
        name: str = request.path_params["name"]
        body = await read_body(request, _MOST_BODY)
        if body is None:
            return error(413, "too_large", f"the body takes at most {_MOST_BODY} bytes")
        try:
            move = msgspec.json.decode(body, type=Move)
        except msgspec.DecodeError as problem:
            raise Unanswerable("body", f'the body is {{"position": OFFSET, "force": false}}: {problem}') from None
        latest = (await self._look("log")).latest
        if move.position > latest:
            raise Beyond(move.position, latest)
        try:
            await run_in_threadpool(self._readers.move, name, move.position, force=move.force)
        except ValueError as problem:
            raise Unanswerable("name", str(problem)) from None
        return json(_reader(name, move.position, latest))

    async def _look(self, stream: question.Stream) -> Offsets:
        return await run_in_threadpool(readable, lambda: offsets_of(self._data, stream))


def read(parameters: QueryParams) -> Question:
    """The question that the parameters of a request ask."""
    _check_names(parameters, "stream", "from", "to", "topics", "where", "columns")
    first, last, where = (_single(parameters, name) for name in ("from", "to", "where"))
    if first is None:
        raise Unanswerable("from", "from is missing: it is the first offset wanted; /v1/offsets knows the earliest")
    columns = [name for text in parameters.getlist("columns") for name in text.split(",")]
    return Question(
        stream=question.stream(_single(parameters, "stream") or "log"),
        first=question.offset("from", first),
        last=None if last is None else question.offset("to", last),
        topics=question.topics(parameters.getlist("topics")),
        where=None if where is None else question.where(where),
        columns=tuple(columns) if columns else None,
    )


def _check_names(parameters: QueryParams, *known: str) -> None:
    for name in parameters:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise Unanswerable(name, f'this request has no parameter "{name}": {takes}')


def _single(parameters: QueryParams, name: str) -> str | None:
    values = parameters.getlist(name)
    if len(values) > 1:
        raise Unanswerable(name, f"{name} is given {len(values)} times: it takes one value")
    return values[0] if values else None


def _reader(name: str, place: int | None, latest: int) -> dict[str, object]:
    return {"name": name, "position": place, "behind": latest - (place or 0)}
