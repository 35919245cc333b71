"""Retained messages for a new subscription, queued a portion at a time.

A subscription to everything may match a million retained messages.  The first portion is queued at once; the rest is a
walk that goes on whenever the queue has run empty, so neither the queue nor the loop is filled by one SUBSCRIBE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.deliver import offer

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.session import Session

#: Retained messages queued in one go.
PORTION = 1_000


def refill(broker: Broker, session: Session, now: float) -> None:
    """Queue the next portion of the session's replays."""
    room = PORTION
    while session.replays and room:
        walk, grant = session.replays[0]
        for message in walk:
            room -= 1
            if message.expires is None or message.expires > now:
                offer(broker, message, grant, now)
            if not room or not session.queue.has_room(message.size):
                return
        session.replays.popleft()
