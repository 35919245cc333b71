"""The application without a socket: what it does when there is too much to do, and when something is wrong with it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.net.logserver.writing import Writer, fill
from tieline.conf.schema import Settings
from tieline.net.logserver import app as module
from tieline.net.logserver.app import Bounds, LogServer
from tieline.net.logserver.visitors import Visitors


class Call:
    """One request to an application, and its answer."""

    def __init__(self, app: Any, path: str) -> None:
        path, _, query = path.partition("?")
        self._app = app
        self.scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        }  # fmt: skip
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.gone = asyncio.Event()
        #: Cleared, the reader takes nothing.
        self.takes = asyncio.Event()
        self.takes.set()
        self.begun = asyncio.Event()
        self.is_whole = False
        self._has_asked = False

    async def run(self) -> None:
        await self._app(self.scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if not self._has_asked:
            self._has_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.begun.set()
            self.headers = dict(message["headers"])
        else:
            await self.takes.wait()
            self.body += message.get("body", b"")
            self.is_whole = not message.get("more_body", False)


def test_readers_wait_for_their_turn_and_are_told_to_come_back(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(writer, 100)
    monkeypatch.setattr(module, "_PATIENCE_S", 0.2)

    async def story() -> None:
        visitors = Visitors(Settings(), "tcp://127.0.0.1:1")
        app = LogServer(writer.data, Settings(), Bounds(reads=1), is_configured=False).app(visitors)
        first, second, third, fourth = (Call(app, "/v1/read?from=0") for _ in range(4))
        first.takes.clear()
        reading = asyncio.create_task(first.run())
        await first.begun.wait()
        await second.run()
        assert second.status == 503 and second.headers[b"retry-after"] == b"1"
        assert json.loads(second.body)["error"] == "busy"
        first.takes.set()
        await reading
        assert first.is_whole
        await third.run()
        assert third.status == 200 and third.is_whole
        # one that goes away in the middle makes room, too
        fourth.takes.clear()
        reading = asyncio.create_task(fourth.run())
        await fourth.begun.wait()
        fourth.gone.set()
        fourth.takes.set()
        await reading
        assert not fourth.is_whole
        last = Call(app, "/v1/read?from=0")
        await last.run()
        assert last.status == 200 and last.is_whole
        visitors.close()

    asyncio.run(story())


def test_a_request_that_fails_gives_its_place_back(writer: Writer) -> None:
    fill(writer, 10)

    async def story() -> None:
        visitors = Visitors(Settings(), "tcp://127.0.0.1:1")
        app = LogServer(writer.data, Settings(), Bounds(reads=1), is_configured=False).app(visitors)
        for path, status in (("from=11", 416), ("from=5&where=x", 400), ("from=0", 200), ("from=0", 200)):
            call = Call(app, f"/v1/read?{path}")
            await call.run()
            assert call.status == status
        visitors.close()

    asyncio.run(story())
