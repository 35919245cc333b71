"""Acknowledgements: the QoS 1 and QoS 2 conversations in both directions.

Packet ids are two spaces: ``session.inflight`` holds ours, ``session.inbound`` theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.wire.codec import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Pubcomp, Pubrel
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.message import Message
    from tieline.core.session import Session
    from tieline.wire.packets import Puback, Pubrec

_FAILURE = 0x80


def _session(conn: Connection) -> Session:
    assert conn.session is not None
    return conn.session


def _settle(broker: Broker, conn: Connection, session: Session, packet_id: int) -> None:
    """An exchange of ours is over: its id and its place in the window are free."""
    flight = session.inflight.pop(packet_id)
    if flight is not None:
        landed(broker, session, flight[0])
    if conn.quota < conn.window:
        # [MQTT-4.9.0-2] the quota never exceeds what CONNECT granted
        conn.quota += 1
    settled(broker, session, packet_id)


def _reject(broker: Broker, session: Session, message: Message, now: float) -> None:
    """The client does not want what it was sent."""
    session.dropped += 1
    broker.account.drop(
        now,
        Drop.REJECTED,
        session.client_id,
        message.topic,
        queued=len(session.queue),
        level=message.level,
        since=message.at,
    )


def landed(broker: Broker, session: Session, message: Message) -> None:
    """A message is no longer kept for sending it again: its bytes are free."""
    session.queue.sent_bytes -= message.size
    broker.queued_bytes -= message.size


def settled(broker: Broker, session: Session, packet_id: int) -> None:
    """Let the store know that one of our packet ids is free."""
    if session.is_kept:
        broker.journal.settled(session, packet_id)


def on_puback(broker: Broker, conn: Connection, packet: Puback, now: float) -> None:
    """QoS 1: the client has the message, or says why not."""
    session = _session(conn)
    if packet.packet_id not in session.inflight:
        return  # answered twice, or from before a restart: harmless
    flight = session.inflight[packet.packet_id]
    if flight is None or flight[2] != 1:
        raise Violation(f"PUBACK for the QoS 2 message {packet.packet_id}", "MQTT-4.3.3-3")
    if packet.reason >= _FAILURE:
        # [MQTT-4.4.0-2], [MQTT-4.8.2-6]: not sent again, and to nobody else
        _reject(broker, session, flight[0], now)
    _settle(broker, conn, session, packet.packet_id)


def on_pubrec(broker: Broker, conn: Connection, packet: Pubrec, now: float) -> None:
    """QoS 2, first half: the client has the message; PUBREL follows."""
    session = _session(conn)
    packet_id = packet.packet_id
    if packet_id not in session.inflight:
        if packet.reason < _FAILURE:
            # [MQTT-4.3.3-4] answered all the same, so that the client can finish
            conn.say(_release(conn, packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND))
        return
    flight = session.inflight[packet_id]
    if flight is not None and flight[2] != 2:
        raise Violation(f"PUBREC for the QoS 1 message {packet_id}", "MQTT-4.3.2-3")
    if packet.reason >= _FAILURE:
        # [MQTT-4.3.3-4] no PUBREL after a refusal
        if flight is not None:
            _reject(broker, session, flight[0], now)
        _settle(broker, conn, session, packet_id)
        return
    # moved to the end: PUBREL is sent again in the order in which PUBREC came ([MQTT-4.6.0-4])
    del session.inflight[packet_id]
    session.inflight[packet_id] = None
    if flight is not None:
        landed(broker, session, flight[0])
    if session.is_kept:
        broker.journal.received(session, packet_id)
        # after a crash a message whose PUBREC was forgotten is sent again: the client must still know its packet id
        broker.journal.acknowledge(conn, _release(conn, packet_id, Reason.SUCCESS))
    else:
        conn.say(_release(conn, packet_id, Reason.SUCCESS))


def on_pubcomp(broker: Broker, conn: Connection, packet: Pubcomp, now: float) -> None:  # noqa: ARG001
    """QoS 2, second half: the exchange is over."""
    session = _session(conn)
    if packet.packet_id not in session.inflight:
        return
    if session.inflight[packet.packet_id] is not None:
        raise Violation(f"PUBCOMP before PUBREC for message {packet.packet_id}", "MQTT-4.3.3-5")
    _settle(broker, conn, session, packet.packet_id)


def on_pubrel(broker: Broker, conn: Connection, packet: Pubrel, now: float) -> None:  # noqa: ARG001
    """QoS 2 from the client: its packet id is free again."""
    session = _session(conn)
    reason = Reason.SUCCESS
    if packet.packet_id in session.inbound:
        session.inbound.discard(packet.packet_id)
        if session.is_kept:
            broker.journal.freed(session, packet.packet_id)
    else:
        reason = Reason.PACKET_IDENTIFIER_NOT_FOUND
    # [MQTT-4.3.3-11]
    if reason is Reason.SUCCESS or conn.version == 4:
        answer = b"\x70\x02" + packet.packet_id.to_bytes(2, "big")
    else:
        answer = encode(Pubcomp(packet_id=packet.packet_id, reason=reason), 5)
    broker.journal.acknowledge(conn, answer)


def _release(conn: Connection, packet_id: int, reason: Reason) -> bytes:
    if reason is Reason.SUCCESS or conn.version == 4:
        return b"\x62\x02" + packet_id.to_bytes(2, "big")
    return encode(Pubrel(packet_id=packet_id, reason=reason), 5)
