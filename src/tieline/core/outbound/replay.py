"""Retained messages for a new subscription, queued a portion at a time.

A subscription to everything may match a million retained messages.  The first portion is queued at once; the rest is a
walk that goes on whenever the queue has run empty, so neither the queue nor the loop is filled by one SUBSCRIBE.  A
session has at most one walk per subscription: subscribing again starts it anew, unsubscribing ends it.

For a session that is kept, the store knows which walks have not come to their end.  Where a walk is cannot be kept: the
tree of the next broker has another order.  So after a restart it begins anew, and messages may come a second time, as
they do for a client that subscribes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.outbound.deliver import offer
from tieline.core.routing.conditional import Asking
from tieline.core.routing.content_match import is_wanted
from tieline.core.routing.routes import grant_for

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.message import Message
    from tieline.core.session import Grant, Held, Session
    from tieline.match.events import EventType
    from tieline.match.where import Predicate

#: Retained messages queued in one go.
PORTION = 1_000
#: What a stretch of the search between two pauses counts towards a portion when nothing was found in it.
SEARCHED = 100


class Replay:
    """One walk over retained messages."""

    __slots__ = ("asking", "bound", "grant", "is_noted", "waiting", "walk")

    def __init__(self, walk: Iterator[Message | None], grant: Grant, asking: Asking | None = None) -> None:
        self.walk = walk
        self.grant = grant
        #: The subscription, if it has a condition, and the condition as each event type understands it.
        self.asking = asking
        self.bound: dict[EventType, Predicate] = {}
        #: Taken from the walk, but there was no room for it.
        self.waiting: Message | None = None
        #: The store knows that it has not come to its end.
        self.is_noted = False


def refill(broker: Broker, session: Session, now: float) -> None:
    """Queue the next portion of the session's replays, as far as there is room."""
    queue = session.queue
    room = PORTION
    is_in_vain = True
    while session.replays and room > 0:
        filter_, replay = next(iter(session.replays.items()))
        waiting, replay.waiting = replay.waiting, None
        if waiting is not None and broker.retained.get(waiting.topic.decode()) is not waiting:
            waiting = None  # it was replaced meanwhile, and the client got the new one
        for message in chain((waiting,), replay.walk) if waiting else replay.walk:
            if message is None:
                room -= SEARCHED if is_in_vain else 0
                is_in_vain = True
            elif message.expires is not None and message.expires <= now:
                pass
            elif replay.grant.no_local and message.publisher == session.client_id:
                pass  # [MQTT-3.8.3-3] its own, even if it was retained
            elif queue.has_room(message.size):
                room -= 1
                grant = _grant(broker, session, replay, message)
                if grant is not None:
                    offer(broker, message, grant, now)
                    is_in_vain = False
            elif queue.messages or queue.promised:
                replay.waiting = message
                return
            else:
                session.dropped += 1
                broker.account.drop(
                    now, Drop.QUEUE_FULL, session.client_id, message.topic, level=message.level, since=message.at
                )
            if room <= 0:
                break
        else:
            del session.replays[filter_]
            if replay.is_noted and session.is_kept:
                broker.journal.subscribed(session, session.subscriptions[filter_])
    conn = session.connection
    if session.replays and conn is not None and not queue.messages:
        # a long search: it goes on when the others have had their turn
        broker.timers.at(now, lambda _: broker.mark(conn))


def begin(broker: Broker, session: Session, held: Held, filter_: str) -> Replay:
    """Start the walk of a subscription; ``filter_`` is the filter alone."""
    grant = grant_for(session, [held])
    grant.set_retain = True
    asking = held if isinstance(held, Asking) else None
    replay = session.replays[held.options.filter] = Replay(broker.retained.match(filter_), grant, asking)
    return replay


def note_unfinished(broker: Broker, session: Session) -> None:
    """Let the store know which walks go on: after a crash they begin anew."""
    for filter_, replay in session.replays.items():
        if not replay.is_noted:
            replay.is_noted = True
            broker.journal.subscribed(session, session.subscriptions[filter_], is_replaying=True)


def _grant(broker: Broker, session: Session, replay: Replay, message: Message) -> Grant | None:
    """How the message is sent; None if the client may not read it, or it does not meet the subscription's condition."""
    if not broker.routes.may_read(session, message.topic.decode()):
        return None
    if replay.asking is None:
        return replay.grant
    grant = is_wanted(broker, replay.asking, replay.bound, message)
    if grant is not None:
        grant.set_retain = True
    return grant
