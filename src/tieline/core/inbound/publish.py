"""A message arrives: is it allowed, where does it go, what is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.connection import Hold
from tieline.core.errors import Again
from tieline.core.inbound.producers import RULE, Malformed, is_out_of_turn, read_once, stop
from tieline.core.message import Message
from tieline.core.outbound.deliver import deliver, find_full
from tieline.core.ports import Refused
from tieline.core.routing.classes import claimed_level
from tieline.core.routing.content_match import narrow
from tieline.sched.levels import URGENT
from tieline.wire.codec import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Puback, Pubrec
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_name

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.inbound.producers import Once
    from tieline.core.routing.routes import Route
    from tieline.core.session import Session
    from tieline.wire.packets import Publish

#: Topics that only the broker publishes (4.7.2).
RESERVED = "$SYS/"
#: Topics remembered per connection as allowed; a client that publishes to more is asked about again.
MAX_PUBLISHABLE = 10_000


def on_publish(broker: Broker, conn: Connection, packet: Publish, now: float, header_level: int | None = None) -> None:
    """Handle a PUBLISH that the fast path left alone; ``header_level`` is what the extra header byte says."""
    session = conn.session
    assert session is not None
    _check_abilities(broker, packet)
    topic, key = _resolve_topic(broker, conn, packet)
    if packet.qos == 2 and packet.packet_id in session.inbound:
        # [MQTT-4.3.3-10]: a message we already have; only the answer is repeated
        broker.account.refusals["packet_identifier_in_use"] += 1
        broker.journal.acknowledge(conn, _answer(conn, 2, packet.packet_id, Reason.SUCCESS, ""))
        broker.account.publishes_in += 1
        return
    route = broker.routes.known.get(key)
    if route is None:
        check_name(topic, broker.settings.limits.topic_levels)
        route = broker.routes.find(topic, key)
    refusal = _may_publish(broker, conn, topic, key, now)
    if refusal is not None:
        broker.account.drop(now, Drop.DENIED, session.client_id, key)
        _refuse(broker, conn, packet, refusal)
        broker.account.publishes_in += 1
        return
    level = _level(broker, conn, packet, route, header_level)
    if level is None:
        broker.account.drop(now, Drop.UNKNOWN_LEVEL, session.client_id, key)
        _refuse(broker, conn, packet, Refused("the priority is no level", Reason.IMPLEMENTATION_SPECIFIC_ERROR))
        broker.account.publishes_in += 1
        return
    if not broker.claims.is_open:
        level = broker.claims.judge(conn, topic, level, 1, now)
    bound = broker.classes.max_packet[level]
    if bound is not None and len(key) + len(packet.payload) + len(packet.forward) > bound:
        broker.account.drop(now, Drop.CLASS_TOO_LARGE, session.client_id, key, level=level)
        text = f"messages of class {broker.classes.names[level]} have at most {bound} bytes"
        _refuse(broker, conn, packet, Refused(text, Reason.QUOTA_EXCEEDED))
        broker.account.publishes_in += 1
        return
    once: Once | None = None
    if packet.properties and packet.qos:
        try:
            once = read_once(packet.properties, session.user)
        except Malformed:
            broker.account.drop(now, Drop.MALFORMED_ONCE, session.client_id, key, level=level)
            _refuse(broker, conn, packet, Refused(RULE, Reason.IMPLEMENTATION_SPECIFIC_ERROR))
            broker.account.publishes_in += 1
            return
        if once is not None and not _is_due(broker, conn, packet, once, key, level, now):
            broker.account.publishes_in += 1
            return
    if level == URGENT:
        conn.urgent_at = now
    expiry = packet.properties.get("message_expiry_interval")
    message = Message(
        key,
        packet.payload,
        packet.qos,
        retain=packet.retain,
        properties=packet.forward,
        expires=None if expiry is None else now + expiry,
        publisher=session.client_id,
        level=level,
        at=now,
        heat=broker.heat(route, 1, now),
        taxon=route.level if route.level >= 0 else broker.default_level,
    )
    is_taken = accept(broker, conn, message, route, packet.packet_id, now, dup=packet.dup, once=once)
    if once is not None and not is_taken:
        stop(conn, once)
    # last: a packet that has to wait is parsed again, and counts once
    broker.account.received_by_level[level] += 1
    broker.account.publishes_in += 1


def _is_due(  # as above
    broker: Broker, conn: Connection, packet: Publish, once: Once, key: bytes, level: int, now: float
) -> bool:
    """Whether a numbered message is to be accepted now; if not, it is answered."""
    session = conn.session
    assert session is not None
    if broker.producers.has(once):
        broker.account.drop(now, Drop.REPEATED, session.client_id, key, level=level)
        if packet.qos == 2:
            _check_receive_maximum(broker, conn, session)
            _hold(broker, session, packet.packet_id)
        # when what was accepted before is permanent, and not earlier
        broker.journal.acknowledge(conn, _answer(conn, packet.qos, packet.packet_id, Reason.SUCCESS, ""))
        return False
    if is_out_of_turn(conn, once):
        broker.account.drop(now, Drop.OUT_OF_TURN, session.client_id, key, level=level)
        text = "an earlier number of this producer was refused and comes first"
        _refuse(broker, conn, packet, Refused(text, Reason.QUOTA_EXCEEDED))
        return False
    return True


def accept(  # the hot path's own arguments
    broker: Broker,
    conn: Connection,
    message: Message,
    route: Route,
    packet_id: int,
    now: float,
    *,
    dup: bool = False,
    once: Once | None = None,
) -> bool:
    """Take responsibility for a valid message: keep it if retained, queue it for its receivers, acknowledge it.

    False if it was refused for want of room.
    """
    qos = message.qos
    session = conn.session
    assert session is not None
    is_sifted = route.is_sifted
    if is_sifted:
        route = narrow(broker, message, route)
    is_volatile = broker.journal.is_volatile
    noted = 0 if is_volatile else broker.journal.noted
    if qos:
        if qos == 2 or conn.unacknowledged:
            _check_receive_maximum(broker, conn, session)
        if broker.journal.trouble:
            _meet_trouble(broker, conn, message, packet_id, now)
            return False
        if broker.refuses_when_full:
            full = find_full(broker, message, route)
            if full is not None:
                _meet_full_queue(broker, conn, message, packet_id, full, now)
                return False
        if once is not None:
            broker.producers.accept(once, now)
        if qos == 2 and session.is_kept:
            _take_over(broker, conn, session, message, route, packet_id, dup=dup, is_sifted=is_sifted)
            return True
    if broker.witness is not None:
        broker.witness.message(session, message, packet_id, dup=dup)
    if message.retain:
        keep_retained(broker, message, now)
    receivers = deliver(broker, message, route, now) if route.has_receivers else 0
    if not qos:
        return True
    if qos == 1 and (receivers or conn.version == 4) and is_volatile and not conn.has_header:
        # the usual end, without a detour
        conn.control.append(b"\x40\x02" + packet_id.to_bytes(2, "big"))
        conn.control_bytes += 4
        return True
    if qos == 2:
        session.inbound.add(packet_id)
    reason = Reason.SUCCESS if receivers or conn.version == 4 else Reason.NO_MATCHING_SUBSCRIBERS
    if qos == 1 and not conn.unacknowledged and broker.journal.noted == noted:
        # nothing of it has to survive, and no earlier answer waits ([MQTT-4.6.0-2])
        conn.say(_answer(conn, qos, packet_id, reason, ""))
        return True
    # [MQTT-3.3.4-1]: PUBACK for QoS 1, PUBREC for QoS 2; a QoS 2 message is counted in ``inbound`` until it is released
    broker.journal.acknowledge(conn, _answer(conn, qos, packet_id, reason, ""), counts=qos == 1)
    return True


def _take_over(  # as above
    broker: Broker,
    conn: Connection,
    session: Session,
    message: Message,
    route: Route,
    packet_id: int,
    *,
    dup: bool,
    is_sifted: bool,
) -> None:
    """QoS 2 in a session that survives us: its packet id and the message become permanent, then it is routed."""
    if broker.witness is not None:
        broker.witness.message(session, message, packet_id, dup=dup)
    _hold(broker, session, packet_id)
    is_wanted = broker.unrouted.take(message, route, is_sifted=is_sifted)
    reason = Reason.SUCCESS if is_wanted or conn.version == 4 else Reason.NO_MATCHING_SUBSCRIBERS
    broker.journal.acknowledge(conn, _answer(conn, 2, packet_id, reason, ""))


def _hold(broker: Broker, session: Session, packet_id: int) -> None:
    """A QoS 2 packet id of theirs is taken until they release it."""
    session.inbound.add(packet_id)
    if session.is_kept:
        broker.journal.held(session, packet_id)


def _level(broker: Broker, conn: Connection, packet: Publish, route: Route, header_level: int | None) -> int | None:
    """How urgent a message is: header byte, user property, topic rule, node; None when that is refused."""
    if header_level is not None:
        broker.has_levels = True
        return header_level
    level = claimed_level(packet.properties) if packet.properties else None
    if level is not None:
        if level >= 0:
            broker.has_levels = True
            return level
        broker.account.unknown_levels += 1
        if broker.settings.priority.unknown == "refuse":
            return None
    return route.level if route.level >= 0 else conn.level


def keep_retained(broker: Broker, message: Message, now: float) -> None:
    """Replace the topic's retained message, or clear it with an empty payload."""
    topic = message.topic.decode()
    if not message.payload:
        # [MQTT-3.3.1-6], [MQTT-3.3.1-7]
        broker.retained.remove(topic)
        if not broker.journal.is_volatile:
            broker.journal.cleared(message.topic)
    elif not broker.retained.put(topic, message, now):
        # [MQTT-3.3.1-5] replaced, or, without room, the old one goes: it is no longer the last value
        broker.retained.remove(topic)
        broker.account.drop(now, Drop.RETAINED_FULL, message.publisher, message.topic, level=message.level)
        if not broker.journal.is_volatile:
            broker.journal.cleared(message.topic)
    elif not broker.journal.is_volatile:
        broker.journal.retained(message)


