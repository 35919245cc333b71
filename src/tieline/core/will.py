"""Wills: what is published when a connection ends without a farewell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.deliver import deliver
from tieline.core.message import Message
from tieline.core.publish import keep_retained
from tieline.wire.properties import Properties, encode_properties
from tieline.wire.varint import decode_varint

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.session import Session

#: Will properties that travel with the published message (3.1.3.2); the delay and the expiry do not travel as they are.
_FORWARDED = ("payload_format_indicator", "content_type", "response_topic", "correlation_data", "user_property")


def schedule(broker: Broker, session: Session, now: float) -> None:
    """The connection is gone: publish the will now, or after its delay, but no later than the session's end."""
    will = session.will
    if will is None:
        return
    delay = min(will.properties.get("will_delay_interval", 0), session.expiry_s)
    if not delay:
        publish(broker, session, now)
    else:
        # [MQTT-3.1.3-9] a reconnection before the delay is over cancels it
        session.will_timer = broker.timers.at(now + delay, lambda due: publish(broker, session, due))


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
    topic = will.topic.encode()
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
    if will.retain:
        # [MQTT-3.1.2-15]
        keep_retained(broker, message, now)
    deliver(broker, message, route, now)
