"""A broker begins with what its predecessor left: sessions, what waits for them, what is retained.

Pure: rows in, state out.  Time goes on while no broker runs, so deadlines are where they would have been; a client that
was connected when the broker ended has left by then.  Where the clock has gone back meanwhile, what was done in the
past would have been done in the future: it counts as done now, so that nothing lives longer than it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # Any: what a row holds depends on its table

from tieline.core.account import Account, Event
from tieline.core.client import Session
from tieline.core.durable import facts
from tieline.core.durable.journal import Journal
from tieline.core.inbound.estates import Estates
from tieline.core.inbound.producers import Producers
from tieline.core.inbound.sessions import Sessions
from tieline.core.inbound.subscribe import Subscribing
from tieline.core.inbound.subscription_request import read_request
from tieline.core.inbound.taken_over import TakenOver
from tieline.core.inbound.will import Wills, delay_s
from tieline.core.message import Message, Origin
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.replay import Replays
from tieline.core.outbound.retained import Retained
from tieline.core.outbound.spills import Spills
from tieline.core.outbound.window import Window
from tieline.core.receiver import ActiveSubscription, Flight, Grant, Share
from tieline.sched.levels import Patience
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Subscription, Will
from tieline.wire.properties import WILL, Properties, decode_properties

Row = Any


class StoredState:
    """What a store knows, as rows; each begins with the session or the message it is about, in the order of facts."""

    def __init__(self) -> None:
        #: session: number, client_id, user, expiry_s, left, will, patience.
        #: subscription: session, filter, options, identifier, conditions.
        #: message: number, topic, payload, qos, retain, properties, expires, publisher, level, taxon, at, user;
        #: the last one is missing in rows of older stores.
        #: retained: topic, message.
        #: queue: session, message, options, identifiers, share; oldest first.
        #: spilled: session, lane, messages, bytes, bytes of the largest; what waits in the store alone, and the
        #: messages of which are not here.
        #: inflight: session, packet_id, message or None, options, identifiers, share; in the order of sending again.
        #: inbound: session, packet_id.
        #: unrouted: message; oldest first.
        #: producer: producer, number; the one unused longest first.
        #: note: key, value; in the order of their keys.  Not the core's: whoever has noted them takes them in.
        self.tables: dict[str, list[Row]] = {name: [] for name in facts.STATE}
        #: How often a broker has been started with this store, and the highest number of a message.
        self.starts = 1
        self.messages = 0


class Restoring:
    """Gives a new broker the state of the old one; the journal's ``kept_s`` says how late it is."""

    def __init__(  # every room that has something to remember
        self,
        sessions: Sessions,
        subscribing: Subscribing,
        wills: Wills,
        delivery: Delivery,
        retained: Retained,
        replays: Replays,
        window: Window,
        producers: Producers,
        spills: Spills,
        estates: Estates,
        taken_over: TakenOver,
        journal: Journal,
        account: Account,
    ) -> None:
        self._sessions = sessions
        self._subscribing = subscribing
        self._wills = wills
        self._delivery = delivery
        self._retained = retained
        self._replays = replays
        self._window = window
        self._producers = producers
        self._spills = spills
        self._estates = estates
        self._taken_over = taken_over
        self._journal = journal
        self._account = account
        self._unrouted: list[Message] = []
        self._restored: tuple[Session, ...] = ()
        self._bequeathed: tuple[Session, ...] = ()

    def restore(self, state: StoredState, now: float) -> None:
        """Bring back everything that was there, in an order in which each thing finds what it refers to."""
        journal = self._journal
        journal.messages = state.messages
        # numbers of sessions never come back, not even those of sessions that the store was not told about
        journal.sessions = state.starts << 32
        messages = {row[0]: message_of(row, journal.kept_s, self._sessions, now) for row in state.tables["message"]}
        self._unrouted = [messages[number] for (number,) in state.tables["unrouted"]]
        spilled: dict[int, list[Row]] = {}
        for number, *row in state.tables["spilled"]:
            spilled.setdefault(number, []).append(tuple(row))
        rows = state.tables["session"]
        sessions = {row[0]: self._session(row, now) for row in rows if row[3] != facts.OVER}
        estates = {row[0]: self._sessions.bequeathed(*row[:3]) for row in rows if row[3] == facts.OVER}
        for number, session in (sessions | estates).items():
            if number in spilled:
                self._spills.restore(session, spilled[number])
                session.is_kept = not session.is_over
        #: Walks over retained messages that had not come to their end: session, subscription, bare filter.
        unfinished: list[tuple[Session, ActiveSubscription, str]] = []
        for row in state.tables["subscription"]:
            restored = self._subscribe(sessions[row[0]], row)
            if restored is not None and row[2] & facts.REPLAYING:
                unfinished.append((sessions[row[0]], *restored))
        for topic, number in state.tables["retained"]:
            message = messages[number]
            if message.expires is not None and message.expires <= now:
                journal.cleared(topic)
            else:
                self._retained.put(topic.decode(), message, now)
        for session, subscription, filter_ in unfinished:
            self._replays.begin(session, subscription, filter_, is_noted=True)
        self._restore_waiting(state, sessions, messages)
        self._producers.restore(state.tables["producer"])
        self._restored, self._bequeathed = tuple(sessions.values()), tuple(estates.values())

    def go_on(self, now: float, heard_at: float) -> None:
        """Act on what was under way, once other brokers' parts of it are back as well.

        At ``heard_at`` this broker has heard of clients that have come back to other ones.
        """
        for message in self._unrouted:
            publisher = self._sessions.by_id.get(message.origin.client)
            if publisher is not None:
                message.origin.moves = publisher.origin.moves
            # everybody is away: it waits for those who are kept, and nobody gets it at QoS 0 who may have had it before
            self._taken_over.route_one(message, now)
        for session in self._restored:
            self._await(session, now, heard_at)
        for session in self._bequeathed:
            self._estates.add(session)

    def _restore_waiting(self, state: StoredState, sessions: dict[int, Session], messages: dict[int, Message]) -> None:
        for session_number, number, *terms in state.tables["queue"]:
            session, message = sessions[session_number], messages[number]
            self._delivery.requeue(session, message, grant_of(session, terms))
        for session_number, packet_id, number, *terms in state.tables["inflight"]:
            session = sessions[session_number]
            flight: Flight = None
            if number is not None:
                message, grant = messages[number], grant_of(session, terms)
                flight = (message, grant, min(message.qos, grant.qos))
            self._window.restore(session, packet_id, flight)
        for session_number, packet_id in state.tables["inbound"]:
            sessions[session_number].hold_id(packet_id)

    def _session(self, row: Row, now: float) -> Session:
        number, client_id, user, expiry_s, left, will, patience = row
        session = self._sessions.new(client_id, user, number)
        session.detach()
        session.expiry_s = expiry_s
        session.is_known = True
        session.is_kept = expiry_s > 0
        session.left = now if left is None else min(now, left - self._journal.kept_s)
        if patience is not None:
            period_s, frequency, timeout_s = patience
            session.patience = Patience(period_s=period_s, frequency=frequency, timeout_s=timeout_s)
        if will is not None:
            topic, payload, qos, retain, encoded = will
            try:
                properties, _ = decode_properties(encoded, 0, len(encoded), WILL)
            except ProtocolError:
                # taken by a version that was less strict; that its client is gone is still worth saying
                properties = Properties()
            self._wills.adopt(
                session, Will(topic=topic, payload=payload, qos=qos, retain=retain, properties=properties)
            )
        if left is None:
            # from now on it is known when its client left
            self._journal.session(session)
        return session

    def _subscribe(self, session: Session, row: Row) -> tuple[ActiveSubscription, str] | None:
        """The subscription and its filter alone; None if it ends here."""
        _, filter_, options, identifier, conditions = row
        subscription = subscription_of(filter_, options)
        # "?" asked for a condition when the client subscribed if it does so now: settings are not part of a session
        question_mark = self._subscribing.settings.content.question_mark == "on"
        request = read_request(subscription, conditions, question_mark=question_mark)
        if request.refusal is not None:
            # never more than was asked for: a condition that is no longer understood is not left out
            text = f"subscription {filter_} ends: {request.refusal.rule}"
            self._account.tell(Event("subscription_lost", session.client_id, "", text, is_trouble=True))
            self._journal.unsubscribed(session, filter_)
            return None
        return self._subscribing.keep(session, request, identifier, conditions), request.filter

    def _await(self, session: Session, now: float, heard_at: float) -> None:
        """The client is away: its will and the end of its session come when they would have come.

        If that was while this broker was down, a will that had a delay waits until it is known that nobody else has
        the client: it may have come back in time.
        """
        assert session.left is not None
        if not session.expiry_s:
            # a session that ended with its connection, known only for its will
            self._sessions.end(session, now)
            return
        earliest = heard_at if delay_s(session) else now
        self._wills.schedule(session, now, max(session.left, earliest - delay_s(session)))
        self._sessions.expire_at(session, max(session.left + session.expiry_s, earliest))


