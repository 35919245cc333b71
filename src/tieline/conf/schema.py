"""The one schema: every setting, its default and its meaning.

The loader, the reference page, the JSON Schema and ``tieline check`` all read this file, so a setting
exists exactly when it is written here.  Units are part of the name.  A limit is a number or ``"none"``;
zero always means zero.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

NoLimit = Literal["none"]
Count = Annotated[int, Meta(ge=0)]
Limit = Count | NoLimit
Seconds = Annotated[float, Meta(ge=0)]

#: What "none" becomes inside the broker: larger than any count or size it will ever compare with.
UNLIMITED = 1 << 62


def bound(limit: Limit) -> int:
    """The number that a limit compares with."""
    return UNLIMITED if limit == "none" else limit


Level = Annotated[int, Meta(ge=0, le=3)]
#: Seconds as a number, or a number with its unit.
Duration = Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h)$")]

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: Duration) -> float:
    """A duration in seconds."""
    if isinstance(duration, str):
        number = duration.rstrip("usmh")
        return float(number) * _UNITS[duration[len(number) :]]
    return duration


class Listener(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One address that clients connect to."""

    url: Annotated[
        str, Meta(description="tcp://, tls://, ws:// or wss:// followed by host:port; port 0 takes a free one.")
    ]
    certificate: Annotated[str | None, Meta(description="PEM file with the certificate chain (tls, wss).")] = None
    key: Annotated[str | None, Meta(description="PEM file with the private key (tls, wss).")] = None
    client_ca: Annotated[
        str | None, Meta(description="PEM file with the authorities whose client certificates are required.")
    ] = None
    connections: Annotated[Limit, Meta(description="Open connections on this listener.")] = "none"
    max_level: Annotated[Level, Meta(description="Highest level that clients of this listener may claim.")] = 3
    node_level: Annotated[
        Level | None,
        Meta(description="Level of the clients of this listener that claim none in CONNECT; 3 makes them urgent."),
    ] = None


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every bound the broker keeps; beside each, what others chose."""

    packet_bytes: Annotated[
        Annotated[int, Meta(ge=16, le=268_435_460)],
        Meta(description="Largest packet accepted (mosquitto 256 MiB, EMQX 1 MiB, NanoMQ 10 kB)."),
    ] = 1_048_576
    connections: Annotated[Limit, Meta(description="Open connections, all listeners together.")] = 100_000
    sessions: Annotated[Limit, Meta(description="Sessions, connected or waiting for their client.")] = 200_000
    connect_timeout_s: Annotated[
        Seconds, Meta(description="Time from accepting a connection to a complete CONNECT.")
    ] = 10.0
    topic_levels: Annotated[Count, Meta(description="Levels in a topic name or filter (mosquitto 200, EMQX 128).")] = (
        128
    )
    subscriptions: Annotated[Limit, Meta(description="Subscriptions of one session.")] = 10_000
    subscriptions_total: Annotated[Limit, Meta(description="Subscriptions of all sessions.")] = 2_000_000
    queue_messages: Annotated[
        Limit, Meta(description="Messages waiting for one session (mosquitto 1,000, EMQX 1,000).")
    ] = 100_000
    queue_bytes: Annotated[Limit, Meta(description="Bytes waiting for one session.")] = 8_388_608
    queue_bytes_total: Annotated[Limit, Meta(description="Bytes waiting for all sessions together.")] = 1_073_741_824
    inflight: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)],
        Meta(description="Unacknowledged QoS 1 and 2 messages to one client (mosquitto 20, EMQX 32)."),
    ] = 1_024
    receive_maximum: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)],
        Meta(description="Unacknowledged QoS 1 and 2 messages from one client (MQTT 5 Receive Maximum)."),
    ] = 1_024
    topic_alias_maximum: Annotated[
        Annotated[int, Meta(ge=0, le=65_535)], Meta(description="Topic aliases a client may set.")
    ] = 64
    topic_alias_outgoing: Annotated[
        Annotated[int, Meta(ge=0, le=65_535)],
        Meta(description="Topic aliases the broker sets towards a client that allows them."),
    ] = 64
    retained_messages: Annotated[Limit, Meta(description="Retained messages.")] = 1_000_000
    retained_bytes: Annotated[Limit, Meta(description="Bytes of retained topics, payloads and properties.")] = (
        268_435_456
    )
    route_cache: Annotated[Count, Meta(description="Topics whose matched subscribers are remembered.")] = 131_072


class Mqtt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choices that the specifications leave to the server."""

    maximum_qos: Annotated[Literal[0, 1, 2], Meta(description="Highest QoS offered.")] = 2
    retain_available: Annotated[bool, Meta(description="Retained messages are kept and sent.")] = True
    wildcard_available: Annotated[bool, Meta(description="Wildcards in subscriptions are allowed.")] = True
    shared_available: Annotated[bool, Meta(description="$share/group/filter subscriptions are allowed.")] = True
    session_expiry_max_s: Annotated[
        Limit, Meta(description="Longest a session outlives its connection; longer wishes are shortened, and said so.")
    ] = "none"
    keep_alive_max_s: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)] | NoLimit,
        Meta(description="Longest keep-alive; MQTT 5 clients are told (Server Keep Alive), 0 counts as longest."),
    ] = "none"
    full: Annotated[
        Literal["refuse", "oldest"],
        Meta(
            description="A QoS 1 or 2 message meets a full queue: refuse it (MQTT 5: 0x97; 3.1.1: the publisher "
            "waits), or drop the oldest one."
        ),
    ] = "refuse"
    pause_max_s: Annotated[
        Seconds, Meta(description="How long a publisher waits for a full queue before it is disconnected.")
    ] = 30.0
    sys_interval_s: Annotated[Seconds, Meta(description="Seconds between two $SYS reports; 0 means no $SYS.")] = 10.0


