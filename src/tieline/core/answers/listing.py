"""What a broker keeps, one thing after the other: sessions, subscriptions, retained messages.

There may be a million of each, so a list is a generator: it yields None after every ``PAUSE`` things that it has looked
at, where whoever drives it lets others have their turn.  What comes or goes while a list is made may be in it or not;
what stays is in it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tieline.core.answers.why import Standing, standing
from tieline.core.routing.route import ConditionalSubscription
from tieline.wire.topics import matches, split_share

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.client import Session
    from tieline.core.message import Message
    from tieline.core.receiver import ActiveSubscription

#: How many things are looked at between two pauses.
PAUSE: Final = 256
#: So much of a retained payload is shown.
SHOWN_BYTES: Final = 256
#: What says that a client is served as fast as it can take it.
_AT_EASE: Final = frozenset({"caught_up", "away"})


class ListedSession(Struct, frozen=True):
    """A session, how its client is doing, and how much it has asked for."""

    standing: Standing
    is_connected: bool
    #: MQTT 4 (3.1.1) or 5; 0 while the client is away.
    version: int
    #: For how long it has been away, in seconds; 0 while it is connected.
    away_s: float
    #: Seconds that the session outlives its connection; 0xFFFFFFFF for ever.
    expiry_s: int
    subscriptions: int


class ListedSubscription(Struct, frozen=True):
    """A subscription as its client wrote it, and what it means."""

    client: str
    written: str
    #: The bare filter: without share and condition.
    filter: str
    group: str
    condition: str
    qos: int
    no_local: bool
    identifier: int
    is_connected: bool


class ListedRetained(Struct, frozen=True):
    """A retained message, with the beginning of what it says."""

    topic: str
    qos: int
    level: int
    #: Of the whole payload.
    payload_bytes: int
    #: At most ``SHOWN_BYTES`` of the payload.
    payload: bytes
    publisher: str
    #: Seconds until it expires; None if it does not.
    left_s: float | None


def sessions(
    broker: Broker, now: float, *, client: str = "*", user: str | None = None, state: str = ""
) -> Iterator[ListedSession | None]:
    """Sessions whose client id fits a pattern with ``*`` and ``?``, of one user, or in one state.

    States are ``connected``, ``away``, and ``slow``: something waits for it, or keeps it waiting.
    """
    for number, session in enumerate([*broker.sessions.values()], 1):
        if number % PAUSE == 0:
            yield None
        if not fnmatchcase(session.client_id, client) or (user is not None and session.user != user):
            continue
        is_connected = session.connection is not None
        if (state == "connected" and not is_connected) or (state == "away" and is_connected):
            continue
        found = standing(broker, session, now)
        if state == "slow" and not found.queued and not found.spilled and found.paused in _AT_EASE:
            continue
        yield _listed(session, found, now)


def _listed(session: Session, found: Standing, now: float) -> ListedSession:
    conn = session.connection
    return ListedSession(
        standing=found,
        is_connected=conn is not None,
        version=0 if conn is None else conn.version,
        away_s=0.0 if session.left is None else max(0.0, now - session.left),
        expiry_s=session.expiry_s,
        subscriptions=len(session.subscriptions),
    )


def subscriptions(
    broker: Broker, *, client: str = "*", topic: str | None = None, with_condition: bool = False
) -> Iterator[ListedSubscription | None]:
    """Subscriptions of clients that fit a pattern; those alone that match a topic, or that have a condition."""
    looked_at = 0
    for session in [*broker.sessions.values()]:
        looked_at += 1
        if looked_at % PAUSE == 0:
            yield None
        if not fnmatchcase(session.client_id, client):
            continue
        for written, subscription in [*session.subscriptions.items()]:
            looked_at += 1
            if looked_at % PAUSE == 0:
                yield None
            found = _subscribed(session, written, subscription)
            if (topic is None or matches(found.filter, topic)) and (found.condition or not with_condition):
                yield found


def _subscribed(session: Session, written: str, subscription: ActiveSubscription) -> ListedSubscription:
    group, bare = split_share(written)
    condition = ""
    if isinstance(subscription, ConditionalSubscription):
        bare, condition = subscription.filter, subscription.predicate.text
    return ListedSubscription(
        client=session.client_id,
        written=written,
        filter=bare,
        group=group or "",
        condition=condition,
        qos=subscription.options.qos,
        no_local=subscription.options.no_local,
        identifier=subscription.identifier,
        is_connected=session.connection is not None,
    )


def retained(broker: Broker, now: float, *, filter_: str = "#") -> Iterator[ListedRetained | None]:
    """Retained messages whose topic matches a filter; those of ``$SYS`` only where it says so."""
    for message in broker.retained.match(filter_):
        yield None if message is None else _kept(message, now)


def _kept(message: Message, now: float) -> ListedRetained:
    return ListedRetained(
        topic=message.topic.decode(),
        qos=message.qos,
        level=message.level,
        payload_bytes=len(message.payload),
        payload=message.payload[:SHOWN_BYTES],
        publisher=message.origin.client,
        left_s=None if message.expires is None else max(0.0, message.expires - now),
    )
