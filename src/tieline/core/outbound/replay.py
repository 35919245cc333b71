"""Retained messages for a new subscription, queued a portion at a time.

A subscription to everything may match a million retained messages.  The first portion is queued at once; the rest is a
walk that goes on whenever the queue has run empty, so neither the queue nor the loop is filled by one SUBSCRIBE.  A
session has at most one walk per subscription: subscribing again starts it anew, unsubscribing ends it.

For a session that is kept, the store knows which walks have not come to their end.  Where a walk is cannot be kept: the
tree of the next broker has another order.  So after a restart it begins anew, and messages may come a second time, as
they do for a client that subscribes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from tieline.core.account import Account, Drop
from tieline.core.client import Changed, Connection, Hold, Session
from tieline.core.durable.journal import Journal
from tieline.core.message import Message
from tieline.core.outbound.retained import Retained
from tieline.core.receiver import ActiveSubscription, Grant, Receiver
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.route import ConditionalSubscription, grant_for
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timers
from tieline.core.work import Work
from tieline.match.events import EventType
from tieline.match.trees import FilterTree
from tieline.match.where import Predicate

#: Retained messages queued in one go.
PORTION = 250
#: What a stretch of the search between two pauses counts towards a portion when nothing was found in it.
SEARCHED = 25
#: What one for a portion counts towards the work of a turn.
EFFORT = 60
#: What the end of a walk counts, which may have found nothing: there are as many walks as subscriptions.
ENDED = 10


class Walk:
    """One walk over retained messages."""

    __slots__ = ("bound", "conditional", "grant", "is_noted", "messages", "waiting")

    def __init__(
        self, messages: Iterator[Message | None], grant: Grant, conditional: ConditionalSubscription | None
    ) -> None:
        self.messages = messages
        self.grant = grant
        #: The subscription, if it has a condition, and the condition as each event type understands it.
        self.conditional = conditional
        self.bound: dict[EventType, Predicate] = {}
        #: Taken from the messages, but there was no room for it.
        self.waiting: Message | None = None
        #: The store knows that it has not come to its end.
        self.is_noted = False


class Replays:
    """The walks of all sessions, by filter."""

    __slots__ = (
        "_account",
        "_changed",
        "_content",
        "_expected",
        "_journal",
        "_retained",
        "_routes",
        "_timers",
        "_walks",
        "_work",
    )

    def __init__(  # what a walk goes over, and through whom its messages go
        self,
        retained: Retained,
        routes: Routes,
        content: ContentMatch,
        changed: Changed,
        journal: Journal,
        account: Account,
        timers: Timers,
        work: Work,
    ) -> None:
        self._retained = retained
        self._routes = routes
        self._content = content
        self._changed = changed
        self._journal = journal
        self._account = account
        self._timers = timers
        self._work = work
        self._walks: dict[Session, dict[str, Walk]] = {}
        #: By session, the connection that waits until other brokers know of its subscriptions, and their filters.
        self._expected: dict[Receiver, tuple[Connection, FilterTree[str]]] = {}

    def expect(self, conn: Connection, filters: Iterable[str]) -> None:
        """Walks begin when other brokers know of the subscriptions for which a connection is now held."""
        tree: FilterTree[str] = FilterTree()
        for filter_ in filters:
            tree.put(filter_, filter_)
        if conn.session is not None:
            self._expected[conn.session] = conn, tree

    def will_bring(self, receiver: Receiver, topic: str) -> bool:
        """Whether a walk that has not begun yet will bring what is retained on a topic."""
        expected = self._expected.get(receiver)
        if expected is None:
            return False
        conn, tree = expected
        if conn.hold is not Hold.PEERS or conn.session is not receiver:
            del self._expected[receiver]
            return False
        return bool(tree.match(topic))

    def begin(
        self, session: Session, subscription: ActiveSubscription, filter_: str, *, is_noted: bool = False
    ) -> None:
        """Start the walk of a subscription; ``filter_`` is the filter alone, ``is_noted`` if the store knows of it."""
        grant = grant_for(session, [subscription])
        grant.set_retain = True
        conditional = subscription if isinstance(subscription, ConditionalSubscription) else None
        walk = Walk(self._retained.match(filter_), grant, conditional)
        walk.is_noted = is_noted
        self._walks.setdefault(session, {})[subscription.options.filter] = walk
        session.is_replaying = True

    def stop(self, session: Session, filter_: str) -> None:
        """End the walk of a subscription, if there is one."""
        walks = self._walks.get(session)
        if walks is not None and walks.pop(filter_, None) is not None and not walks:
            self.forget(session)

    def forget(self, session: Session) -> None:
        """End all walks of a session."""
        self._walks.pop(session, None)
        self._expected.pop(session, None)
        session.is_replaying = False

    def refill(self, session: Session, now: float) -> None:
        """Queue the next portion for a session, as far as there is room."""
        walks = self._walks.get(session)
        if walks is None:
            return
        room = PORTION
        while walks and room > 0:
            filter_, walk = next(iter(walks.items()))
            before = room
            room, is_over = self._go_on(session, walk, room, now)
            self._work.did((before - room) * EFFORT)
            if walk.waiting is not None:
                return
            if is_over:
                room -= ENDED
                self.stop(session, filter_)
                if walk.is_noted and session.is_kept:
                    self._journal.subscribed(session, session.subscriptions[filter_])
        conn = session.connection
        if walks and conn is not None and not session.queue.messages:
            # a long search: it goes on when the others have had their turn
            self._timers.soon(lambda _: self._changed.mark(conn))

    def _go_on(self, session: Session, walk: Walk, room: int, now: float) -> tuple[int, bool]:
        """Queue what a walk finds; what is left of the portion, and whether the walk is over."""
        queue = session.queue
        is_in_vain = True
        waiting, walk.waiting = walk.waiting, None
        if waiting is not None and self._retained.get(waiting.topic.decode()) is not waiting:
            waiting = None  # it was replaced meanwhile, and the client got the new one
        for message in chain((waiting,), walk.messages) if waiting else walk.messages:
            if message is None:
                room -= SEARCHED if is_in_vain else 0
                is_in_vain = True
            elif message.expires is not None and message.expires <= now:
                pass
            elif walk.grant.no_local and message.origin.client == session.client_id:
                pass  # [MQTT-3.8.3-3] its own, even if it was retained
            elif queue.has_room(message.size):
                room -= 1
                grant = self._grant(session, walk, message)
                if grant is not None:
                    session.offer(message, grant, now)
                    is_in_vain = False
            elif queue.messages or queue.promised:
                walk.waiting = message
                return room, False
            else:
                session.dropped += 1
                self._account.drop(
                    now, Drop.QUEUE_FULL, session.client_id, message.topic, level=message.level, since=message.at
                )
            if room <= 0:
                return room, False
        return room, True

    def _grant(self, session: Session, walk: Walk, message: Message) -> Grant | None:
        """How the message is sent; None if the client may not read it, or it does not meet the condition."""
        if not self._routes.may_read(session, message.topic.decode()):
            return None
        if walk.conditional is None:
            return walk.grant
        grant = self._content.grant_of_retained(walk.conditional, walk.bound, message)
        if grant is not None:
            grant.set_retain = True
        return grant

    def note_unfinished(self, session: Session) -> None:
        """Let the store know which walks go on: after a crash they begin anew."""
        for filter_, walk in self._walks.get(session, {}).items():
            if not walk.is_noted:
                walk.is_noted = True
                self._journal.subscribed(session, session.subscriptions[filter_], is_replaying=True)
