"""Sessions that go to another broker or come from one: taken out with all that they have, and put in as they were.

A session that leaves is over here, and nothing of it is named as lost or handed to others: whoever has taken it out
sees to it that the other broker gets everything.  Both happen between two commits, so a broker that dies has the
session either wholly or not at all.  What waits in the store alone follows in portions
(:mod:`tieline.core.inbound.estates`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieline.core.account import Drop
from tieline.core.client import Session
from tieline.core.durable.journal import Journal, options_byte, terms_of
from tieline.core.inbound.connections import Connections
from tieline.core.inbound.remains import next_entry
from tieline.core.inbound.sessions import Sessions
from tieline.core.inbound.subscribe import Subscribing
from tieline.core.inbound.subscription_request import read_request
from tieline.core.inbound.will import Wills
from tieline.core.message import Bundle, Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.window import Window
from tieline.core.receiver import ActiveSubscription, Flight, Receiver
from tieline.core.restore import grant_of, subscription_of
from tieline.core.routing.route import ConditionalSubscription
from tieline.core.routing.routes import Routes
from tieline.match.change import ChangeMemory
from tieline.sched.levels import Patience
from tieline.wire.reason import Reason

#: How a session gets a message, in the words of facts: options, identifiers, share.
Terms = tuple[int, bytes, str]


class Subscribed(NamedTuple):
    """One subscription as its client asked for it."""

    filter: str
    #: As SUBSCRIBE has them.
    options: int
    identifier: int
    conditions: tuple[str, ...]


class Sent(NamedTuple):
    """One of our packet ids in use; without a message, the client has that already."""

    packet_id: int
    message: Message | None
    terms: Terms


class SessionContents(NamedTuple):
    """Everything of a session."""

    client_id: str
    user: str | None
    expiry_s: int
    #: period_s, frequency and timeout_s of its low classes, where its client has asked for that.
    patience: tuple[float, int, float | None] | None
    #: Their packet ids of QoS 2 messages that were accepted and not released.
    inbound: tuple[int, ...]
    subscriptions: tuple[Subscribed, ...]
    #: In the order of sending again.
    sent: tuple[Sent, ...]
    #: What waits with QoS 1 and 2, oldest first.
    queue: tuple[tuple[Message, Terms], ...]
    #: More waits in the store alone, and is behind that.
    has_more: bool


class Handovers:
    """Takes sessions out, and puts them in."""

    def __init__(  # a session goes from every room
        self,
        sessions: Sessions,
        connections: Connections,
        subscribing: Subscribing,
        routes: Routes,
        references: ChangeMemory,
        delivery: Delivery,
        window: Window,
        wills: Wills,
        journal: Journal,
    ) -> None:
        self._sessions = sessions
        self._connections = connections
        self._subscribing = subscribing
        self._routes = routes
        self._references = references
        self._delivery = delivery
        self._window = window
        self._wills = wills
        self._journal = journal

    # -- out

    def part(self, session: Session, now: float, *, is_claimed: bool) -> None:
        """Its client is elsewhere now: the connection here ends; a will that waits is cancelled by a claim."""
        if session.connection is not None:
            text = "the client has connected to another broker"
            self._connections.shut(session.connection, "taken_over", now, reason=Reason.SESSION_TAKEN_OVER, text=text)
        if is_claimed:
            # [MQTT-3.1.3-9] back in time, if at another broker
            self._wills.forget(session)

    def take_out(self, session: Session, now: float) -> SessionContents:
        """End a session here without a word to anybody; what it had, to be given to another broker.

        Its client is away.  Messages with QoS 0 do not wait for those who are.
        """
        self._delivery.settle(session)
        patience = session.patience
        subscriptions = tuple(
            [
                Subscribed(written, options_byte(each.options), each.identifier, each.conditions)
                for written, each in session.subscriptions.items()
            ]
        )
        sent = tuple([_sent(packet_id, flight) for packet_id, flight in session.inflight.items()])
        for _ in self._window.clear(session):
            pass  # the ids are free, and the bytes given back
        has_more = session.spill is not None
        queue: list[tuple[Message, Terms]] = []
        while (entry := next_entry(session, now)) is not None:
            item, grant = entry
            session.queue.taken(item.messages, item.size)
            if isinstance(item, Message) and item.qos and grant.qos:
                queue.append((item, terms_of(grant)))
                if has_more:
                    # the store keeps the session for what is not here
                    self._journal.dropped(session, item, grant)
            else:
                for each in item.bursts() if isinstance(item, Bundle) else (item,):
                    self._delivery.turn_away(session, each, Drop.OFFLINE, now)
        contents = SessionContents(
            session.client_id,
            session.user,
            session.expiry_s,
            None if patience is None else (patience.period_s, patience.frequency, patience.timeout_s),
            tuple(session.inbound),
            subscriptions,
            sent,
            tuple(queue),
            has_more,
        )
        self._wills.forget(session)
        self._sessions.end(session, now)
        return contents

    # -- in

    def put_in(self, contents: SessionContents, now: float) -> Session:
        """Have a session of another broker here, its client away, without what waits for it."""
        journal = self._journal
        session = self._sessions.new(contents.client_id, contents.user)
        session.detach()
        session.expiry_s = contents.expiry_s
        session.left = now
        if contents.patience is not None:
            period_s, frequency, timeout_s = contents.patience
            session.patience = Patience(period_s=period_s, frequency=frequency, timeout_s=timeout_s)
        is_stored = not journal.is_volatile
        session.is_known = session.is_kept = is_stored
        if is_stored:
            journal.session(session)
        for each in contents.subscriptions:
            self.subscribe(session, each)
        session.hold_ids(contents.inbound)
        if is_stored:
            for packet_id in contents.inbound:
                journal.taken(session, packet_id)
        self._sessions.expire_at(session, now + contents.expiry_s)
        return session

    def subscribe(self, session: Session, asked: Subscribed) -> None:
        """Add a subscription of a session that comes from another broker."""
        request = read_request(
            subscription_of(asked.filter, asked.options), asked.conditions, question_mark=self._takes_question_marks
        )
        if request.refusal is None:
            subscription = self._subscribing.keep(session, request, asked.identifier, asked.conditions)
            if session.is_kept:
                self._journal.subscribed(session, subscription)

    def put_sent(self, session: Session, sent: Sent) -> None:
        """Add one of its packet ids in use, behind those that were added before."""
        flight: Flight = None
        message, is_stored = sent.message, session.is_kept
        grant = grant_of(session, sent.terms)
        held = message or Message(b"released", b"", 2)
        if is_stored:
            self._journal.queued(session, held, grant)
            self._journal.sent(session, held, grant, sent.packet_id)
        if message is not None:
            flight = (message, grant, min(message.qos, grant.qos))
        elif is_stored:
            self._journal.received(session, sent.packet_id)
        self._window.restore(session, sent.packet_id, flight)

    def put_waiting(self, session: Session, message: Message, terms: Terms, now: float) -> None:
        """Let a message wait for a session, behind all that waits."""
        message.is_owed = True  # it was accepted before anybody here knew of it
        self._delivery.queue_with_care(session, message, grant_of(session, terms), now)
        message.is_owed = False

    # -- in the place of a session that has left

    @property
    def _takes_question_marks(self) -> bool:
        return self._subscribing.settings.content.question_mark == "on"

    def stand_in(self, receiver: Receiver, asked: Sequence[Subscribed]) -> list[tuple[str, ActiveSubscription]]:
        """Let a receiver have what a session was subscribed to; each as it is written, to be cancelled."""
        made: list[tuple[str, ActiveSubscription]] = []
        for each in asked:
            request = read_request(
                subscription_of(each.filter, each.options), each.conditions, question_mark=self._takes_question_marks
            )
            if request.refusal is not None:
                continue
            subscription = ActiveSubscription(request.options, each.identifier)
            if request.predicate is not None:
                subscription = ConditionalSubscription(
                    request.options,
                    each.identifier,
                    receiver,
                    request.share,
                    request.filter,
                    request.predicate,
                    self._references,
                )
            self._routes.subscribe(receiver, request.share, request.filter, subscription)
            made.append((each.filter, subscription))
        return made

    def stand_down(self, receiver: Receiver, made: Sequence[tuple[str, ActiveSubscription]]) -> None:
        """Take a receiver off the routes again."""
        for written, subscription in made:
            self._routes.cancel(receiver, written, subscription)


def _sent(packet_id: int, flight: Flight) -> Sent:
    if flight is None:
        return Sent(packet_id, None, (2, b"", ""))
    message, grant, _ = flight
    return Sent(packet_id, message, terms_of(grant))