class Class(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages of some topics: how urgent they are, and how they are treated while they wait.

    The first class whose filter matches a topic gives its level.  The treatment belongs to the level: of several
    classes with one level, the first one's counts.
    """

    name: Annotated[str, Meta(description="What the class is called in counters, $SYS and `tieline top`.")]
    filter: Annotated[str, Meta(description="Topic filter; wildcards as in a subscription.")]
    level: Annotated[Level, Meta(description="0 very low, 1 medium, 2 important, 3 urgent.")]
    weight: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Part of the floor, relative to the other classes.")
    ] = None
    deadline: Annotated[Duration | None, Meta(description="When a message should have arrived (policy edf).")] = None
    timeout: Annotated[
        Duration | None, Meta(description="How long a message may wait before it gets a slot of its own.")
    ] = None
    max_packet: Annotated[
        Count | None,
        Meta(description="Largest message of the class, in bytes: one huge packet blocks a thin link."),
    ] = None
    full: Annotated[
        Literal["oldest", "newest", "coalesce"] | None,
        Meta(description="Which QoS 0 message of the class goes when a queue is full."),
    ] = None


class Claim(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may claim which level, and how often; the first that matches user and topic counts."""

    user: Annotated[str, Meta(description="User name, or * for everyone, - for clients without one.")] = "*"
    filter: Annotated[str, Meta(description="Topics for which the level is claimed.")] = "#"
    max_level: Annotated[Level, Meta(description="Higher claims are lowered to this level, and counted.")] = 3
    per_s: Annotated[
        Annotated[float, Meta(ge=0)] | NoLimit,
        Meta(description="Messages per second and client above level 1; more are lowered to level 1, and counted."),
    ] = "none"


class Priority(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which message goes first when a subscriber is congested, and what those behind are promised."""

    policy: Annotated[
        Literal["fifo", "taxonomy", "strict", "heat", "feedback", "edf"],
        Meta(description="The order in which a congested subscriber is served."),
    ] = "feedback"
    default_level: Annotated[Level, Meta(description="Level of messages for which nothing else says one.")] = 1
    floor: Annotated[
        Annotated[float, Meta(ge=0, le=0.5)],
        Meta(description="Part of the link that lower classes share whatever waits above them."),
    ] = 0.1
    period: Annotated[Duration, Meta(description="Time period of the feedback to low classes.")] = "1s"
    frequency: Annotated[
        Count, Meta(description="Distribution frequency: messages per period for a class that has waited too long.")
    ] = 1
    period_min: Annotated[Duration, Meta(description="Shortest period that a subscriber may ask for.")] = "10ms"
    frequency_max: Annotated[Count, Meta(description="Highest frequency that a subscriber may ask for.")] = 100
    timeout_min: Annotated[Duration, Meta(description="Shortest timeout that a subscriber may ask for.")] = "100ms"
    inheritance: Annotated[
        Count, Meta(description="Queued predecessors of its flow that an urgent message takes along.")
    ] = 256
    unordered: Annotated[
        tuple[str, ...],
        Meta(description="Topics whose messages need not keep their order ([MQTT-4.6.0-5] lets an operator say so)."),
    ] = ()
    unknown: Annotated[
        Literal["ignore", "refuse"],
        Meta(description="A priority property that is no level: ignored and counted, or refused."),
    ] = "ignore"
    heat_deliveries: Annotated[
        Annotated[float, Meta(ge=0)],
        Meta(description="Weight of the deliveries of the last period in a topic's heat, beside its subscribers."),
    ] = 0.0


class Content(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Subscriptions that look at what a message says, not only at its topic."""

    question_mark: Annotated[
        Literal["on", "off"],
        Meta(description="filter?condition asks for a condition; off: ? is a character like any other."),
    ] = "on"
    untyped_bytes: Annotated[
        Limit,
        Meta(description="Largest payload that is searched for attributes which no event type declares."),
    ] = 65_536
    change_topics: Annotated[
        Limit,
        Meta(description="Topics whose values one subscription with changed() or delta() remembers."),
    ] = 1_024
    change_total: Annotated[Limit, Meta(description="The same for all such subscriptions together.")] = 100_000


Kind = Literal["number", "integer", "category", "boolean", "timestamp"]


class Attribute(Struct, frozen=True, forbid_unknown_fields=True):
    """One value of an event: what it is called, what it is, and where a message carries it."""

    name: Annotated[str, Meta(description="What conditions call it: letters, digits, underscores and dots.")]
    kind: Annotated[Kind, Meta(description="What it is; a value of another kind counts as missing.")] = "number"
    bounds: Annotated[
        tuple[float, float] | None,
        Meta(description="Usual least and greatest value; values beyond them are matched just as exactly."),
    ] = None
    unit: Annotated[str, Meta(description="Unit, for people.")] = ""
    path: Annotated[
        str | None,
        Meta(description="Where the payload holds it, levels joined by dots (sparkplug: the metric); else the name."),
    ] = None
    values: Annotated[
        tuple[str, ...], Meta(description="The usual values of a category; others are matched as themselves.")
    ] = ()

    @property
    def place(self) -> str:
        """Where the payload holds it."""
        return self.name if self.path is None else self.path


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the messages of some topics say, so that conditions on them can be indexed."""

    topic: Annotated[str, Meta(description="Topic filter; a topic belongs to one event type.")]
    payload: Annotated[
        Literal["json", "sparkplug", "cbor", "number"], Meta(description="How the payload is written.")
    ] = "json"
    routing: Annotated[
        tuple[str, ...] | None,
        Meta(description="One to three bounded attributes by which brokers route; else the first ones declared."),
    ] = None
    order: Annotated[
        Annotated[int, Meta(ge=1, le=10)], Meta(description="Each routing attribute is divided into 2^order parts.")
    ] = 6
    attributes: Annotated[tuple[Attribute, ...], Meta(description="What a message of this type says.")] = ()


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration of one broker."""

    name: Annotated[str, Meta(description="Name of this broker, used in logs, $SYS and its management socket.")] = (
        "tieline"
    )
    data: Annotated[str | None, Meta(description="Directory for the management socket and, later, the store.")] = None
    listener: Annotated[tuple[Listener, ...], Meta(description="Where clients connect.")] = (
        Listener(url="tcp://127.0.0.1:1883"),
    )
    limits: Limits = field(default_factory=Limits)
    mqtt: Mqtt = field(default_factory=Mqtt)
    priority: Priority = field(default_factory=Priority)
    content: Content = field(default_factory=Content)
    class_: Annotated[
        tuple[Class, ...], Meta(description="Topic rules that give messages their level; the first match counts.")
    ] = field(default=(), name="class")
    claim: Annotated[tuple[Claim, ...], Meta(description="Who may claim which level.")] = ()
    event: Annotated[
        dict[str, Event], Meta(description="Event types, by name: what the messages of some topics say.")
    ] = field(default_factory=dict)


#: One of each table that may be written several times: what the generated pages show for keys without a default.
EXAMPLES: dict[str, Struct] = {
    "listener": Listener(url="tcp://127.0.0.1:1883"),
    "class": Class(name="control", filter="grid/+/cmd/#", level=3),
    "claim": Claim(),
    "event": Event(topic="microgrid/+/pcc", routing=("voltage", "frequency")),
    "event.attributes": Attribute(name="voltage", bounds=(0.0, 500.0), path="pcc.voltage"),
}
