"""The connections of one HTTP server: bounded in number and time, and idle ones make room for those that ask.

Theory of operation
-------------------
Whoever opens connections and says nothing must not keep others out, least of all ``/health``.  So a connection has to
bring the head of its request within a time, an address has a share only, and when all places are taken the connection
that has been silent longest gives up its own.  Beyond the places for everybody are a few in reserve: there only what
takes no right is answered (:attr:`Places.is_crowded`), which costs next to nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Protocol  # Any: as said where it stands

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from tieline.net.http.pace import hang_up


class HandsOver(Protocol):
    """Takes connections that ask to become WebSockets."""

    def wants(self, target: bytes) -> bool:
        """Whether a request for this address may become one."""

    def hand_over(self, transport: asyncio.Transport, peer: str, begun: bytes) -> bool:
        """Take a connection, and what was read of it; False if there is no room for it."""


class Places:
    """How many connections a server has, whose they are, and which of them wait without asking."""

    def __init__(
        self, most: int, *, reserve: int, per_address: int, head_s: float, life_s: float | None = None
    ) -> None:
        """``head_s`` is for the head of each request; ``life_s`` for a whole connection, None for no bound."""
        self._most = most
        self._reserve = reserve
        self._per_address = per_address
        self.head_s = head_s
        self.life_s = life_s
        #: In the order of their opening.
        self._taken: dict[_Connection, str] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many connections are open."""
        return len(self._taken)

    @property
    def is_crowded(self) -> bool:
        """Whether only what takes no right is answered."""
        return len(self._taken) > self._most

    def protocol(self, upgrades: HandsOver | None = None) -> type[H11Protocol]:
        """What uvicorn makes for each connection; ``upgrades`` takes those that become something else."""
        given = upgrades

        class Placed(_Connection):
            places = self
            upgrades = given

        return Placed

    def take(self, connection: _Connection, address: str) -> None:
        """Give a connection a place: an idle one of its address, or of all, may have to go, or else itself."""
        self._taken[connection] = address
        self._by_address[address] += 1
        if self._by_address[address] > self._per_address:
            self._evict([each for each, its in self._taken.items() if its == address])
        if len(self._taken) > self._most:
            self._evict(list(self._taken))
        if len(self._taken) > self._most + self._reserve:
            self._end(connection)

    def leave(self, connection: _Connection) -> None:
        """A connection is over, or as good as that."""
        address = self._taken.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _evict(self, among: list[_Connection]) -> None:
        """The one that has been silent longest gives up its place; not the newest, who has had no time to ask."""
        idle = next((each for each in among[:-1] if each.is_idle), None)
        if idle is not None:
            self._end(idle)

    def _end(self, connection: _Connection) -> None:
        self.leave(connection)
        connection.transport.abort()


class _Connection(H11Protocol):
    """Breaks off when its request does not come to an end; uvicorn itself waits for ever."""

    places: Places
    upgrades: HandsOver | None = None
    _hurry: asyncio.TimerHandle | None = None
    _end: asyncio.TimerHandle | None = None
    #: Somebody else speaks with the other end.
    is_handed_over = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a place, and begin to wait for a request."""
        super().connection_made(transport)
        if self.places.life_s is not None:
            self._end = self.loop.call_later(self.places.life_s, transport.abort)
        self._watch()
        self.places.take(self, self.client[0] if self.client else "")

    def data_received(self, data: bytes) -> None:
        """Let uvicorn parse it, and see whether it is a request by now."""
        super().data_received(data)
        if not self.is_handed_over:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back, and that in a line."""
        scope: Any = self.scope  # uvicorn's own type of it has fixed keys
        hang_up(scope)
        self._calm()
        if self._end is not None:
            self._end.cancel()
        self.places.leave(self)
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        """A request that asks for a WebSocket, where there is one; elsewhere the wish is passed over."""
        wants = self.upgrades is not None and self._get_upgrade() == b"websocket"
        return wants and self.upgrades is not None and self.upgrades.wants(self.scope["raw_path"])

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over, with its request as it came and whatever came behind it."""
        assert self.upgrades is not None
        self._calm()
        if self._end is not None:
            self._end.cancel()
        self.places.leave(self)
        self.connections.discard(self)
        head = [event.method, b" ", event.target, b" HTTP/1.1\r\n"]
        for name, value in self.headers:
            head += [name, b": ", value, b"\r\n"]
        begun = b"".join(head) + b"\r\n" + self.conn.trailing_data[0]
        host, port = self.client or ("-", 0)
        peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.is_handed_over = True
        if not self.upgrades.hand_over(self.transport, peer, begun):
            self.transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        cycle: object = self.cycle  # None before the first request, though uvicorn's annotation denies it
        return not isinstance(cycle, RequestResponseCycle) or cycle.response_complete

    def _watch(self) -> None:
        if not self.is_idle:
            self._calm()
        elif self._hurry is None:
            self._hurry = self.loop.call_later(self.places.head_s, self.transport.abort)

    def _calm(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None