def _check_abilities(broker: Broker, packet: Publish) -> None:
    """What a client must not send, and what the CONNACK said this server does not do."""
    if "subscription_identifier" in packet.properties:
        # [MQTT-3.3.4-6]
        raise Violation("a client's PUBLISH has a subscription identifier", "MQTT-3.3.4-6")
    if packet.qos > broker.settings.mqtt.maximum_qos:
        # [MQTT-3.2.2-11]
        raise Violation(f"QoS {packet.qos} is not supported", "MQTT-3.2.2-11", Reason.QOS_NOT_SUPPORTED)
    if packet.retain and not broker.settings.mqtt.retain_available:
        # [MQTT-3.2.2-14]
        raise Violation("retained messages are not supported", "MQTT-3.2.2-14", Reason.RETAIN_NOT_SUPPORTED)


def _resolve_topic(broker: Broker, conn: Connection, packet: Publish) -> tuple[str, bytes]:
    """The topic, from the packet or from its alias."""
    alias = packet.properties.get("topic_alias")
    if alias is None:
        return packet.topic, packet.topic.encode()
    if not 0 < alias <= broker.settings.limits.topic_alias_maximum:
        # [MQTT-3.3.2-8], [MQTT-3.3.2-9]
        raise Violation(f"topic alias {alias} is out of range", "MQTT-3.3.2-9", Reason.TOPIC_ALIAS_INVALID)
    if packet.topic:
        key = packet.topic.encode()
        conn.alias_in[alias] = key
        return packet.topic, key
    known = conn.alias_in.get(alias)
    if known is None:
        raise Violation(f"topic alias {alias} was never set", "3.3.2.3.4", Reason.PROTOCOL_ERROR)
    return known.decode(), known


