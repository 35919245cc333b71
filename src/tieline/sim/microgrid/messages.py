"""What the world says: kinds of messages, their topics, levels and payloads.

The kinds are the last level of a topic, and the names of the event types in the broker's configuration::

    microgrid/<grid>/<node or device>/<kind>

A device stands where a node stands, because two event types may not claim the same topic.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

MessageKind = Literal["reading", "incident", "fault", "protection", "command"]
Deviation = Literal["dip", "swell", "interruption"]
Action = Literal["trip", "reclose", "lockout"]
Order = Literal["open", "close", "shed", "restore", "setpoint"]

#: How urgent each kind is, most urgent first; each is a class of that name in the broker's configuration.
LEVELS: Final[dict[MessageKind, int]] = {"protection": 3, "fault": 3, "command": 2, "incident": 1, "reading": 0}
#: What the broker calls a level: the first class that has it.
CLASSES: Final[dict[int, MessageKind]] = {level: kind for kind, level in reversed(LEVELS.items())}


class Message(NamedTuple):
    """One message, ready to be published."""

    #: When it leaves its meter, in seconds since 1970; what it speaks of may be earlier.
    sent_s: float
    kind: MessageKind
    topic: str
    payload: bytes
    #: Which client of the world publishes it.
    client: str


class Incident(msgspec.Struct, frozen=True):
    """A dip, swell or interruption that is over: when it began, how far the voltage went, how long it took."""

    time: float
    node: str
    kind: Deviation
    residual: float
    duration: float


class FaultReport(msgspec.Struct, frozen=True):
    """A short circuit: where, of which kind, with which current in A."""

    time: float
    node: str
    kind: str
    current: float


class Protection(msgspec.Struct, frozen=True):
    """A protection device acted; ``element`` is the function by its ANSI number (50, 79, 81R …)."""

    time: float
    device: str
    action: Action
    element: str


class Command(msgspec.Struct, frozen=True):
    """An order to a device; ``value`` is in kW where the action has one, else 0."""

    time: float
    device: str
    action: Order
    value: float = 0.0


Report = Incident | FaultReport | Protection | Command

_KINDS: Final[dict[type[Report], MessageKind]] = {
    Incident: "incident",
    FaultReport: "fault",
    Protection: "protection",
    Command: "command",
}

_encode = msgspec.json.Encoder().encode


def topic_of(grid: str, place: str, kind: MessageKind) -> str:
    """The topic of a node's, or a device's, messages of one kind."""
    return f"microgrid/{grid}/{place}/{kind}"


def message_of(grid: str, report: Report, *, sent_s: float, client: str) -> Message:
    """A report as a message."""
    kind = _KINDS[type(report)]
    place = report.node if isinstance(report, Incident | FaultReport) else report.device
    return Message(sent_s, kind, topic_of(grid, place, kind), _encode(report), client)
