"""A connection that does not say what it wants is not kept."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from tieline.net.http.connections import Places


async def _app(_scope: Any, _receive: Any, send: Any) -> None:
    await asyncio.sleep(0.6)  # longer than a request may take to be made
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize(
    "said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET"]
)
def test_half_a_request_is_not_waited_for(said: bytes) -> None:
    places = Places(8, reserve=0, per_address=8, head_s=0.3)

    async def story() -> bytes:
        bound = socket.create_server(("127.0.0.1", 0))
        http = places.protocol()
        config = uvicorn.Config(_app, http=http, ws="none", lifespan="off", log_config=None, timeout_keep_alive=1)
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
    assert not len(places), "places are given back"
    assert got.startswith(b"HTTP/1.1 204") if said.endswith(b"GET") else got == b""


class _Silent:
    """A connection without a socket."""

    def __init__(self, *, is_idle: bool = True) -> None:
        self.is_idle = is_idle
        self.transport = self
        self.is_over = False

    def abort(self) -> None:
        self.is_over = True


def _taken(places: Places, address: str, count: int, *, is_idle: bool = True) -> list[_Silent]:
    some = [_Silent(is_idle=is_idle) for _ in range(count)]
    for each in some:
        places.take(each, address)  # type: ignore[arg-type]  # as far as places look at it
    return some


def test_who_says_nothing_makes_room_for_who_asks() -> None:
    places = Places(4, reserve=2, per_address=3, head_s=1.0)
    first = _taken(places, "a", 5)
    assert [each.is_over for each in first] == [True, True, False, False, False], "a share for each address"
    others = _taken(places, "b", 2)
    assert first[2].is_over and not any(each.is_over for each in others)
    assert len(places) == 4 and not places.is_crowded


def test_those_who_are_being_answered_stay_and_the_last_places_are_reserved() -> None:
    places = Places(4, reserve=2, per_address=9, head_s=1.0)
    busy = _taken(places, "a", 6, is_idle=False)
    assert places.is_crowded and not any(each.is_over for each in busy)
    late = _taken(places, "b", 1)
    assert late[0].is_over and len(places) == 6
    for each in busy:
        places.leave(each)  # type: ignore[arg-type]  # as above
    assert not len(places) and not places.is_crowded
