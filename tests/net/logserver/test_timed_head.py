"""A connection that does not say what it wants is not kept."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from tieline.net.logserver import serve
from tieline.net.logserver.serve import TimedHead


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await asyncio.sleep(0.6)  # longer than a request may take to be made
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize(
    "said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET"]
)
def test_half_a_request_is_not_waited_for(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "HEAD_S", 0.3)

    async def story() -> bytes:
        bound = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(_app, http=TimedHead, ws="none", lifespan="off", log_config=None, timeout_keep_alive=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        writer.write(said)
        async with asyncio.timeout(20):
            try:
                got = await reader.read()
            except ConnectionResetError:
                got = b""
        writer.close()
        server.should_exit = True
        await serving
        bound.close()
        return got

    got = asyncio.run(story())
    assert got.startswith(b"HTTP/1.1 204") if said.endswith(b"GET") else got == b""
