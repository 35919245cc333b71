"""The one schema: every setting, its default and its meaning.

The loader, the reference page, the JSON Schema and ``tieline check`` all read :class:`Settings`, so a setting exists
exactly when it is written here, or in :mod:`tieline.conf.overlay` if it is about other brokers.  Units are part of the
name.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from tieline.conf.overlay import Overlay, Peer
from tieline.conf.quantities import Age, Count, Duration, Level, Limit, NoLimit, PacketBytes, Rate, Seconds


class Listener(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One address that clients connect to."""

    url: Annotated[
        str,
        Meta(
            description="tcp://, tls://, ws:// or wss://, then host:port; port 0 is any. For other brokers peer:// and "
            "peer+tls:// with host:port, or peer+unix:// with the path of a socket."
        ),
    ]
    certificate: Annotated[str | None, Meta(description="PEM file with the certificate chain (tls, wss).")] = None
    key: Annotated[str | None, Meta(description="PEM file with the private key (tls, wss).")] = None
    client_ca: Annotated[
        str | None,
        Meta(
            description="PEM file with the authorities whose client certificates are required, and perhaps "
            "with their revocation lists. Clients of an authority that is gone after a reload are disconnected."
        ),
    ] = None
    user_from: Annotated[
        Literal["cn", "san"] | None,
        Meta(
            description="Clients of this listener are the user whom their certificate names: its common name, or the "
            "first of its alternative names (DNS, e-mail or URI). Needs client_ca."
        ),
    ] = None
    gateway: Annotated[
        bool,
        Meta(
            description="Whether gateways of other regions connect here (peer, peer+tls), and not brokers of this "
            "one. Needs overlay.region."
        ),
    ] = False
    origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Pages whose browsers may connect (ws, wss), besides those of the same host: https://host, "
            "with its port if it has one, or * for all. Clients that are no browsers name no page, and are not asked."
        ),
    ] = ()
    connections: Annotated[Limit, Meta(description="Open connections on this listener.")] = "none"
    connect_timeout_s: Annotated[
        Seconds | None,
        Meta(description="Time from accepting a connection to a complete CONNECT; else that of the limits."),
    ] = None
    messages_per_s: Annotated[
        Rate | NoLimit,
        Meta(description="PUBLISH packets per second from one client; a faster one is not read for a while."),
    ] = "none"
    bytes_per_s: Annotated[
        Rate | NoLimit, Meta(description="Bytes per second from one client; a faster one is not read for a while.")
    ] = "none"
    packet_bytes: Annotated[PacketBytes | NoLimit, Meta(description="Largest packet accepted here.")] = "none"
    queue_bytes: Annotated[Limit, Meta(description="Bytes waiting for one session.")] = "none"
    subscriptions: Annotated[Limit, Meta(description="Subscriptions of one session.")] = "none"
    topic_levels: Annotated[Limit, Meta(description="Levels in a topic name or filter.")] = "none"
    max_level: Annotated[Level, Meta(description="Highest level that clients of this listener may claim.")] = 3
    node_level: Annotated[
        Level | None,
        Meta(description="Level of the clients of this listener that claim none in CONNECT; 3 makes them urgent."),
    ] = None


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every bound the broker keeps; beside each, what others chose."""

    packet_bytes: Annotated[
        PacketBytes,
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
    unknown_bytes: Annotated[
        Limit,
        Meta(
            description="Bytes of unfinished packets of all clients that have not said who they are; the one with the "
            "longest is closed."
        ),
    ] = 16_777_216
    memory_bytes: Annotated[
        Limit, Meta(description="Bytes kept because of clients, of all kinds together; whatever would add to it waits.")
    ] = 2_147_483_648
    user_bytes: Annotated[Limit, Meta(description="The same for one user; clients without a user count as one.")] = (
        1_610_612_736
    )
    user_sessions: Annotated[Limit, Meta(description="Sessions of one user.")] = 150_000
    user_subscriptions: Annotated[Limit, Meta(description="Subscriptions of all sessions of one user.")] = 1_500_000
    user_retained_messages: Annotated[Limit, Meta(description="Retained messages of one user.")] = 750_000
    user_retained_bytes: Annotated[Limit, Meta(description="Bytes of the retained messages of one user.")] = 201_326_592
    subscriptions: Annotated[Limit, Meta(description="Subscriptions of one session.")] = 10_000
    subscriptions_total: Annotated[Limit, Meta(description="Subscriptions of all sessions.")] = 2_000_000
    queue_messages: Annotated[
        Limit, Meta(description="Messages waiting for one session (mosquitto 1,000, EMQX 1,000).")
    ] = 100_000
    queue_bytes: Annotated[Limit, Meta(description="Bytes waiting for one session.")] = 8_388_608
    queue_bytes_total: Annotated[Limit, Meta(description="Bytes waiting for all sessions together.")] = 1_073_741_824
    spill_messages: Annotated[
        Limit, Meta(description="Messages waiting in the data directory alone for one session whose queue is full.")
    ] = 1_000_000
    spill_bytes: Annotated[Limit, Meta(description="Bytes of those.")] = 268_435_456
    spill_bytes_total: Annotated[Limit, Meta(description="Bytes of those for all sessions together.")] = 4_294_967_296
    user_spill_bytes: Annotated[Limit, Meta(description="Bytes of those for all sessions of one user.")] = 3_221_225_472
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
    producers: Annotated[
        Limit,
        Meta(description="Producers whose last number is remembered ($once); the one unused longest is forgotten."),
    ] = 10_000
    route_cache: Annotated[Count, Meta(description="Topics whose matched subscribers are remembered.")] = 131_072


Absent = Literal["spill", "end", "refuse"]


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
        Literal["refuse", "pause", "oldest"],
        Meta(
            description="A QoS 1 or 2 message meets a full queue: refuse it (MQTT 5: 0x97; 3.1.1: the publisher "
            "waits), let every publisher wait, or drop the oldest one."
        ),
    ] = "refuse"
    absent: Annotated[
        Absent,
        Meta(
            description="A QoS 1 or 2 message meets the full queue of a session whose client is away: let it wait in "
            "the data directory alone, and end the session where there is none or no more may wait there; end the "
            "session at once; or do as `full` says. Where full is oldest, it is not asked."
        ),
    ] = "spill"
    tell_unwanted: Annotated[
        Literal["topic", "content", "never"],
        Meta(
            description="When an acknowledgement says that there was nobody for a message (0x10): if nobody subscribes "
            "to its topic; also if no condition on its content holds, by which publishers can find out the conditions "
            "of others; or never."
        ),
    ] = "topic"
    pause_max_s: Annotated[
        Seconds, Meta(description="How long a publisher waits for a full queue before it is disconnected.")
    ] = 30.0
    server_reference: Annotated[
        str,
        Meta(
            description="Where MQTT 5 clients are sent when this broker keeps as many sessions as it may: they are "
            "refused with 0x9C and this Server Reference, such as `b.example.org:1883`. Empty: they are sent to joined "
            "brokers that have said where (`overlay.reference`), or else refused with 0x97, as others are."
        ),
    ] = ""
    sys_interval_s: Annotated[Seconds, Meta(description="Seconds between two $SYS reports; 0 means no $SYS.")] = 10.0


class Class(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages of some topics: how urgent they are, and how they are treated while they wait.

    The first class whose filter matches a topic gives its level.  The treatment belongs to the level: of several
    classes with one level, the first one's counts.
    """

    name: Annotated[str, Meta(description="What the class is called in counters, $SYS and `tieline top`.")]
    filter: Annotated[str, Meta(description="Topic filter; wildcards as in a subscription.")]
    level: Annotated[Level, Meta(description="0 low, 1 normal, 2 important, 3 urgent.")]
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
    absent: Annotated[
        Absent | None,
        Meta(description="What a message of the class does at the full queue of an absent client; else mqtt.absent."),
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


class Auth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may come in."""

    password_file: Annotated[
        str | None,
        Meta(description="File with one user:argon2id-hash on each line; `tieline passwd FILE USER` writes it."),
    ] = None
    anonymous: Annotated[
        Literal["loopback", "nowhere", "everywhere"],
        Meta(
            description="Where clients that name no user are let in: on listeners that only this machine can reach, "
            "on none, or on all."
        ),
    ] = "loopback"
    failures: Annotated[
        Annotated[int, Meta(ge=1)] | NoLimit,
        Meta(description="Failed logins in a minute after which an address, or a user, is refused unheard."),
    ] = 10
    remember_s: Annotated[
        Seconds,
        Meta(
            description="How long a password that was right is recognised without the slow check, by a keyed hash of "
            "it; 0 checks every time."
        ),
    ] = 60.0
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        Meta(description="Passwords checked at the same time; each check takes a core, and the memory of its hash."),
    ] = 2
    waiting: Annotated[
        Annotated[int, Meta(ge=1)], Meta(description="Logins that wait for a check; more are refused as busy.")
    ] = 128


Action = Literal["read", "write", "subscribe"]
Actions = tuple[Action, ...] | Literal["all"]


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What users may do with topics; the first that matches user, action and topic decides.

    Once there is any rule, what none of them allows is refused.
    """

    filter: Annotated[
        str,
        Meta(description="Topic filter; %u stands for the user's name, %c for the client id, each inside one level."),
    ]
    allow: Annotated[
        Actions | None,
        Meta(description='What it allows; "read" is to receive, "write" to publish; a list of them, or "all".'),
    ] = None
    deny: Annotated[Actions | None, Meta(description="What it denies; a rule has either allow or deny.")] = None
    users: Annotated[
        tuple[str, ...] | None,
        Meta(description="Whom it is about: names, * for everybody, - for clients without one; else everybody."),
    ] = None
    groups: Annotated[tuple[str, ...] | None, Meta(description="Groups whom it is about, beside the users.")] = None

    @property
    def actions(self) -> tuple[Action, ...]:
        """What it speaks of."""
        named = self.deny if self.allow is None else self.allow
        return ("read", "write", "subscribe") if named == "all" else named or ()


class UserLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one user may take, beside the limits of everybody; the first that names the user counts."""

    user: Annotated[str, Meta(description="User name, or * for each user, - for clients without one together.")]
    connections: Annotated[Limit, Meta(description="Open connections of the user.")] = "none"
    messages_per_s: Annotated[
        Rate | NoLimit,
        Meta(description="PUBLISH packets per second, all its connections together; faster ones are not read."),
    ] = "none"
    bytes_per_s: Annotated[
        Rate | NoLimit, Meta(description="Bytes per second, all its connections together; faster ones are not read.")
    ] = "none"
    packet_bytes: Annotated[PacketBytes | NoLimit, Meta(description="Largest packet accepted from the user.")] = "none"
    queue_bytes: Annotated[Limit, Meta(description="Bytes waiting for one session of the user.")] = "none"
    subscriptions: Annotated[Limit, Meta(description="Subscriptions of one session of the user.")] = "none"
    topic_levels: Annotated[Limit, Meta(description="Levels in a topic name or filter of the user.")] = "none"
    bytes: Annotated[Limit, Meta(description="Bytes kept because of the user, of all kinds together.")] = "none"
    sessions: Annotated[Limit, Meta(description="Sessions of the user.")] = "none"
    subscriptions_total: Annotated[Limit, Meta(description="Subscriptions of all its sessions.")] = "none"
    retained_messages: Annotated[Limit, Meta(description="Retained messages that the user published.")] = "none"
    retained_bytes: Annotated[Limit, Meta(description="Bytes of those.")] = "none"
    absent: Annotated[
        Absent | None,
        Meta(description="What happens at a full queue of the user's absent clients; else what the class says."),
    ] = None


class Http(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The live page, metrics and health over HTTP, for the users of MQTT and by its rules (extra ``web``)."""

    url: Annotated[
        str | None,
        Meta(
            description="http://host:port or https://host:port; port 0 takes a free one. Other machines can reach it "
            "only if there are users. If it is left out, `tieline serve` shows the page on this machine, at port 8080 "
            "or the first free one above it."
        ),
    ] = None
    page: Annotated[
        Literal["local", "on", "off"],
        Meta(
            description="Where the live page is served, and MQTT over WebSocket for it at /mqtt: on an address of this "
            "machine alone, on any address, or not at all. With off and without a url nothing is served over HTTP."
        ),
    ] = "local"
    origins: Annotated[
        tuple[str, ...],
        Meta(
            description="How browsers call this server where a proxy stands before it: https://host, with its port if "
            "it has one. Needed only where the url is of this machine alone and browsers are elsewhere."
        ),
    ] = ()
    certificate: Annotated[str | None, Meta(description="PEM file with the certificate chain (https).")] = None
    key: Annotated[str | None, Meta(description="PEM file with the private key (https).")] = None


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


AttributeKind = Literal["number", "integer", "category", "boolean", "timestamp"]


class Attribute(Struct, frozen=True, forbid_unknown_fields=True):
    """One value of an event: what it is called, what it is, and where a message carries it."""

    name: Annotated[str, Meta(description="What conditions call it: letters, digits, underscores and dots.")]
    kind: Annotated[AttributeKind, Meta(description="What it is; a value of another kind counts as missing.")] = (
        "number"
    )
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


class Store(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What outlives the process: sessions, what waits for them, retained messages, the log."""

    engine: Annotated[
        Literal["sqlite", "memory"],
        Meta(description="sqlite keeps it in the data directory, if there is one; memory keeps nothing."),
    ] = "sqlite"


class Log(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The append-only log of messages and events in the data directory, for programs that read it later."""

    capture: Annotated[tuple[str, ...], Meta(description='Topics whose messages are logged; "#" for all but $….')] = ()
    events: Annotated[
        Literal["on", "off"],
        Meta(description="Connections, subscriptions, drops and traffic are logged, in a stream of their own."),
    ] = "off"
    retention_age: Annotated[Age, Meta(description="How long records are kept; older ones are removed.")] = "168h"
    retention_bytes: Annotated[Limit, Meta(description="Bytes of records kept; the oldest are removed.")] = (
        1_073_741_824
    )
    readers: Annotated[
        tuple[str, ...], Meta(description="Readers by name: what they have not read yet is kept, up to hard_bytes.")
    ] = ()
    hard_bytes: Annotated[
        Limit, Meta(description="Bytes above which records are removed, read or not; an alarm says so.")
    ] = 4_294_967_296
    period: Annotated[Duration, Meta(description="Time between two reports of traffic among the events.")] = "10s"
    period_keys: Annotated[
        Count,
        Meta(description="Pairs of publisher, topic, subscriber and class told apart in one period; more are summed."),
    ] = 10_000


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration of one broker."""

    name: Annotated[str, Meta(description="Name of this broker, used in logs, $SYS and its management socket.")] = (
        "tieline"
    )
    data: Annotated[
        str | None, Meta(description="Directory for what outlives the process, and for the management socket.")
    ] = None
    listener: Annotated[tuple[Listener, ...], Meta(description="Where clients connect.")] = (
        Listener(url="tcp://127.0.0.1:1883"),
    )
    limits: Limits = field(default_factory=Limits)
    mqtt: Mqtt = field(default_factory=Mqtt)
    priority: Priority = field(default_factory=Priority)
    content: Content = field(default_factory=Content)
    store: Store = field(default_factory=Store)
    log: Log = field(default_factory=Log)
    overlay: Overlay = field(default_factory=Overlay)
    class_: Annotated[
        tuple[Class, ...], Meta(description="Topic rules that give messages their level; the first match counts.")
    ] = field(default=(), name="class")
    claim: Annotated[tuple[Claim, ...], Meta(description="Who may claim which level.")] = ()
    http: Http = field(default_factory=Http)
    auth: Auth = field(default_factory=Auth)
    groups: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description='Names for several users at once, for rules; such as operators = ["alice", "bob"].'),
    ] = field(default_factory=dict)
    rule: Annotated[tuple[Rule, ...], Meta(description="What users may do with topics; the first match decides.")] = ()
    peer: Annotated[tuple[Peer, ...], Meta(description="Other brokers to be joined with.")] = ()
    limit: Annotated[tuple[UserLimit, ...], Meta(description="What one user may take.")] = ()
    event: Annotated[
        dict[str, Event], Meta(description="Event types, by name: what the messages of some topics say.")
    ] = field(default_factory=dict)


#: One of each table that may be written several times: what the generated pages show for keys without a default.
EXAMPLES: dict[str, Struct] = {
    "listener": Listener(url="tcp://127.0.0.1:1883"),
    "peer": Peer(url="peer://127.0.0.1:7883"),
    "class": Class(name="control", filter="grid/+/cmd/#", level=3),
    "claim": Claim(),
    "rule": Rule(filter="devices/%u/#", allow=("read", "subscribe"), users=("alice",), groups=("operators",)),
    "limit": UserLimit(user="*", connections=10),
    "event": Event(topic="microgrid/+/pcc", routing=("voltage", "frequency")),
    "event.attributes": Attribute(name="voltage", bounds=(0.0, 500.0), path="pcc.voltage"),
}