def _may_publish(broker: Broker, conn: Connection, topic: str, key: bytes, now: float) -> Refused | None:
    """Why this client may not publish to a topic; None when it may."""
    if topic.startswith(RESERVED):
        return Refused("$SYS belongs to the broker")
    if not conn.is_guarded or key in conn.publishable:
        return None
    # a remembered topic may be deeper than this client's may be
    check_name(topic, conn.allowance.topic_levels)
    verdict = broker.ask(conn, "publish", topic, now)
    if isinstance(verdict, Refused):
        return verdict
    if len(conn.publishable) >= MAX_PUBLISHABLE:
        conn.publishable.clear()
    conn.publishable.add(key)
    return None


def _refuse(broker: Broker, conn: Connection, packet: Publish, refusal: Refused) -> None:
    """Tell the publisher no, where its protocol can say so; 3.1.1 gets the usual answer ([MQTT311-3.3.5-2])."""
    if packet.qos:
        reason = refusal.reason if conn.version == 5 else Reason.SUCCESS
        if packet.qos == 2 and conn.version == 4:
            assert conn.session is not None
            conn.session.inbound.add(packet.packet_id)
        broker.journal.acknowledge(conn, _answer(conn, packet.qos, packet.packet_id, reason, refusal.rule))


def _check_receive_maximum(broker: Broker, conn: Connection, session: Session) -> None:
    if conn.version == 5 and len(session.inbound) + conn.unacknowledged >= broker.settings.limits.receive_maximum:
        # [MQTT-3.3.4-7]
        text = f"more than {broker.settings.limits.receive_maximum} unacknowledged messages"
        raise Violation(text, "MQTT-3.3.4-7", Reason.RECEIVE_MAXIMUM_EXCEEDED)


