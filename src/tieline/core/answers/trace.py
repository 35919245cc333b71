"""Who would get a message and why, stage by stage; nothing is changed by asking.

The stages are those that a PUBLISH passes in :mod:`tieline.core.inbound.publish`, in their order, and at each of them
the same is asked as there: what speaks against the message (:mod:`tieline.core.inbound.objections`), where it goes
(:meth:`Routes.look <tieline.core.routing.routes.Routes.look>`), what becomes of it
(:mod:`tieline.core.answers.audience`).  Here the answers are put into words, there they have effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct, field

from tieline.core.account import Drop
from tieline.core.answers.audience import LOOKED_AT, Audience, Fate
from tieline.core.answers.steps import (
    Outcome,
    Step,
    access_step,
    claim_rule,
    level_rule,
    name_step,
    named_level,
    no,
    note,
    own_level,
    unknown,
    yes,
)
from tieline.core.broker import Broker
from tieline.core.inbound.from_brokers import LEVELS
from tieline.core.inbound.objections import Objection
from tieline.core.message import THE_BROKER, Message, Origin
from tieline.core.routing.classes import UNKNOWN
from tieline.match.events import Reading
from tieline.wire.decode import decode
from tieline.wire.encode import encode
from tieline.wire.errors import ProtocolError
from tieline.wire.frames import measure
from tieline.wire.packets import Publish
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import matches

#: Receivers listed one by one; the rest is counted.
LISTED: Final = 200
#: Attributes shown.
_SHOWN: Final = 32


class Probe(Struct, frozen=True, kw_only=True):
    """A message that is not published, only asked about."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    #: User properties.
    properties: tuple[tuple[str, str], ...] = ()
    #: The level in the extra header byte, on listeners that have one.
    header_level: int | None = None
    #: Who publishes it; the broker's operator, whom no rule stops, if nobody is named.
    client: str = ""
    #: The broker that has accepted it, and with which level, if it is not this one.
    broker: str = ""
    level: int = 0


class Trace(Struct, kw_only=True):
    """What a message would meet on its way, and what would become of it for each subscriber."""

    steps: list[Step] = field(default_factory=list)
    receivers: list[Fate] = field(default_factory=list)
    #: Subscribers that are not listed, because there are too many.
    unlisted: int = 0
    #: The level that it has once it is accepted; None if it ends before that.
    level: int | None = None

    @property
    def is_refused(self) -> bool:
        """Whether it ends before it reaches anybody."""
        return bool(self.steps) and self.steps[-1].outcome is Outcome.NO


def trace(broker: Broker, probe: Probe, now: float) -> Trace:
    """Follow a message through the broker without sending it."""
    answer = Trace()
    tracing = _Tracing(broker, probe, now)
    for step in tracing.steps():
        answer.steps.append(step)
        if step.outcome is Outcome.NO:
            return answer
    audience = tracing.audience
    answer.level = tracing.message.level
    answer.receivers, answer.unlisted = audience.fates, audience.unlisted
    return answer


