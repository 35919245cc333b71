"""What speaks against a message: found without changing anything.

Whoever takes a message (:mod:`tieline.core.inbound.publish`) asks here and acts upon the answer: it counts, refuses,
closes or holds.  Whoever only wants to know what would become of a message (:mod:`tieline.core.answers.trace`) asks the
same and acts upon nothing.  Two more questions have owners of their own: who may publish is asked of
:class:`tieline.core.inbound.questions.Questions`, and :func:`tieline.wire.topics.check_name` knows what a topic is.
"""

from __future__ import annotations

from typing import NamedTuple

from tieline.conf.schema import Settings
from tieline.core.account import NO_LEVEL, Drop
from tieline.core.client import Connection
from tieline.core.durable.journal import Journal
from tieline.core.inbound.producers import RULE, MalformedNumber, Numbered, Producers, is_out_of_turn, read_number
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.ports import Refused
from tieline.core.receiver import Receiver
from tieline.core.routing.classes import UNKNOWN
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.wire.errors import Violation
from tieline.wire.packets import Publish
from tieline.wire.reason import Reason


class Objection(Exception):
    """Why a message is not taken; its publisher is told, and the connection goes on."""

    def __init__(self, why: Drop, refused: Refused, level: int = NO_LEVEL) -> None:
        super().__init__(refused.rule)
        #: The name under which it is counted.
        self.why = why
        self.refused = refused
        #: How urgent the message is, as far as that was known.
        self.level = level


class Shortage(NamedTuple):
    """Somebody has no room for a QoS 1 or 2 message."""

    text: str
    #: Whose queue is full; None where it is the store.
    receiver: Receiver | None
    #: The publisher is told (MQTT 5); otherwise it is held until there is room.
    is_told: bool


class Objections:
    """Knows everything that can speak against a message."""

    __slots__ = ("_delivery", "_journal", "_priorities", "_producers", "_refuses_when_full", "settings")

    def __init__(
        self, settings: Settings, priorities: Priorities, producers: Producers, delivery: Delivery, journal: Journal
    ) -> None:
        self.settings = settings
        self._priorities = priorities
        self._producers = producers
        self._delivery = delivery
        self._journal = journal
        self._refuses_when_full = settings.mqtt.full != "oldest"

    def to_packet(self, packet: Publish) -> Violation | None:
        """What a client must not send, and what the CONNACK said this server does not do: the connection ends."""
        if "subscription_identifier" in packet.properties:
            # [MQTT-3.3.4-6]
            return Violation("a client's PUBLISH has a subscription identifier", "MQTT-3.3.4-6")
        if packet.qos > self.settings.mqtt.maximum_qos:
            # [MQTT-3.2.2-11]
            return Violation(f"QoS {packet.qos} is not supported", "MQTT-3.2.2-11", Reason.QOS_NOT_SUPPORTED)
        if packet.retain and not self.settings.mqtt.retain_available:
            # [MQTT-3.2.2-14]
            return Violation("retained messages are not supported", "MQTT-3.2.2-14", Reason.RETAIN_NOT_SUPPORTED)
        return None

    def to_claim(self, claimed: int | None) -> Objection | None:
        """A message claims a level that is none, and that is not overlooked."""
        if claimed != UNKNOWN or not self._priorities.refuses_unknown:
            return None
        refused = Refused("the priority is no level", Reason.IMPLEMENTATION_SPECIFIC_ERROR)
        return Objection(Drop.UNKNOWN_LEVEL, refused)

    def to_size(self, size: int, level: int) -> Objection | None:
        """A message is larger than its class may be: topic, payload and what goes on of its properties."""
        classes = self._priorities.classes
        bound = classes.max_packet[level]
        if bound is None or size <= bound:
            return None
        text = f"messages of class {classes.names[level]} have at most {bound} bytes"
        return Objection(Drop.CLASS_TOO_LARGE, Refused(text, Reason.QUOTA_EXCEEDED), level)

    @staticmethod
    def number_of(packet: Publish, user: str | None, level: int) -> Numbered | Objection | None:
        """Which message of which producer it is, if it says so; an objection if that says nothing."""
        if not packet.properties or not packet.qos:
            return None
        try:
            return read_number(packet.properties, user)
        except MalformedNumber:
            return Objection(Drop.MALFORMED_ONCE, Refused(RULE, Reason.IMPLEMENTATION_SPECIFIC_ERROR), level)

    def is_repeated(self, numbered: Numbered) -> bool:
        """Whether the message was accepted before: it is acknowledged, and nobody gets it."""
        return self._producers.has(numbered)

    @staticmethod
    def to_turn(conn: Connection, numbered: Numbered, level: int) -> Objection | None:
        """An earlier number of the same producer was refused on this connection, and has to come first."""
        if not is_out_of_turn(conn, numbered):
            return None
        text = "an earlier number of this producer was refused and comes first"
        return Objection(Drop.OUT_OF_TURN, Refused(text, Reason.QUOTA_EXCEEDED), level)

    def to_taking(self, message: Message, route: Route, version: int) -> Shortage | None:
        """The store, or a receiver, has no room for a QoS 1 or 2 message of a client of this protocol version.

        3.1.1 has no way to say so; there, and where it is configured, the publisher waits.
        """
        trouble = self._journal.trouble
        if trouble:
            return Shortage(trouble, None, version == 5 and self.settings.mqtt.full != "pause")
        if self._refuses_when_full:
            full = self._delivery.find_full(message, route)
            if full is not None:
                text = f"the queue of {full.client_id} is full"
                return Shortage(text, full, version == 5 and self.settings.mqtt.full == "refuse")
        return None