def _meet_full_queue(  # as above
    broker: Broker, conn: Connection, message: Message, packet_id: int, full: Session, now: float
) -> None:
    """A receiver has no room: say so (MQTT 5), or wait for it (3.1.1 has no way to say so, or it is configured)."""
    if conn.version == 5 and broker.settings.mqtt.full == "refuse":
        broker.account.drop(now, Drop.REFUSED, full.client_id, message.topic, 1, len(full.queue), level=message.level)
        full.dropped += 1
        # where there are rules, who else is there is not every publisher's business
        text = f"the queue of {full.client_id} is full" if broker.access.is_open else "the queue of a receiver is full"
        broker.journal.acknowledge(conn, _answer(conn, message.qos, packet_id, Reason.QUOTA_EXCEEDED, text))
        return
    broker.suspend(conn, Hold.QUEUE_FULL, now, full)
    raise Again


def _meet_trouble(broker: Broker, conn: Connection, message: Message, packet_id: int, now: float) -> None:
    """The store has no room: nothing is acknowledged that is not permanent.  As with a full queue."""
    if conn.version != 5 or broker.settings.mqtt.full == "pause":
        broker.hold_for_store(conn, now)
        raise Again
    broker.account.drop(now, Drop.REFUSED, message.publisher, message.topic, level=message.level)
    answer = _answer(conn, message.qos, packet_id, Reason.QUOTA_EXCEEDED, broker.journal.trouble)
    if conn.unacknowledged:
        # [MQTT-4.6.0-2] not before the answers to earlier messages, which wait for the store
        broker.journal.acknowledge(conn, answer)
    else:
        conn.say(answer)


def _answer(conn: Connection, qos: int, packet_id: int, reason: Reason, text: str) -> bytes:
    """PUBACK or PUBREC, the short form where nothing has to be said."""
    if reason is Reason.SUCCESS or conn.version == 4:
        return (b"\x40\x02" if qos == 1 else b"\x50\x02") + packet_id.to_bytes(2, "big")
    properties: Properties = {}
    if text and conn.problem_information:
        properties["reason_string"] = text
    kind = Puback if qos == 1 else Pubrec
    data = encode(kind(packet_id=packet_id, reason=reason, properties=properties), 5)
    if len(data) > conn.max_packet:
        # [MQTT-3.4.2-2], [MQTT-3.5.2-2] no reason string if the packet became too large by it
        data = encode(kind(packet_id=packet_id, reason=reason), 5)
    return data
