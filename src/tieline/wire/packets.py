"""One plain dataclass for each control packet of MQTT 3.1.1 and 5.

The classes serve both versions: what a version cannot say is left at its default by the decoder and left out
by the encoder.  Those that every visit of a client brings say themselves how they are made, because what a dataclass
writes for that is never compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tieline.wire.packet_type import PacketType
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

__all__ = [
    "Auth",
    "Connack",
    "Connect",
    "Disconnect",
    "Packet",
    "PacketType",
    "Pingreq",
    "Pingresp",
    "Puback",
    "Pubcomp",
    "Publish",
    "Pubrec",
    "Pubrel",
    "Suback",
    "Subscribe",
    "Subscription",
    "Unsuback",
    "Unsubscribe",
    "Will",
]


@dataclass(slots=True, kw_only=True)
class Will:
    """The message that a CONNECT leaves with the server."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True, init=False)
class Connect:
    """A client introduces itself; ``version`` is the protocol level, 4 for MQTT 3.1.1 and 5 for MQTT 5."""

    version: int
    clean_start: bool
    keep_alive: int
    client_id: str
    will: Will | None
    username: str | None
    password: bytes | None
    properties: Properties

    # The fields of the packet, as the specification lists them.
    def __init__(
        self,
        *,
        version: int,
        clean_start: bool = True,
        keep_alive: int = 0,
        client_id: str = "",
        will: Will | None = None,
        username: str | None = None,
        password: bytes | None = None,
        properties: Properties | None = None,
    ) -> None:
        self.version = version
        self.clean_start = clean_start
        self.keep_alive = keep_alive
        self.client_id = client_id
        self.will = will
        self.username = username
        self.password = password
        self.properties = {} if properties is None else properties


@dataclass(slots=True, kw_only=True, init=False)
class Connack:
    """The server's answer to a CONNECT."""

    session_present: bool
    reason: Reason
    properties: Properties

    def __init__(
        self,
        *,
        session_present: bool = False,
        reason: Reason = Reason.SUCCESS,
        properties: Properties | None = None,
    ) -> None:
        self.session_present = session_present
        self.reason = reason
        self.properties = {} if properties is None else properties


@dataclass(slots=True, kw_only=True)
class Publish:
    """An application message on its way."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    #: 0 exactly when the QoS is 0.
    packet_id: int = 0
    properties: Properties = field(default_factory=Properties)
    #: Set by the decoder for MQTT 5: the property bytes that go on to the subscribers, ready to be sent.
    forward: bytes = b""


@dataclass(slots=True, kw_only=True)
class Puback:
    """QoS 1: the receiver has the message."""

    packet_id: int
    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True)
class Pubrec:
    """QoS 2, first answer: the receiver has the message."""

    packet_id: int
    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True)
class Pubrel:
    """QoS 2: the sender has forgotten the message and keeps only its identifier."""

    packet_id: int
    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True)
class Pubcomp:
    """QoS 2, last answer: the identifier is free again."""

    packet_id: int
    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True, init=False)
class Subscription:
    """One topic filter of a SUBSCRIBE with its options; 3.1.1 has only the QoS."""

    filter: str
    qos: int
    no_local: bool
    retain_as_published: bool
    retain_handling: int

    def __init__(
        self,
        *,
        filter: str,
        qos: int = 0,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
    ) -> None:
        self.filter = filter
        self.qos = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.retain_handling = retain_handling


@dataclass(slots=True, kw_only=True, init=False)
class Subscribe:
    """A client asks for messages."""

    packet_id: int
    subscriptions: tuple[Subscription, ...]
    properties: Properties

    def __init__(
        self,
        *,
        packet_id: int,
        subscriptions: tuple[Subscription, ...],
        properties: Properties | None = None,
    ) -> None:
        self.packet_id = packet_id
        self.subscriptions = subscriptions
        self.properties = {} if properties is None else properties


@dataclass(slots=True, kw_only=True, init=False)
class Suback:
    """One code for each filter of the SUBSCRIBE, in its order [MQTT-3.9.3-1]."""

    packet_id: int
    reasons: tuple[int, ...]
    properties: Properties

    def __init__(
        self,
        *,
        packet_id: int,
        reasons: tuple[int, ...],
        properties: Properties | None = None,
    ) -> None:
        self.packet_id = packet_id
        self.reasons = reasons
        self.properties = {} if properties is None else properties


@dataclass(slots=True, kw_only=True)
class Unsubscribe:
    """A client takes topic filters back."""

    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True)
class Unsuback:
    """One code for each filter of the UNSUBSCRIBE [MQTT-3.11.3-1]; none in 3.1.1."""

    packet_id: int
    reasons: tuple[int, ...] = ()
    properties: Properties = field(default_factory=Properties)


@dataclass(slots=True, kw_only=True)
class Pingreq:
    """A client shows that it is alive."""


@dataclass(slots=True, kw_only=True)
class Pingresp:
    """The server shows that it is alive."""


@dataclass(slots=True, kw_only=True, init=False)
class Disconnect:
    """The last packet of a connection; in 3.1.1 only a client sends it, and it says nothing more."""

    reason: Reason
    properties: Properties

    def __init__(
        self,
        *,
        reason: Reason = Reason.NORMAL_DISCONNECTION,
        properties: Properties | None = None,
    ) -> None:
        self.reason = reason
        self.properties = {} if properties is None else properties


@dataclass(slots=True, kw_only=True)
class Auth:
    """One step of extended authentication, MQTT 5 only."""

    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


Packet = (
    Connect
    | Connack
    | Publish
    | Puback
    | Pubrec
    | Pubrel
    | Pubcomp
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)
