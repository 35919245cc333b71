"""A session that belongs to no broker, for tests of those who know receivers only."""

from __future__ import annotations

from tieline.core.broker import Broker
from tieline.core.client import Session
from tieline.sched.queue import Queue


def lone_session(client_id: str, max_messages: int = 10, max_bytes: int = 1_000) -> Session:
    """A session whose client is away."""
    broker = Broker()
    return Session(
        client_id, 1, Queue(max_messages, max_bytes, broker.delivery.pool), broker.delivery, broker.holdings.owner(None)
    )
