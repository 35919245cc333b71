"""Answers over HTTP: JSON for what is small, for faults too, and a stream no faster than its reader takes it.

Reading the store and making Arrow of it happens in a thread of its own for each stream, because a SQLite connection
belongs to the thread that opened it, and the loop has other readers to serve.  One piece is made, then handed to the
socket, then the next one is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final  # Any: each handler takes its own exception

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tieline.net.log import log
from tieline.net.logserver.answer import Interrupted, trouble
from tieline.net.logserver.offsets import Backwards, Unknown
from tieline.net.logserver.question import Beyond, Unanswerable
from tieline.net.store.reading import Gap
from tieline.net.store.schema import Damaged, Unusable

ARROW: Final = "application/vnd.apache.arrow.stream"

#: The log changes, and may be for one user only.
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that is small enough to be built at once."""
    body = msgspec.json.encode(content) + b"\n"
    return Response(body, status, {**_HEADERS, **(headers or {})}, "application/json")


def error(status: int, name: str, text: str, headers: Mapping[str, str] | None = None, **other: object) -> Response:
    """An answer that says what is wrong: a name for programs, a sentence for people."""
    return json({"error": name, "text": text, **other}, status, headers)


class Stream(Response):
    """A long answer; ``finish`` is called once, whatever happens."""

    def __init__(self, pieces: Iterator[bytes], thread: ThreadPoolExecutor, finish: Callable[[], None]) -> None:
        super().__init__(None, 200, _HEADERS, ARROW)
        del self.headers["content-length"]
        self._pieces = pieces
        self._thread = thread
        self._finish = finish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send piece after piece while the reader is there."""
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
            else:
                await self._write(send, gone)
        except Interrupted as problem:
            # Returning before the last piece makes the server break the connection: the reader sees a truncated answer.
            log.warning("a reader's answer was broken off: %s", problem)
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
            self._finish()

    async def _write(self, send: Send, gone: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            piece = await loop.run_in_executor(self._thread, next, self._pieces, b"")
            if gone.done():
                return
            await send({"type": "http.response.body", "body": piece, "more_body": bool(piece)})
            if not piece:
                return


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def say(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """What the server says of a request that no answer is for."""
    return error(status, HTTPStatus(status).name.lower(), text, headers)


def _no_log(fault: Unusable) -> Response:
    """Where the files of the store are is the operator's business."""
    log.warning("%s", fault)
    return error(503, "no_log", "there is no log to read; the server's own log says why", {"Retry-After": "5"})


def _unanswerable(fault: Unanswerable) -> Response:
    found = {"error": "refused", "text": fault.text, "rule": fault.rule}
    return json(found if fault.column is None else {**found, "column": fault.column}, 400)


#: What each kind of refusal becomes.
FAULTS: Final[Mapping[type[Exception], Callable[[Any], Response]]] = {
    Unanswerable: _unanswerable,
    Gap: lambda fault: json(trouble(fault), 410),
    Beyond: lambda fault: error(
        416, "beyond", str(fault), {"Content-Range": f"records */{fault.latest}"}, latest=fault.latest
    ),
    Damaged: lambda fault: json(trouble(fault), 500),
    Unusable: _no_log,
    Unknown: lambda fault: error(404, "unknown_reader", str(fault)),
    Backwards: lambda fault: error(409, "backwards", str(fault), position=fault.position),
}
