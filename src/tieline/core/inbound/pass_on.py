"""Passing on: one QoS 0 message that can go out at once as the bytes in which it came.

A paced client sends one small message at a time, to receivers for whom nothing waits.  Queueing it, marking its
receivers and asking each what to write comes to the same bytes on the same connections; this is the shortcut.  The
shell takes it only when nothing else was ready in its turn, so nothing is lost to batching, and it is refused whenever
anything at all could be ahead of the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.connection import CONNECTED
from tieline.sched.levels import URGENT

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.session import Grant

_PUBLISH_QOS_0 = 0x30


def pass_on(broker: Broker, conn: Connection, data: bytes, now: float) -> tuple[Grant, ...] | None:
    """Who gets these bytes now; None when they need the general way, and nothing was done."""
    size = len(data)
    if size < 8 or data[0] != _PUBLISH_QOS_0 or conn.partial or conn.hold is not None or conn.has_header or conn.meters:
        return None
    if data[1] < 128:
        body = 2
        length = data[1]
    else:
        body = 3
        length = (data[1] & 127) | data[2] << 7
        if not 0 < data[2] < 128:
            return None
    # exactly one packet
    if body + length != size or size > conn.allowance.packet_bytes or conn.state is not CONNECTED:
        return None
    if broker.is_observed:
        return None
    if broker.has_levels and (broker.classes.has_bounds or not broker.claims.is_open):
        return None
    top = body + 2 + (data[body] << 8 | data[body + 1])
    topic = data[body + 2 : top]
    route = broker.routes.known.get(topic)
    version = conn.version
    if (
        route is None
        or not route.is_simple
        or (conn.is_guarded and topic not in conn.publishable)
        or top > size
        or (version == 5 and (top == size or data[top]))
    ):
        return None
    grants = route.grants
    for grant in grants:
        session = grant.session
        target = session.connection
        if (
            target is None
            or target.raw_version != version
            or grant.identifiers
            or target.is_blocked
            or target.is_dirty
            or target.max_packet < size
            or session.queue.messages
            or target.resend
            or session.replays
        ):
            return None
    level = route.level if route.level >= 0 else conn.level
    if broker.has_levels and level == URGENT:
        conn.urgent_at = now
    conn.last_in = now
    account = broker.account
    account.received_by_level[level] += 1
    account.bytes_in += size
    account.packets_in += 1
    account.publishes_in += 1
    account.publishes_out += len(grants)
    account.bytes_out += len(grants) * size
    return grants