def subscription_of(filter_: str, options: int) -> Subscription:
    """What was asked for, from a filter as written and the options byte of SUBSCRIBE."""
    return Subscription(
        filter=filter_,
        qos=options & 3,
        no_local=bool(options & 4),
        retain_as_published=bool(options & 8),
        retain_handling=options >> 4 & 3,
    )


def message_of(row: Row, kept_s: float, sessions: Sessions, now: float) -> Message:
    """A message as the store describes it; ``kept_s`` is what separates its clock from the broker's."""
    number, topic, payload, qos, retain, properties, expires, publisher, level, taxon, at, *rest = row
    # more than that where it would have come in the future
    kept_s = max(kept_s, at - now)
    message = Message(
        topic,
        payload,
        qos,
        retain=retain,
        properties=properties,
        expires=None if expires is None else expires - kept_s,
        # older stores do not say who the publisher was
        origin=Origin(publisher, owner=sessions.owner(rest[0] if rest else None)),
        level=level,
        at=at - kept_s,
        taxon=taxon,
    )
    message.number = number
    return message


def grant_of(session: Session, terms: Sequence[Any]) -> Grant:
    """How a session gets a message, from the words of facts."""
    options, identifiers, share = terms
    name, _, filter_ = share.partition("/")
    return Grant(
        session,
        options & 3,
        identifiers=identifiers,
        keep_retain=bool(options & facts.KEEP_RETAIN),
        set_retain=bool(options & facts.SET_RETAIN),
        # if this member never takes the message, another one of its group does
        share=Share(name, filter_) if share else None,
    )
