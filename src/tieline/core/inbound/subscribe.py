"""SUBSCRIBE and UNSUBSCRIBE: each filter is granted or refused on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tieline.conf.schema import bound
from tieline.core.inbound.patience import asked_patience
from tieline.core.inbound.subscription_request import WHERE, Wish, read_wish
from tieline.core.outbound.replay import begin, note_unfinished, refill
from tieline.core.ports import Refused
from tieline.core.routing.conditional import Asking
from tieline.core.routing.routes import weight_of
from tieline.core.session import Held
from tieline.wire.codec import encode
from tieline.wire.errors import ProtocolError, Violation
from tieline.wire.packets import Suback, Subscription, Unsuback
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_filter

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.session import Session
    from tieline.wire.packets import Subscribe, Unsubscribe


#: What one filter counts towards the work of a turn, and one condition.
WORK_PER_FILTER = 10
WORK_PER_CONDITION = 100


def on_subscribe(broker: Broker, conn: Connection, packet: Subscribe, now: float) -> None:
    """Grant what can be granted, answer with one code per filter, then send what was retained."""
    session = conn.session
    assert session is not None
    _check_answer_fits(conn, len(packet.subscriptions))
    if "user_property" in packet.properties:
        asked = packet.properties["user_property"]
        session.patience = asked_patience(broker.settings.priority, asked, session.patience)
        if session.patience is not None and session.backlog is not None:
            session.backlog.policy.heed(session.patience)
        if session.is_kept:
            broker.journal.session(session)
    broker.routes.work += len(packet.subscriptions) * WORK_PER_FILTER
    identifiers = packet.properties.get("subscription_identifier")
    identifier = identifiers[0] if identifiers else 0
    conditions = [text for name, text in packet.properties.get("user_property", ()) if name == WHERE]
    question_mark = broker.settings.content.question_mark == "on"
    wishes = [read_wish(wish, conditions, question_mark=question_mark) for wish in packet.subscriptions]
    # verdicts first: a pending one stops here, before anything has changed
    refusals = [_may_subscribe(broker, conn, wish, now) for wish in wishes]
    reasons: list[int] = []
    texts: list[str] = []
    for wanted, verdict in zip(wishes, refusals, strict=True):
        wish = wanted.options
        refusal = verdict
        if refusal is None and wish.filter not in session.subscriptions:
            refusal = _has_room(broker, conn, session, wish)
        if refusal is None:
            reasons.append(_grant(broker, session, wanted, identifier, conditions))
        else:
            reasons.append(refusal.reason)
            broker.account.refusals[refusal.reason.name.lower()] += 1
            texts.append(f"{wish.filter[:64]}: {refusal.rule}")
    if texts:
        names = sorted({Reason(reason).name.lower() for reason in reasons if reason >= Reason.UNSPECIFIED_ERROR})
        broker.tell_refusal(conn, f"SUBSCRIBE: {', '.join(names)}: {texts[0]}", now, why=names[0])
    # [MQTT-3.8.4-1], [MQTT-3.8.4-6]: one code for each filter, in order
    answer = _suback(conn, packet.packet_id, tuple(reasons), texts)
    if session.is_kept:
        broker.journal.acknowledge(conn, answer)
    else:
        conn.say(answer)
    if broker.chronicle is not None:
        for wish, reason in zip(packet.subscriptions, reasons, strict=True):
            broker.chronicle.happened(now, "subscribe", session.client_id, wish.filter, reason=reason)
    broker.retained.expire(now)
    if session.replays:
        refill(broker, session, now)
        if session.is_kept:
            note_unfinished(broker, session)


def _check_answer_fits(conn: Connection, filters: int) -> None:
    """[MQTT-3.1.2-24]: a client whose maximum packet size is below one code per filter cannot be answered."""
    # type, up to four bytes of length, packet id, no properties, one code per filter
    if filters + 8 > conn.max_packet:
        raise Violation("the answer is larger than the client allows", "MQTT-3.1.2-24", Reason.PACKET_TOO_LARGE)


def _grant(broker: Broker, session: Session, wanted: Wish, identifier: int, conditions: Sequence[str]) -> int:
    """Add or replace one subscription; the QoS granted."""
    wish, share, filter_ = wanted.options, wanted.share, wanted.filter
    if wish.qos > broker.settings.mqtt.maximum_qos:
        # [MQTT-3.2.2-9] granted with what we have
        wish.qos = broker.settings.mqtt.maximum_qos
    held, asking = Held(wish, identifier), None
    if wanted.predicate is not None:
        held = asking = Asking(wish, identifier, session, share, filter_, wanted.predicate, broker.memory)
        broker.routes.work += WORK_PER_CONDITION
    old = session.subscriptions.get(wish.filter)
    is_new = old is None
    if old is None:
        session.weight += weight_of(wish.filter)
    elif asking is not None or isinstance(old, Asking):
        broker.routes.cancel(session, wish.filter, old)
    broker.routes.subscribe(session, share, filter_, held)
    # [MQTT-3.8.4-3] an existing subscription is replaced
    session.subscriptions[wish.filter] = held
    held.conditions = tuple(conditions)
    if session.is_kept:
        broker.journal.subscribed(session, held)
    # [MQTT-3.3.1-9], [MQTT-3.3.1-10], [MQTT-3.3.1-11]; nothing retained for shared ones (4.8.2)
    session.replays.pop(wish.filter, None)
    if share is None and (wish.retain_handling == 0 or (wish.retain_handling == 1 and is_new)) and len(broker.retained):
        begin(broker, session, held, filter_)
    return wish.qos


def _may_subscribe(broker: Broker, conn: Connection, wish: Wish, now: float) -> Refused | None:
    """Why a filter is refused, as far as rules and abilities go; None when it is not."""
    mqtt = broker.settings.mqtt
    share, filter_ = wish.share, wish.filter
    if wish.refusal is not None:
        return wish.refusal
    try:
        check_filter(filter_ if share is None else f"$share/{share}/{filter_}", conn.allowance.topic_levels)
    except ProtocolError as error:
        if conn.version == 4 and not error.clause.startswith("4.7.3"):
            raise  # 3.1.1: a filter that breaks the rules is a protocol violation
        return Refused(str(error), Reason.TOPIC_FILTER_INVALID)
    if share is not None and not mqtt.shared_available:
        return Refused("shared subscriptions are switched off", Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED)
    if not mqtt.wildcard_available and ("+" in filter_ or "#" in filter_):
        return Refused("wildcards are switched off", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED)
    if broker.access.is_open:
        return None
    verdict = broker.ask(conn, "subscribe", filter_, now)
    return verdict if isinstance(verdict, Refused) else None


def _has_room(broker: Broker, conn: Connection, session: Session, wish: Subscription) -> Refused | None:
    limits = broker.settings.limits
    weight = weight_of(wish.filter)
    most = conn.allowance.subscriptions
    if session.weight + weight > most:
        return Refused(f"a session may have {most} subscriptions", Reason.QUOTA_EXCEEDED)
    if broker.routes.weight + weight > bound(limits.subscriptions_total):
        return Refused(f"the broker keeps {limits.subscriptions_total} subscriptions", Reason.QUOTA_EXCEEDED)
    return None


def on_unsubscribe(broker: Broker, conn: Connection, packet: Unsubscribe, now: float) -> None:
    """Remove subscriptions; what is already queued is still delivered."""
    session = conn.session
    assert session is not None
    _check_answer_fits(conn, len(packet.filters))
    broker.routes.work += len(packet.filters) * WORK_PER_FILTER
    reasons: list[int] = []
    for filter_ in packet.filters:
        # [MQTT-3.10.4-1] compared character by character
        held = session.subscriptions.pop(filter_, None)
        if held is None:
            reasons.append(Reason.NO_SUBSCRIPTION_EXISTED)
            continue
        broker.routes.cancel(session, filter_, held)
        session.weight -= weight_of(filter_)
        # [MQTT-3.10.4-2] nothing new is added; what is queued is still delivered
        session.replays.pop(filter_, None)
        reasons.append(Reason.SUCCESS)
        if session.is_kept:
            broker.journal.unsubscribed(session, filter_)
    # [MQTT-3.10.4-4], [MQTT-3.10.4-5]
    answer = encode(Unsuback(packet_id=packet.packet_id, reasons=tuple(reasons)), conn.version)
    if session.is_kept:
        broker.journal.acknowledge(conn, answer)
    else:
        conn.say(answer)
    if broker.chronicle is not None:
        for filter_, reason in zip(packet.filters, reasons, strict=True):
            broker.chronicle.happened(now, "unsubscribe", session.client_id, filter_, reason=int(reason))


def _suback(conn: Connection, packet_id: int, reasons: tuple[int, ...], texts: list[str]) -> bytes:
    properties: Properties = {}
    if texts and conn.version == 5 and conn.problem_information:
        properties["reason_string"] = "; ".join(texts)[:1_024]
    data = encode(Suback(packet_id=packet_id, reasons=reasons, properties=properties), conn.version)
    if properties and len(data) > conn.max_packet:
        # [MQTT-3.9.2-1] no reason string if the packet became too large by it
        data = encode(Suback(packet_id=packet_id, reasons=reasons), conn.version)
    return data
