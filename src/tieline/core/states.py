"""What may follow what: the states of connections, sessions and QoS 1 and 2 exchanges, as tables.

Everything that is legal stands in a table here, and only here; whatever is missing from it cannot happen.  A step of
our own that is missing raises :class:`Illegal`, which is a bug; a packet that is missing is the client's fault, and
raises a Violation with the clause that it breaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

from tieline.wire.errors import Violation
from tieline.wire.packet_type import PacketType


class Illegal(Exception):
    """A step that no table has: a bug of ours."""


class State(StrEnum):
    """How far a connection has come."""

    OPENED = "opened"  # nothing but CONNECT is legal
    CONNECTED = "connected"  # everything but CONNECT is legal
    CLOSING = "closing"  # nothing is read any more; what is queued for writing goes out first


class Presence(StrEnum):
    """Whether somebody speaks for a session."""

    NEW = "new"  # nobody has yet
    ATTACHED = "attached"  # a connection does
    AWAY = "away"  # its client may come back; what may wait for it does
    ENDED = "ended"  # nothing is kept any more


class Phase(StrEnum):
    """How far one of our packet ids has come."""

    SENT_QOS_1 = "sent with QoS 1"  # PUBACK ends it
    SENT_QOS_2 = "sent with QoS 2"  # PUBREC says that the client has it
    RELEASED = "released"  # PUBCOMP ends it
    FREE = "free"


CONNECTION: Final[Mapping[State, frozenset[State]]] = {
    State.OPENED: frozenset({State.CONNECTED, State.CLOSING}),
    State.CONNECTED: frozenset({State.CLOSING}),
    State.CLOSING: frozenset(),
}

SESSION: Final[Mapping[Presence, frozenset[Presence]]] = {
    # a restored session begins with its client away
    Presence.NEW: frozenset({Presence.ATTACHED, Presence.AWAY}),
    Presence.ATTACHED: frozenset({Presence.AWAY}),
    Presence.AWAY: frozenset({Presence.ATTACHED, Presence.ENDED}),
    Presence.ENDED: frozenset(),
}

#: What the answers of a client do to one of our packet ids.
OUTBOUND: Final[Mapping[Phase, Mapping[PacketType, Phase]]] = {
    Phase.SENT_QOS_1: {PacketType.PUBACK: Phase.FREE},
    Phase.SENT_QOS_2: {PacketType.PUBREC: Phase.RELEASED},
    # the client may say again that it has the message: PUBREL is said again, too
    Phase.RELEASED: {PacketType.PUBREC: Phase.RELEASED, PacketType.PUBCOMP: Phase.FREE},
    # answered twice, or from before a restart: harmless
    Phase.FREE: {PacketType.PUBACK: Phase.FREE, PacketType.PUBREC: Phase.FREE, PacketType.PUBCOMP: Phase.FREE},
}

#: The clause that each answer breaks where it is not in the table.
_CLAUSES: Final = {
    PacketType.PUBACK: "MQTT-4.3.3-3",
    PacketType.PUBREC: "MQTT-4.3.2-3",
    PacketType.PUBCOMP: "MQTT-4.3.3-5",
}

S = TypeVar("S", State, Presence)


def step(table: Mapping[S, frozenset[S]], before: S, after: S) -> S:
    """The state after a step of our own; raises :class:`Illegal` if there is no such step."""
    if after not in table[before]:
        raise Illegal(f"{type(before).__name__} cannot go from {before.value} to {after.value}")
    return after


def answered(phase: Phase, packet: PacketType, packet_id: int) -> Phase:
    """What a client's answer makes of one of our packet ids; raises Violation if it is not the answer to that."""
    after = OUTBOUND[phase].get(packet)
    if after is None:
        raise Violation(f"{packet.name} for message {packet_id}, which is {phase.value}", _CLAUSES[packet])
    return after
