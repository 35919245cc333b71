"""Who would get a message and why, stage by stage; nothing is changed by asking.

Each stage is one that a PUBLISH passes in :mod:`tieline.core.inbound.publish` and
:mod:`tieline.core.outbound.deliver`, in their order.  What those remember, count or move on is only looked at here:
routes, turns of shared groups, references of ``changed()``, claims, birth certificates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from tieline.core.answers.audience import Audience, Fate
from tieline.core.answers.steps import Outcome, Step, login_of, no, note, verdict_on, yes
from tieline.core.inbound.publish import RESERVED
from tieline.core.message import Message, Origin
from tieline.core.routing.classes import claimed_level
from tieline.wire.errors import ProtocolError
from tieline.wire.properties import Properties, encode_properties
from tieline.wire.topics import check_name, matches
from tieline.wire.varint import decode_varint

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.client import Connection, Session

#: Receivers listed one by one; the rest is counted.
LISTED: Final = 200
#: Attributes shown.
_SHOWN: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
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


@dataclass(slots=True, kw_only=True)
class Trace:
    """What a message would meet on its way, and what would become of it for each subscriber."""

    steps: list[Step] = field(default_factory=list)
    receivers: list[Fate] = field(default_factory=list)
    #: Subscribers that are not listed, because there are too many.
    unlisted: int = 0

    @property
    def is_refused(self) -> bool:
        """Whether it ends before it reaches anybody."""
        return bool(self.steps) and self.steps[-1].outcome is Outcome.NO


def trace(broker: Broker, probe: Probe, now: float) -> Trace:
    """Follow a message through the broker without sending it."""
    answer = Trace()
    say = answer.steps.append
    session = broker.sessions.get(probe.client)
    conn = None if session is None else session.connection
    for stage in (_publisher, _abilities, _name, _access):
        say(stage(broker, probe, session))
        if answer.is_refused:
            return answer
    level, steps = _level(broker, probe, conn, now)
    answer.steps += steps
    if level is None:
        return answer
    message = _message(probe, level, now)
    bound = broker.priorities.classes.max_packet[level]
    if bound is not None and message.size - _overhead(message) > bound:
        name = broker.priorities.classes.names[level]
        say(no("size", f"messages of class {name} have at most {bound} bytes", f'[[class]] name = "{name}"'))
        return answer
    found = Audience(broker, message, now, limit=LISTED)
    say(_event(broker, message))
    if message.qos and (refusal := _full(broker, message, found, conn)) is not None:
        say(refusal)
        return answer
    say(_retained(broker, message, probe))
    say(note("subscriptions", found.summary()))
    say(_log(broker, probe.topic))
    answer.receivers, answer.unlisted = found.fates, found.unlisted
    return answer


def _publisher(_broker: Broker, probe: Probe, session: Session | None) -> Step:
    if not probe.client:
        return note("publisher", "nobody in particular: no access rule is asked, nobody's claims are lowered")
    if session is None:
        return no("publisher", f"there is no session {probe.client}")
    if session.connection is None:
        return note("publisher", f"{probe.client} is away: taken as if it were connected")
    return yes("publisher", f"{probe.client}, user {session.user or '(none)'}, from {session.connection.peer}")


def _abilities(broker: Broker, probe: Probe, session: Session | None) -> Step:
    """What the broker does at all, and how large a packet may be."""
    mqtt = broker.settings.mqtt
    if probe.qos > mqtt.maximum_qos:
        return no("abilities", f"QoS {probe.qos} is not supported", f"mqtt.maximum_qos = {mqtt.maximum_qos}")
    if probe.retain and not mqtt.retain_available:
        return no("abilities", "retained messages are not supported", "mqtt.retain_available = false")
    conn = None if session is None else session.connection
    most = broker.settings.limits.packet_bytes if conn is None else conn.allowance.packet_bytes
    size = len(probe.payload) + len(probe.topic)
    if size > most:
        return no("abilities", f"a packet of more than {size} bytes; {most} are allowed", "limits.packet_bytes")
    return yes("abilities", f"QoS {probe.qos}, {len(probe.payload)} bytes of payload")


def _name(broker: Broker, probe: Probe, session: Session | None) -> Step:
    conn = None if session is None else session.connection
    levels = broker.settings.limits.topic_levels if conn is None else conn.allowance.topic_levels
    try:
        check_name(probe.topic, levels)
    except ProtocolError as error:
        return no("name", str(error), error.clause)
    return yes("name", f"{probe.topic} is a topic name of {probe.topic.count('/') + 1} levels")


def _access(broker: Broker, probe: Probe, session: Session | None) -> Step:
    if probe.topic.startswith(RESERVED) and probe.client:
        return no("access", "$SYS belongs to the broker")
    if session is None:
        return note("access", "not asked; --as CLIENT asks for one")
    return verdict_on(broker, login_of(broker, probe.client), "publish", probe.topic)


def _level(broker: Broker, probe: Probe, conn: Connection | None, now: float) -> tuple[int | None, list[Step]]:
    """How urgent the message is, and what says so; None if that is refused."""
    level, origin, steps = _claimed(broker, probe, conn)
    if level is None:
        return None, steps
    name = broker.priorities.classes.names[level]
    steps.append(yes("level", f"{level}, {name}", origin))
    if conn is not None and not broker.priorities.claims.is_open:
        granted, claim = broker.priorities.claims.look(conn, probe.topic, level, now)
        if granted < level:
            rule = f"listener {conn.listener}, max_level = {conn.max_level}"
            if claim is not None and granted != min(level, conn.max_level):
                rule = f'[[claim]] user = "{claim.user}", filter = "{claim.filter}", max_level = {claim.max_level}'
                rule += "" if claim.per_s == "none" else f", per_s = {claim.per_s:g}"
            steps.append(note("level", f"lowered to {granted}, {broker.priorities.classes.names[granted]}", rule))
            level = granted
    return level, steps


def _claimed(broker: Broker, probe: Probe, conn: Connection | None) -> tuple[int | None, str, list[Step]]:
    if probe.header_level is not None:
        return probe.header_level, "the extra header byte", []
    steps: list[Step] = []
    properties: Properties = {"user_property": list(probe.properties)} if probe.properties else {}
    claimed = claimed_level(properties)
    if claimed is not None and claimed >= 0:
        return claimed, "the user property priority", steps
    if claimed is not None:
        text = "the user property priority is no level"
        if broker.settings.priority.unknown == "refuse":
            return None, "", [no("level", text, 'priority.unknown = "refuse"')]
        steps.append(note("level", f"{text}: ignored", 'priority.unknown = "ignore"'))
    rule = next((rule for rule in broker.settings.class_ if matches(rule.filter, probe.topic)), None)
    if rule is not None:
        return rule.level, f'[[class]] name = "{rule.name}", filter = "{rule.filter}"', steps
    if conn is not None:
        return conn.level, "the client's own level", steps
    return broker.priorities.default_level, f"priority.default_level = {broker.priorities.default_level}", steps


def _message(probe: Probe, level: int, now: float) -> Message:
    properties = b""
    if probe.properties:
        encoded = encode_properties({"user_property": list(probe.properties)})
        properties = encoded[decode_varint(encoded, 0, len(encoded))[1] :]
    return Message(
        probe.topic.encode(),
        probe.payload,
        probe.qos,
        retain=probe.retain,
        properties=properties,
        origin=Origin(probe.client),
        level=level,
        at=now,
    )


def _overhead(message: Message) -> int:
    return message.size - len(message.topic) - len(message.payload) - len(message.properties)


def _event(broker: Broker, message: Message) -> Step:
    """What the message says, as far as somebody has declared or asked it."""
    topic = message.topic.decode()
    event = broker.events.of(topic)
    reading = broker.events.look(topic, message.payload, message.properties)
    if event is broker.events.untyped:
        can = "can" if reading is not None else "cannot"
        return note("event", f"no event type is declared for it; attributes {can} be found in its payload")
    rule = f'[event.{event.name}] topic = "{event.topic}"'
    if reading is None:
        return note("event", f"of type {event.name}, but its payload cannot be read: no condition holds", rule)
    names = list(islice(event.position, _SHOWN))
    values = ", ".join(f"{name} = {_shown(reading.get(name))}" for name in names)
    return note("event", f"of type {event.name}: {values}", rule)


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)


def _full(broker: Broker, message: Message, found: Audience, conn: Connection | None) -> Step | None:
    """Whether a QoS 1 or 2 message is turned away because the store or a receiver has no room for it."""
    if broker.journal.trouble:
        return no("room", f"not taken now: {broker.journal.trouble}", "the store")
    if broker.settings.mqtt.full == "oldest":
        return None
    full = broker.delivery.find_full(message, found.route)
    if full is None:
        return None
    if broker.settings.mqtt.full == "refuse" and (conn is None or conn.version == 5):
        text = f"refused with 0x97: the queue of {full.client_id} is full"
    else:
        text = f"its publisher waits: the queue of {full.client_id} is full"
    return no("room", text, f'mqtt.full = "{broker.settings.mqtt.full}"')


def _retained(broker: Broker, message: Message, probe: Probe) -> Step:
    if not message.retain:
        return note("retained", "no")
    old = broker.retained.get(probe.topic)
    if not message.payload:
        return note("retained", "it clears the retained message" if old else "it would clear one, but there is none")
    if not broker.retained.has_room(probe.topic, message):
        return note("retained", "delivered, but not kept: retained_full", "limits.retained_messages, retained_bytes")
    return yes("retained", "it replaces the one before" if old else "it is kept")


def _log(broker: Broker, topic: str) -> Step:
    """Whether the message log would hold it."""
    if broker.journal.is_volatile or not broker.settings.log.capture:
        return note("log", "nothing is captured", "log.capture")
    for filter_ in broker.settings.log.capture:
        if matches(filter_, topic):
            return yes("log", "captured", f'log.capture = "{filter_}"')
    return note("log", "not captured", "log.capture")
