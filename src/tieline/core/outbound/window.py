"""The in-flight window of a session: which of our packet ids are in use, for what, and how far each has come.

A message that was sent with QoS 1 or 2 is kept until the client has acknowledged it, because it may have to be sent
again; until then its bytes count as those of a waiting one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tieline.core.client import Connection, Session
from tieline.core.durable.journal import Journal
from tieline.core.message import Message
from tieline.core.receiver import Flight, Grant
from tieline.core.states import Phase, answered
from tieline.wire.packet_type import PacketType


class Window:
    """Takes and frees packet ids; nothing else changes ``session.inflight``."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def take(
        self, session: Session, conn: Connection, message: Message, grant: Grant, packet_id: int, qos: int
    ) -> None:
        """A message goes out under a packet id."""
        session.inflight[packet_id] = (message, grant, qos)
        conn.quota -= 1
        session.queue.keep_sent(message.size)
        if session.is_kept:
            self._journal.sent(session, message, grant, packet_id)

    def restore(self, session: Session, packet_id: int, flight: Flight) -> None:
        """A packet id was in use when the broker ended."""
        session.inflight[packet_id] = flight
        session.last_id = packet_id
        if flight is not None:
            session.queue.keep_sent(flight[0].size)

    @staticmethod
    def phase(session: Session, packet_id: int) -> Phase:
        """How far a packet id has come."""
        if packet_id not in session.inflight:
            return Phase.FREE
        flight = session.inflight[packet_id]
        if flight is None:
            return Phase.RELEASED
        return Phase.SENT_QOS_1 if flight[2] == 1 else Phase.SENT_QOS_2

    def answer(self, session: Session, packet: PacketType, packet_id: int) -> tuple[Phase, Phase]:
        """How far a packet id had come, and how far this answer brings it; raises Violation if it does not fit."""
        before = self.phase(session, packet_id)
        return before, answered(before, packet, packet_id)

    def settle(self, session: Session, conn: Connection, packet_id: int) -> None:
        """An exchange is over: its id and its place in the window are free."""
        flight = session.inflight.pop(packet_id)
        if flight is not None:
            session.queue.forget_sent(flight[0].size)
        if conn.quota < conn.window:
            # [MQTT-4.9.0-2] the quota never exceeds what CONNECT granted
            conn.quota += 1
        if session.is_kept:
            self._journal.settled(session, packet_id)

    def receive(self, session: Session, packet_id: int) -> None:
        """The client has a QoS 2 message: only its packet id is kept."""
        # moved to the end: PUBREL is sent again in the order in which PUBREC came ([MQTT-4.6.0-4])
        flight = session.inflight.pop(packet_id)
        session.inflight[packet_id] = None
        if flight is not None:
            session.queue.forget_sent(flight[0].size)
        if session.is_kept:
            self._journal.received(session, packet_id)

    def withdraw(self, session: Session, packet_id: int) -> None:
        """What had a packet id cannot be sent after all: the id is free."""
        flight = session.inflight.pop(packet_id)
        if flight is not None:
            session.queue.forget_sent(flight[0].size)
        if session.is_kept:
            self._journal.settled(session, packet_id)

    @staticmethod
    def clear(session: Session) -> Iterator[tuple[Message, Grant, int]]:
        """Free all packet ids; what was sent and not acknowledged, oldest first."""
        flights = [flight for flight in session.inflight.values() if flight is not None]
        session.inflight.clear()
        for flight in flights:
            session.queue.forget_sent(flight[0].size)
        yield from flights
