"""Retained messages for a new subscription, queued a portion at a time.

A subscription to everything may match a million retained messages.  The first portion is queued at once; the rest is a
walk that goes on whenever the queue has run empty, so neither the queue nor the loop is filled by one SUBSCRIBE.  A
session has at most one walk per subscription: subscribing again starts it anew, unsubscribing ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.deliver import offer

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.message import Message
    from tieline.core.session import Grant, Session

#: Retained messages queued in one go.
PORTION = 1_000


class Replay:
    """One walk over retained messages."""

    __slots__ = ("grant", "waiting", "walk")

    def __init__(self, walk: Iterator[Message], grant: Grant) -> None:
        self.walk = walk
        self.grant = grant
        #: Taken from the walk, but there was no room for it.
        self.waiting: Message | None = None


def refill(broker: Broker, session: Session, now: float) -> None:
    """Queue the next portion of the session's replays, as far as there is room."""
    queue = session.queue
    room = PORTION
    while session.replays:
        filter_, replay = next(iter(session.replays.items()))
        while room:
            message = replay.waiting or next(replay.walk, None)
            replay.waiting = None
            if message is None:
                del session.replays[filter_]
                break
            if message.expires is not None and message.expires <= now:
                continue
            if replay.grant.no_local and message.publisher == session.client_id:
                continue  # [MQTT-3.8.3-3] its own, even if it was retained
            if queue.has_room(message.size):
                offer(broker, message, replay.grant, now)
                room -= 1
            elif queue.messages:
                replay.waiting = message
                return
            else:
                session.dropped += 1
                broker.account.drop(now, Drop.QUEUE_FULL, session.client_id, message.topic)
        else:
            return
