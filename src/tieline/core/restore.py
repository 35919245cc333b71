"""A broker begins with what its predecessor left: sessions, what waits for them, what is retained.

Pure: rows in, state out.  Time goes on while no broker runs, so deadlines are where they would have been; a client that
was connected when the broker ended has left by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tieline.conf.schema import bound
from tieline.core.account import Event
from tieline.core.durable import facts
from tieline.core.inbound import connect
from tieline.core.inbound import will as wills
from tieline.core.inbound.subscription_request import read_wish
from tieline.core.message import Message
from tieline.core.outbound.replay import begin
from tieline.core.routing.conditional import Asking
from tieline.core.routing.routes import weight_of
from tieline.core.session import NEVER, Grant, Held, Session
from tieline.sched.levels import Patience
from tieline.wire.packets import Subscription, Will
from tieline.wire.properties import WILL, decode_properties

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.routing.groups import Group
    from tieline.core.session import Flight

Row = Any
TABLES: Final = (
    "session",
    "subscription",
    "message",
    "retained",
    "queue",
    "inflight",
    "inbound",
    "unrouted",
    "producer",
)


class State:
    """What a store knows, as rows; each begins with the session or the message it is about, in the order of facts."""

    def __init__(self) -> None:
        #: session: number, client_id, user, expiry_s, left, will, patience.
        #: subscription: session, filter, options, identifier, conditions.
        #: message: number, topic, payload, qos, retain, properties, expires, publisher, level, taxon, at.
        #: retained: topic, message.
        #: queue: session, message, options, identifiers, share; oldest first.
        #: inflight: session, packet_id, message or None, options, identifiers, share; in the order of sending again.
        #: inbound: session, packet_id.
        #: unrouted: message; oldest first.
        #: producer: producer, number; the one unused longest first.
        self.tables: dict[str, list[Row]] = {name: [] for name in TABLES}
        #: How often a broker has been started with this store, and the highest number of a message.
        self.starts = 1
        self.messages = 0


def restore(broker: Broker, state: State, now: float) -> None:
    """Give a new broker the state of the old one; ``broker.journal.epoch_s`` says how late it is."""
    journal = broker.journal
    journal.messages = state.messages
    # numbers of sessions never come back, not even those of sessions that the store was not told about
    journal.sessions = state.starts << 32
    messages = {row[0]: _message(broker, row) for row in state.tables["message"]}
    sessions = {row[0]: _session(broker, row, now) for row in state.tables["session"]}
    #: Walks over retained messages that had not come to their end: session, subscription, bare filter.
    unfinished: list[tuple[Session, Held, str]] = []
    for row in state.tables["subscription"]:
        restored = _subscribe(broker, sessions[row[0]], row)
        if restored is not None and row[2] & facts.REPLAYING:
            unfinished.append((sessions[row[0]], *restored))
    for topic, number in state.tables["retained"]:
        message = messages[number]
        if message.expires is not None and message.expires <= now:
            journal.cleared(topic)
        else:
            broker.retained.put(topic.decode(), message, now)
    for session, held, filter_ in unfinished:
        begin(broker, session, held, filter_).is_noted = True
    for session_number, number, *terms in state.tables["queue"]:
        session, message = sessions[session_number], messages[number]
        session.queue.push((message, _grant(broker, session, terms)), 1, message.size)
        broker.queued_bytes += message.size
    for session_number, packet_id, number, *terms in state.tables["inflight"]:
        session = sessions[session_number]
        flight: Flight = None
        if number is not None:
            message, grant = messages[number], _grant(broker, session, terms)
            flight = (message, grant, min(message.qos, grant.qos))
            session.queue.sent_bytes += message.size
            broker.queued_bytes += message.size
        session.inflight[packet_id] = flight
        session.last_id = packet_id
    for session_number, packet_id in state.tables["inbound"]:
        sessions[session_number].inbound.add(packet_id)
    broker.producers.restore(state.tables["producer"])
    for (number,) in state.tables["unrouted"]:
        # everybody is away: it waits for those who are kept, and nobody gets it at QoS 0 who may have had it before
        broker.unrouted.route_one(messages[number], now)
    for session in sessions.values():
        _await(broker, session, now)
    broker.seal()


def _message(broker: Broker, row: Row) -> Message:
    number, topic, payload, qos, retain, properties, expires, publisher, level, taxon, at = row
    epoch_s = broker.journal.epoch_s
    message = Message(
        topic,
        payload,
        qos,
        retain=retain,
        properties=properties,
        expires=None if expires is None else expires - epoch_s,
        publisher=publisher,
        level=level,
        at=at - epoch_s,
        taxon=taxon,
    )
    message.number = number
    return message


def _session(broker: Broker, row: Row, now: float) -> Session:
    number, client_id, user, expiry_s, left, will, patience = row
    limits = broker.settings.limits
    session = Session(client_id, bound(limits.queue_messages), bound(limits.queue_bytes))
    session.number = number
    session.user = user
    session.expiry_s = expiry_s
    session.is_known = True
    session.is_kept = expiry_s > 0
    session.left = now if left is None else left - broker.journal.epoch_s
    if patience is not None:
        period_s, frequency, timeout_s = patience
        session.patience = Patience(period_s=period_s, frequency=frequency, timeout_s=timeout_s)
    if will is not None:
        topic, payload, qos, retain, encoded = will
        properties, _ = decode_properties(encoded, 0, len(encoded), WILL)
        session.will = Will(topic=topic, payload=payload, qos=qos, retain=retain, properties=properties)
    broker.sessions[client_id] = session
    broker.account.sessions_most = max(broker.account.sessions_most, len(broker.sessions))
    if left is None:
        # from now on it is known when its client left
        broker.journal.session(session)
    return session


def _subscribe(broker: Broker, session: Session, row: Row) -> tuple[Held, str] | None:
    """The subscription and its filter alone; None if it ends here."""
    _, filter_, options, identifier, conditions = row
    subscription = Subscription(
        filter=filter_,
        qos=options & 3,
        no_local=bool(options & 4),
        retain_as_published=bool(options & 8),
        retain_handling=options >> 4 & 3,
    )
    # "?" asked for a condition when the client subscribed if it does so now: settings are not part of a session
    question_mark = broker.settings.content.question_mark == "on"
    wish = read_wish(subscription, conditions, question_mark=question_mark)
    if wish.refusal is not None:
        # never more than was asked for: a condition that is no longer understood is not left out
        text = f"subscription {filter_} ends: {wish.refusal.rule}"
        broker.account.tell(Event("subscription_lost", session.client_id, "", text, is_trouble=True))
        broker.journal.unsubscribed(session, filter_)
        return None
    held = Held(subscription, identifier)
    if wish.predicate is not None:
        held = Asking(subscription, identifier, session, wish.share, wish.filter, wish.predicate, broker.memory)
    held.conditions = tuple(conditions)
    broker.routes.subscribe(session, wish.share, wish.filter, held)
    session.subscriptions[filter_] = held
    session.weight += weight_of(filter_)
    return held, wish.filter


def _grant(broker: Broker, session: Session, terms: list[Any]) -> Grant:
    options, identifiers, share = terms
    return Grant(
        session,
        options & 3,
        identifiers=identifiers,
        keep_retain=bool(options & facts.KEEP_RETAIN),
        set_retain=bool(options & facts.SET_RETAIN),
        group=_group(broker, share),
    )


def _group(broker: Broker, share: str) -> Group | None:
    """The group of a shared subscription, whose other members take a message if this one never does."""
    if not share:
        return None
    name, _, filter_ = share.partition("/")
    return broker.routes.group(name, filter_)


def _await(broker: Broker, session: Session, now: float) -> None:
    """The client is away: its will and the end of its session come when they would have come."""
    assert session.left is not None
    left = session.left
    if not session.expiry_s:
        # a session that ended with its connection, known only for its will
        connect.end_session(broker, session, now)
        return
    if wills.is_delayed(session):
        wills.defer(broker, session, left)
    elif session.will is not None:
        wills.publish(broker, session, now)
    if session.expiry_s != NEVER:
        connect.expire_at(broker, session, left + session.expiry_s)
