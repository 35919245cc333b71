"""Wills: what is published when a connection ends without a farewell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.inbound.publish import keep_retained
from tieline.core.message import Message
from tieline.core.outbound.deliver import deliver
from tieline.wire.properties import Properties, encode_properties
from tieline.wire.varint import decode_varint

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.session import Session

#: Will properties that travel with the published message (3.1.3.2); the delay and the expiry do not travel as they are.
_FORWARDED = ("payload_format_indicator", "content_type", "response_topic", "correlation_data", "user_property")


def schedule(broker: Broker, session: Session, now: float) -> None:
    """The connection is gone: publish the will now, or after its delay, but no later than the session's end."""
    if is_delayed(session):
        defer(broker, session, now)
    else:
        publish(broker, session, now)


def is_delayed(session: Session) -> bool:
    """Whether the session has a will that is not published at once."""
    return session.will is not None and min(session.will.properties.get("will_delay_interval", 0), session.expiry_s) > 0


def defer(broker: Broker, session: Session, left: float) -> None:
    """Publish the will when its delay is over, counted from when the client left.

    [MQTT-3.1.3-9]: a reconnection before cancels it.
    """
    assert session.will is not None
    delay = min(session.will.properties.get("will_delay_interval", 0), session.expiry_s)
    session.will_timer = broker.timers.at(left + delay, lambda due: publish(broker, session, due))


def forget(broker: Broker, session: Session) -> None:
    """[MQTT-3.1.2-10]: after DISCONNECT, or once a new connection has taken over, the will is not published."""
    session.will = None
    broker.timers.cancel(session.will_timer)
    session.will_timer = None


def publish(broker: Broker, session: Session, now: float) -> None:
    """[MQTT-3.1.2-8]: publish the will, once."""
    will = session.will
    if will is None:
        return
    forget(broker, session)
    if session.is_known:
        broker.journal.session(session)
    topic = will.topic.encode()
    judge = broker.routes.judge
    if judge is not None and not judge.may("write", session.user, session.client_id, will.topic):
        # it was allowed when the client connected; the rules have changed since
        broker.account.drop(now, Drop.DENIED, session.client_id, topic)
        return
    kept: Properties = {}
    for name in _FORWARDED:
        if name in will.properties:
            kept[name] = will.properties[name]  # type: ignore[literal-required]
    encoded = encode_properties(kept)
    _, start = decode_varint(encoded, 0, len(encoded))
    expiry = will.properties.get("message_expiry_interval")
    route = broker.routes.known.get(topic) or broker.routes.find(will.topic, topic)
    level = route.level if route.level >= 0 else broker.default_level
    message = Message(
        topic,
        will.payload,
        will.qos,
        retain=will.retain,
        properties=encoded[start:],
        expires=None if expiry is None else now + expiry,
        publisher=session.client_id,
        level=level,
        at=now,
        heat=broker.heat(route, 1, now),
        taxon=level,
    )
    if broker.witness is not None:
        broker.witness.message(session, message)
    if will.retain:
        # [MQTT-3.1.2-15]
        keep_retained(broker, message, now)
    deliver(broker, message, route, now)
