"""Acknowledgements: the QoS 1 and QoS 2 conversations in both directions.

Packet ids are two spaces: ``session.inflight`` holds ours, ``session.inbound`` theirs.
"""

from __future__ import annotations

from tieline.core.account import Drop
from tieline.core.client import Connection, Session
from tieline.core.durable.journal import Journal
from tieline.core.outbound.window import Window
from tieline.core.states import Phase
from tieline.wire.encode import encode
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Puback, Pubcomp, Pubrec, Pubrel
from tieline.wire.reason import Reason

_FAILURE = 0x80


class Acknowledging:
    """Handles the packets that answer a PUBLISH, and each other."""

    __slots__ = ("_journal", "_window")

    def __init__(self, window: Window, journal: Journal) -> None:
        self._window = window
        self._journal = journal

    def acknowledge(self, session: Session, conn: Connection, packet_id: int) -> bool:
        """The short way for a PUBACK without a reason: False if it is not the answer to a QoS 1 message."""
        flight = session.inflight.get(packet_id)
        if flight is None or flight[2] != 1:
            return False
        self._window.settle(session, conn, packet_id)
        return True

    def on_puback(self, conn: Connection, packet: Puback, now: float) -> None:
        """QoS 1: the client has the message, or says why not."""
        session = _session(conn)
        before, _ = self._window.answer(session, PacketType.PUBACK, packet.packet_id)
        if before is not Phase.FREE:
            if packet.reason >= _FAILURE:
                # [MQTT-4.4.0-2], [MQTT-4.8.2-6]: not sent again, and to nobody else
                self._reject(session, packet.packet_id, now)
            self._window.settle(session, conn, packet.packet_id)

    def on_pubrec(self, conn: Connection, packet: Pubrec, now: float) -> None:
        """QoS 2, first half: the client has the message; PUBREL follows."""
        session = _session(conn)
        packet_id = packet.packet_id
        before, _ = self._window.answer(session, PacketType.PUBREC, packet_id)
        if before is Phase.FREE:
            if packet.reason < _FAILURE:
                # [MQTT-4.3.3-4] answered all the same, so that the client can finish
                conn.say(_release(conn, packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND))
        elif packet.reason >= _FAILURE:
            # [MQTT-4.3.3-4] no PUBREL after a refusal
            self._reject(session, packet_id, now)
            self._window.settle(session, conn, packet_id)
        else:
            self._window.receive(session, packet_id)
            answer = _release(conn, packet_id, Reason.SUCCESS)
            if session.is_kept:
                # after a crash a message whose PUBREC was forgotten is sent again: the client must still know its id
                self._journal.acknowledge(conn, answer)
            else:
                conn.say(answer)

    def on_pubcomp(self, conn: Connection, packet: Pubcomp, now: float) -> None:
        """QoS 2, second half: the exchange is over."""
        session = _session(conn)
        before, _ = self._window.answer(session, PacketType.PUBCOMP, packet.packet_id)
        if before is not Phase.FREE:
            self._window.settle(session, conn, packet.packet_id)

    def on_pubrel(self, conn: Connection, packet: Pubrel, now: float) -> None:
        """QoS 2 from the client: its packet id is free again."""
        session = _session(conn)
        reason = Reason.SUCCESS
        if packet.packet_id in session.inbound:
            session.free_id(packet.packet_id)
            if session.is_kept:
                self._journal.freed(session, packet.packet_id)
        else:
            reason = Reason.PACKET_IDENTIFIER_NOT_FOUND
        # [MQTT-4.3.3-11]
        if reason is Reason.SUCCESS or conn.version == 4:
            answer = b"\x70\x02" + packet.packet_id.to_bytes(2, "big")
        else:
            answer = encode(Pubcomp(packet_id=packet.packet_id, reason=reason), 5)
        self._journal.acknowledge(conn, answer)

    def _reject(self, session: Session, packet_id: int, now: float) -> None:
        """The client does not want what it was sent."""
        flight = session.inflight[packet_id]
        if flight is not None:
            session.turn_away(flight[0], Drop.REJECTED, now)


def _session(conn: Connection) -> Session:
    assert conn.session is not None
    return conn.session


def _release(conn: Connection, packet_id: int, reason: Reason) -> bytes:
    if reason is Reason.SUCCESS or conn.version == 4:
        return b"\x62\x02" + packet_id.to_bytes(2, "big")
    return encode(Pubrel(packet_id=packet_id, reason=reason), 5)
