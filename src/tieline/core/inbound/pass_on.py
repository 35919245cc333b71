"""Passing on: one QoS 0 message that can go out at once as the bytes in which it came.

A paced client sends one small message at a time, to receivers for whom nothing waits.  Queueing it, marking its
receivers and asking each what to write comes to the same bytes on the same connections; this is the shortcut.  The
shell takes it only when nothing else was ready in its turn, so nothing is lost to batching, and it is refused whenever
anything at all could be ahead of the message.
"""

from __future__ import annotations

from tieline.core.account import Account
from tieline.core.client import CONNECTED, Connection
from tieline.core.durable.arrivals import Arrivals
from tieline.core.receiver import Outlet
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.routes import Routes
from tieline.wire.frames import publish_head

_PUBLISH_QOS_0 = 0x30


class Passing:
    """Finds out whether a message can be passed on."""

    __slots__ = ("_account", "_arrivals", "_has_chronicle", "_priorities", "_routes")

    def __init__(
        self, routes: Routes, priorities: Priorities, arrivals: Arrivals, account: Account, *, has_chronicle: bool
    ) -> None:
        self._routes = routes
        self._priorities = priorities
        self._arrivals = arrivals
        self._account = account
        #: Deliveries are written down one by one.
        self._has_chronicle = has_chronicle

    def pass_on(self, conn: Connection, data: bytes, now: float) -> list[Outlet] | None:
        """To whom these bytes are to be written now; None when they need the general way, and nothing was done."""
        size = len(data)
        if (
            data[0] != _PUBLISH_QOS_0
            or conn.partial
            or conn.hold is not None
            or conn.has_header
            or conn.meters
            or conn.state is not CONNECTED
            or self._arrivals.is_watched
            or self._has_chronicle
        ):
            return None
        priorities = self._priorities
        head = publish_head(data, 0, size)
        if head is None or not priorities.claims.is_open:
            return None
        start, top, end = head
        # exactly one packet
        if end != size or size > conn.allowance.packet_bytes or size > priorities.classes.least_bound:
            return None
        topic = data[start:top]
        version = conn.version
        if (conn.is_guarded and topic not in conn.publishable) or (version == 5 and (top == size or data[top])):
            return None
        routes = self._routes
        route = routes.known.get(topic) or routes.learn(data, start, top, conn.allowance.topic_levels)
        if route is None or not route.is_simple:
            return None
        outlets = []
        for grant in route.grants:
            outlet = grant.receiver.ready_outlet(version, size, grant)
            if outlet is None:
                return None
            outlets.append(outlet)
        level = priorities.judge(conn, "", route.level if route.level >= 0 else conn.level, 1, now)
        priorities.heat(route, 1, now)
        conn.last_in = now
        account = self._account
        account.arrived(1, level)
        account.bytes_in += size
        account.publishes_out += len(outlets)
        account.bytes_out += len(outlets) * size
        return outlets
