"""All connections of a node: what each may still read and write, who is told what by all of them, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tieline.core.timers import Timers
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.links.links import Connection, Link, Phase
from tieline.overlay.links.patience import Patience


class Connections:
    """The connections that a shell has opened, by its handles for them."""

    def __init__(self, patience: Patience, timers: Timers, counts: Counts, lost: Callable[[Link, float], None]) -> None:
        self._patience = patience
        self._timers = timers
        self._counts = counts
        #: Called when a link that was up has lost its connection.
        self._lost = lost
        self._connections: dict[int, Connection] = {}
        #: By connection, the name that was proven before it was opened.
        self._proven: dict[int, str] = {}
        #: Connections with something to write, and connections to be ended.
        self.dirty: set[int] = set()
        self.doomed: set[int] = set()
        #: Sentences about peers that could not be had, since the owner last looked: the connection, whether the peer
        #: said so, and the text.
        self.refusals: list[tuple[int, bool, str]] = []

    def open(self, handle: int, now: float, cost: int, name: str) -> Connection:
        """A connection is there, to somebody who has proven to have that name, or nothing if it is empty."""
        connection = self._connections[handle] = Connection(handle, now, cost, self._patience.longest)
        if name:
            self._proven[handle] = name
        self._timers.at(now + self._patience.ping_s, partial(self._look_after, connection))
        return connection

    def find(self, handle: int) -> Connection | None:
        """A connection that is still read; None if it is not, or not any more."""
        connection = self._connections.get(handle)
        if connection is None or connection.phase in {Phase.REFUSED, Phase.OVER}:
            return None
        return connection

    def link(self, handle: int) -> Link | None:
        """The link that a connection belongs to, once the peer has said who it is."""
        connection = self._connections.get(handle)
        return None if connection is None else connection.link

    def is_up(self, handle: int) -> bool:
        """Whether both ends have said who they are and what they have."""
        connection = self._connections.get(handle)
        return connection is not None and connection.phase is Phase.UP

    def proven(self, connection: Connection) -> str | None:
        """The name that the other end has proven to have."""
        return self._proven.get(connection.handle)

    def fill(self, handle: int, room: int, now: float) -> bytes:
        """What is to be written next on a connection, about as much as there is room for."""
        connection = self._connections.get(handle)
        if connection is None or connection.phase is Phase.OVER:
            self.dirty.discard(handle)
            return b""
        data = connection.fill(room, now)
        if connection.link is not None:
            connection.link.meter.bytes_out += len(data)
        if not connection.has_more:
            self.dirty.discard(handle)
            if connection.phase is Phase.REFUSED:
                self.end(connection, now, "refused")
        return data

    def pinged(self, connection: Connection, body: bytes, now: float) -> None:
        """A ping has come: it is sent back, or it is ours and says how long that took."""
        took = connection.pings.came(body, now)
        if took is not None and connection.link is not None:
            connection.link.meter.took(took)
        if connection.pings.is_owed:
            self.dirty.add(connection.handle)

    def why(self, handle: int) -> str:
        """The name of the reason why a connection was ended here; empty if it was not."""
        connection = self._connections.get(handle)
        return "" if connection is None else connection.why

    # -- telling

    def tell(self, connection: Connection, data: bytes) -> None:
        """Have a frame without a number written before everything that has one."""
        connection.controls.append(data)
        self.dirty.add(connection.handle)

    def tell_peers(self, data: bytes, but: Connection | None = None) -> None:
        """Have a frame written to all who have said who they are, but not to the one that it came from."""
        for connection in self._connections.values():
            if connection is not but and connection.phase in {Phase.RESUMING, Phase.UP}:
                self.tell(connection, data)

    def tell_all(self, data: bytes) -> None:
        """Have a frame written to everybody, also behind a HELLO that was not answered yet."""
        for connection in self._connections.values():
            if connection.phase not in {Phase.REFUSED, Phase.OVER}:
                self.tell(connection, data)

    # -- ending

    def closed(self, handle: int, now: float) -> None:
        """A connection is no more."""
        connection = self._connections.pop(handle, None)
        self._proven.pop(handle, None)
        self.doomed.discard(handle)
        self.dirty.discard(handle)
        if connection is not None and connection.phase is not Phase.OVER:
            self._lose(connection, now)

    def refuse(self, connection: Connection, text: str, now: float) -> None:
        """Say why a peer cannot be had, and then nothing more."""
        self._counts.refused_peers += 1
        self.refusals.append((connection.handle, False, text))
        connection.why = "refused"
        self._lose(connection, now, Phase.REFUSED)
        connection.controls.clear()
        connection.pings.forget()
        self.tell(connection, frame(Kind.REFUSED, text.encode()))

    def end(self, connection: Connection, now: float, why: str) -> None:
        """Read and write nothing more, and have the shell close it, for a reason that has this name."""
        connection.why = connection.why or why
        self.doomed.add(connection.handle)
        self._lose(connection, now)

    def _lose(self, connection: Connection, now: float, phase: Phase = Phase.OVER) -> None:
        was_up = connection.phase is Phase.UP
        connection.go(phase)
        link = connection.link
        if link is None or link.connection is not connection:
            return
        link.connection = None
        if was_up:
            link.meter.changed_at = now
            self._lost(link, now)

    def _look_after(self, connection: Connection, now: float) -> None:
        """Ping a peer that has not heard of us for a while, and give up one that is silent for too long."""
        if connection.phase is Phase.OVER or connection.handle not in self._connections:
            return
        ping_s, down_s = self._pace(connection)
        # whoever was stopped himself has heard nobody meanwhile, and looks again before he says so
        was_awake, connection.looked_at = now - connection.looked_at < 2 * ping_s, now
        if now - connection.heard_at >= down_s and (was_awake or now - connection.heard_at >= self._patience.down_s):
            self._counts.silences += 1
            self.end(connection, now, "silent")
            return
        if len(connection.controls) + len(connection.long) > self._patience.controls:
            self._counts.stuck += 1
            self.end(connection, now, "stuck")
            return
        if connection.phase is Phase.UP and not connection.pings.is_under_way:
            self.tell(connection, connection.pings.ask(now))
        elif now - connection.sent_at >= ping_s * 0.99:
            self.tell(connection, frame(Kind.PING))
        self._timers.at(now + ping_s, partial(self._look_after, connection))

    def _pace(self, connection: Connection) -> tuple[float, float]:
        """How often a peer is pinged, and how long it may be silent: less where it is near."""
        patience, link = self._patience, connection.link
        if link is not None and 0.0 < link.meter.least_round_trip_s < patience.near_round_trip_s:
            return min(patience.near_ping_s, patience.ping_s), min(patience.near_down_s, patience.down_s)
        return patience.ping_s, patience.down_s
