"""Other settings for a broker that runs: what can change under connected clients, changed at once.

Which settings those are is decided by whoever calls this (:mod:`tieline.net.reload`); the others are as they were.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tieline.conf.schema import Settings, bound
from tieline.core.connection import CONNECTED
from tieline.core.routing.classes import Claims, Classes

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection


def renew(broker: Broker, settings: Settings) -> None:
    """Act by these settings from now on; access has been renewed already."""
    broker.settings = settings
    broker.max_queued_bytes = bound(settings.limits.queue_bytes_total)
    broker.allowances.renew(settings)
    broker.producers.limit(bound(settings.limits.producers))
    _renew_levels(broker, settings)
    for conn in broker.connections:
        if conn.state is CONNECTED:
            _renew_terms(broker, conn)
    for session in broker.sessions.values():
        session.queue.limit(max_messages=bound(settings.limits.queue_messages))
    broker.judge_anew()


def _renew_levels(broker: Broker, settings: Settings) -> None:
    claims = Claims(settings)
    claims.lowered, claims.throttled = broker.claims.lowered, broker.claims.throttled
    broker.claims = claims
    broker.classes = Classes(settings)
    broker.routes.classify(broker.classes)
    broker.has_levels = broker.has_levels or len(broker.classes) > 0 or not claims.is_open


def _renew_terms(broker: Broker, conn: Connection) -> None:
    assert conn.login is not None
    assert conn.session is not None
    user = conn.login.user
    # the largest packet was announced when it connected, and a promise is kept
    packet_bytes = conn.allowance.packet_bytes
    conn.allowance = replace(broker.allowances.of(conn.listener, user), packet_bytes=packet_bytes)
    conn.meters = broker.allowances.meters(conn.listener, user)
    conn.session.queue.limit(max_bytes=conn.allowance.queue_bytes)