class _Tracing:
    """One message on its way: what is known of it after the steps that were taken."""

    #: Once it has a level, and once its receivers are known.
    message: Message
    audience: Audience

    def __init__(self, broker: Broker, probe: Probe, now: float) -> None:
        self._broker = broker
        self._probe = probe
        self._now = now
        self._session = session = broker.sessions.get(probe.client)
        self._conn = None if session is None else session.connection
        #: The protocol that its publisher speaks.
        self._version = 5 if self._conn is None else self._conn.version
        properties: Properties = {"user_property": list(probe.properties)} if probe.properties else {}
        #: As it would arrive.
        self._packet = Publish(
            topic=probe.topic,
            payload=probe.payload,
            qos=probe.qos,
            retain=probe.retain,
            packet_id=1 if probe.qos else 0,
            properties=properties,
        )

    def steps(self) -> Iterator[Step]:
        """Everything that is asked about it, in the broker's own order; nothing comes after a NO."""
        broker, probe = self._broker, self._probe
        if probe.broker:
            yield from self._arrived()
            return
        yield self._publisher()
        yield self._abilities()
        yield name_step(broker, self._conn, probe.topic)
        yield from self._decoded()
        if self._session is None:
            yield note("access", "not asked; --as CLIENT asks for one")
        else:
            yield access_step(broker, probe.client, "publish", probe.topic)
        key = probe.topic.encode()
        route = broker.routes.look(probe.topic, key, LOOKED_AT)
        claimed = broker.priorities.claimed(self._packet.properties, probe.header_level)
        yield from self._claim(claimed)
        level = broker.priorities.of_message(claimed, route, own_level(broker, self._conn))
        if claimed is None or claimed == UNKNOWN:
            origin = level_rule(broker, probe.topic, self._conn)
        else:
            origin = "the user property priority" if probe.header_level is None else "the extra header byte"
        yield yes("level", named_level(broker, level), origin)
        if self._conn is not None:
            granted = broker.priorities.claims.look(self._conn, probe.topic, level, 1, self._now)
            if granted.level < level:
                level = granted.level
                # by its listener if that alone explains it
                claim = granted.claim if level != self._conn.max_level or granted.is_throttled else None
                yield note("level", f"lowered to {named_level(broker, level)}", claim_rule(self._conn, claim))
        yield from self._size(key, level)
        yield from self._number(level)
        self.message = message = self._message(key, level)
        reading = broker.events.look(probe.topic, message.payload, message.properties)
        yield self._event(reading)
        self.audience = Audience(broker, message, route, reading, self._now, limit=LISTED)
        if message.qos:
            yield from self._room()
        yield self._retained()
        yield note("subscriptions", self.audience.summary())
        yield self._log()

    def _arrived(self) -> Iterator[Step]:
        """The same for what another broker has accepted, which has asked who may publish it and how urgent it is."""
        broker, probe = self._broker, self._probe
        yield yes("arrived", f"accepted by broker {probe.broker}, with level {named_level(broker, probe.level)}")
        yield name_step(broker, None, probe.topic, LEVELS)
        yield from self._decoded()
        key = probe.topic.encode()
        packet = self._packet
        origin = Origin(probe.client, 0, None, probe.broker)
        self.message = message = Message(
            key,
            packet.payload,
            packet.qos,
            packet.retain,
            packet.forward,
            origin=origin,
            level=probe.level,
            at=self._now,
        )
        reading = broker.events.look(probe.topic, message.payload, message.properties)
        yield self._event(reading)
        route = broker.routes.look(probe.topic, key, LOOKED_AT)
        self.audience = Audience(broker, message, route, reading, self._now, limit=LISTED)
        yield self._retained()
        yield note("subscriptions", self.audience.summary())
        yield note("log", f"captured by broker {probe.broker}, if at all")

    # -- before it has a level

    def _publisher(self) -> Step:
        client, session = self._probe.client, self._session
        if not client:
            return note("publisher", "nobody in particular: no access rule is asked, nobody's claims are lowered")
        if session is None:
            return no("publisher", f"there is no session {client}")
        if session.connection is None:
            return note("publisher", f"{client} is away: taken as if it were connected")
        return yes("publisher", f"{client}, user {session.user or '(none)'}, from {session.connection.peer}")

    def _abilities(self) -> Step:
        """What the broker does at all, and how large a packet may be."""
        probe, settings = self._probe, self._broker.settings
        most = settings.limits.packet_bytes if self._conn is None else self._conn.allowance.packet_bytes
        try:
            measure(encode(self._packet, self._version), 0, most, self._version)
        except ProtocolError as error:
            return no("abilities", str(error), "limits.packet_bytes")
        except (ValueError, OverflowError) as error:
            return no("abilities", f"there is no such packet: {error}", "1.5.4")
        violation = self._broker.objections.to_packet(self._packet)
        if violation is None:
            return yes("abilities", f"QoS {probe.qos}, {len(probe.payload)} bytes of payload")
        rules = {
            Reason.QOS_NOT_SUPPORTED: f"mqtt.maximum_qos = {settings.mqtt.maximum_qos}",
            Reason.RETAIN_NOT_SUPPORTED: "mqtt.retain_available = false",
        }
        return no("abilities", violation.text, rules.get(violation.reason, violation.clause))

    def _decoded(self) -> Iterator[Step]:
        """The packet as the broker reads it; it may still be one that cannot be read."""
        data = encode(self._packet, self._version)
        found = measure(data, 0, len(data), self._version)
        assert found is not None
        try:
            packet = decode(data[0], data[found[0] :], self._version)
        except ProtocolError as error:
            yield no("name", str(error), error.clause)
            return
        assert isinstance(packet, Publish)
        self._packet = packet
        if self._probe.properties and not packet.properties:
            yield note("abilities", "its publisher speaks MQTT 3.1.1, which has no user properties: they are left out")

    # -- how urgent, and what hangs on that

    def _claim(self, claimed: int | None) -> Iterator[Step]:
        if claimed != UNKNOWN:
            return
        text = "the user property priority is no level"
        if self._broker.objections.to_claim(claimed) is not None:
            yield no("level", text, 'priority.unknown = "refuse"')
        else:
            yield note("level", f"{text}: ignored", 'priority.unknown = "ignore"')

    def _size(self, key: bytes, level: int) -> Iterator[Step]:
        size = len(key) + len(self._packet.payload) + len(self._packet.forward)
        objection = self._broker.objections.to_size(size, level)
        if objection is not None:
            yield no(
                "size", objection.refused.rule, f'[[class]] name = "{self._broker.priorities.classes.names[level]}"'
            )

    def _number(self, level: int) -> Iterator[Step]:
        """Which message of which producer it is, and whether that one is to be accepted."""
        objections = self._broker.objections
        user = None if self._session is None else self._session.user
        numbered = objections.number_of(self._packet, user, level)
        if numbered is None:
            return
        if isinstance(numbered, Objection):
            yield no("number", numbered.refused.rule, numbered.why.value)
        elif objections.is_repeated(numbered):
            text = "its producer has published it before: it is acknowledged, and nobody gets it"
            yield no("number", text, Drop.REPEATED.value)
        elif self._conn is not None and (objection := objections.to_turn(self._conn, numbered, level)) is not None:
            yield no("number", objection.refused.rule, objection.why.value)
        else:
            yield yes("number", f"message {numbered.number} of producer {numbered.producer}")

    def _message(self, key: bytes, level: int) -> Message:
        packet = self._packet
        origin = THE_BROKER if self._session is None else self._session.origin
        return Message(
            key, packet.payload, packet.qos, packet.retain, packet.forward, origin=origin, level=level, at=self._now
        )

    # -- where it goes

    def _event(self, reading: Reading | None) -> Step:
        """What the message says, as far as somebody has declared or asked it."""
        events = self._broker.events
        event = events.of(self._probe.topic)
        if event is events.untyped:
            can = "can" if reading is not None else "cannot"
            return note("event", f"no event type is declared for it; attributes {can} be found in its payload")
        rule = f'[event.{event.name}] topic = "{event.topic}"'
        if reading is None:
            return note("event", f"of type {event.name}, but its payload cannot be read: no condition holds", rule)
        names = list(islice(event.position, _SHOWN))
        values = ", ".join(f"{name} = {_shown(reading.get(name))}" for name in names)
        return note("event", f"of type {event.name}: {values}", rule)

    def _room(self) -> Iterator[Step]:
        """Whether a QoS 1 or 2 message is turned away because the store or a receiver has no room for it."""
        shortage = self._broker.objections.to_taking(self.message, self.audience.route, self._version)
        if shortage is None:
            if self.audience.is_crowd:
                yield unknown("room", f"{LOOKED_AT} receivers have it; the others were not asked")
            return
        if shortage.receiver is None:
            yield no("room", f"not taken now: {shortage.text}", "the store")
        else:
            how = "refused with 0x97" if shortage.is_told else "its publisher waits"
            yield no("room", f"{how}: {shortage.text}", f'mqtt.full = "{self._broker.settings.mqtt.full}"')

    def _retained(self) -> Step:
        message, retained = self.message, self._broker.retained
        if not message.retain:
            return note("retained", "no")
        old = retained.get(self._probe.topic)
        if not message.payload:
            text = "it clears the retained message" if old else "it would clear one, but there is none"
            return note("retained", text)
        if not retained.has_room(self._probe.topic, message):
            return note(
                "retained", "delivered, but not kept: retained_full", "limits.retained_messages, retained_bytes"
            )
        return yes("retained", "it replaces the one before" if old else "it is kept")

    def _log(self) -> Step:
        """Whether the message log would hold it."""
        capture = self._broker.settings.log.capture
        if self._broker.journal.is_volatile or not capture:
            return note("log", "nothing is captured", "log.capture")
        for filter_ in capture:
            if matches(filter_, self._probe.topic):
                return yes("log", "captured", f'log.capture = "{filter_}"')
        return note("log", "not captured", "log.capture")


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)
