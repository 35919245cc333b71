"""What travels: shared immutable records of published messages, and their bytes on the wire.

Three kinds wait in queues.  A :class:`Message` is the general one.  A :class:`Burst` is the common case kept as it
came: one or more QoS 0 packets of one topic and one length, back to back in the bytes they arrived in, with no
properties.  A burst reaches a subscriber of the same protocol version unchanged, so a thousand messages cost one list
entry.  A :class:`Bundle` is the same for packets of several topics that go to the same receivers; wherever anything has
to be known of its messages it is taken apart into bursts first.

Packet id, topic alias, subscription identifiers and remaining expiry are not part of a record: they are arguments of
the functions here, bound when the record is popped for writing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tieline.core.holdings import Owner
from tieline.wire.fields import encode_varint
from tieline.wire.frames import publish_head

#: Added to payload, topic and properties when a queue counts bytes: what the record itself takes, about.
OVERHEAD = 160


class Origin:
    """Who a message came from; one object for all messages of a session."""

    __slots__ = ("_later", "broker", "client", "epoch", "is_entering", "moves", "owner", "region")

    def __init__(  # who it is, and by whom it came
        self,
        client: str,
        epoch: int = 0,
        owner: Owner | None = None,
        broker: str = "",
        region: str = "",
        *,
        is_entering: bool = False,
    ) -> None:
        #: The client id of who published it; empty for the broker itself.
        self.client = client
        #: A number that changes with every new session of that client id, also across restarts; 0 if it is not known.
        self.epoch = epoch
        #: On whose account the broker keeps what it retains of them; None for the broker itself.
        self.owner = owner
        #: The broker that accepted them, or the gateway that brought them; empty for this one.
        self.broker = broker
        #: The region of brokers where they were published; empty for that of this broker.
        self.region = region
        #: This broker is the gateway by which they come into its region: they go on to others from here.
        self.is_entering = is_entering
        #: How often the session had come to another broker by then: of what two brokers have accepted, this tells which
        #: was first.
        self.moves = 0
        self._later: Origin | None = None

    def moved(self, moves: int) -> Origin:
        """The same publisher when its session had moved so often."""
        if self._later is None or self._later.moves != moves:
            own = self.client, self.epoch, self.owner, self.broker, self.region
            self._later = Origin(*own, is_entering=self.is_entering)
            self._later.moves = moves
        return self._later

    @property
    def publisher(self) -> str:
        """The client id, for other brokers: behind another region and U+0000, which no client id has."""
        return f"{self.region}\0{self.client}" if self.region else self.client

    def __repr__(self) -> str:
        return f"<Origin {self.client or 'the broker'}, session {self.epoch}>"


#: Where messages come from that nobody sent.
THE_BROKER = Origin("")


def publish_bytes(  # one argument per field of the packet
    first: int, topic: bytes, packet_id: int, properties: bytes | None, payload: bytes
) -> bytes:
    """One PUBLISH packet; ``properties`` is None in 3.1.1, where the packet has no such field."""
    head = len(topic).to_bytes(2, "big") + topic
    if packet_id:
        head += packet_id.to_bytes(2, "big")
    if properties is not None:
        head += encode_varint(len(properties)) + properties
    return b"".join((first.to_bytes(1, "big"), encode_varint(len(head) + len(payload)), head, payload))


class Message:
    """One published message, shared by every queue it waits in."""

    __slots__ = (
        "at",
        "expires",
        "heat",
        "is_owed",
        "level",
        "number",
        "origin",
        "parts4",
        "parts5",
        "payload",
        "properties",
        "qos",
        "retain",
        "size",
        "taxon",
        "topic",
    )

    messages = 1

    def __init__(  # what a message is; made once per packet on the hot path: positional
        self,
        topic: bytes,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        properties: bytes = b"",
        expires: float | None = None,
        origin: Origin = THE_BROKER,
        level: int = 1,
        at: float = 0.0,
        heat: float = 0,
        taxon: int = 1,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        #: MQTT 5 properties that are sent on unaltered, encoded, without their length.
        self.properties = properties
        #: When it may no longer be delivered, in the broker's time.
        self.expires = expires
        #: Who sent it.
        self.origin = origin
        #: How urgent it is, 0 to 3; by topic rules alone, the ``taxon``.
        self.level = level
        self.taxon = taxon
        #: When it arrived, in the broker's time.
        self.at = at
        #: How hot its topic was then: how many subscribers it had, or what somebody said.
        self.heat = heat
        #: What the store calls it; 0 while it does not know it.
        self.number = 0
        #: It was acknowledged because its receivers had promised room: it is queued even when memory is short.
        self.is_owed = False
        self.size = len(topic) + len(payload) + len(properties) + OVERHEAD
        #: What surrounds the packet id on the wire, per protocol version; made on first use, or taken from the bytes
        #: in which the message came.  Without properties, the tail is the payload itself, which then is there once.
        self.parts4: tuple[bytes, bytes] | None = None
        self.parts5: tuple[bytes, bytes] | None = None

    def __repr__(self) -> str:
        return f"<Message {self.topic.decode()} {len(self.payload)} B QoS {self.qos}{' retain' if self.retain else ''}>"

    def afresh(self) -> Message:
        """The same message, one that the store does not know: it may have forgotten the one that it knew."""
        same = Message(
            self.topic,
            self.payload,
            self.qos,
            retain=self.retain,
            properties=self.properties,
            expires=self.expires,
            origin=self.origin,
            level=self.level,
            at=self.at,
            heat=self.heat,
            taxon=self.taxon,
        )
        same.parts4, same.parts5 = self.parts4, self.parts5
        return same

    def parts(self, version: int) -> tuple[bytes, bytes]:
        """What surrounds the packet id of a QoS 1 or 2 packet: the head after its first byte, and the tail.

        In MQTT 5 a message without properties has a zero between the packet id and the tail, which is not in either.
        """
        cached = self.parts4 if version == 4 else self.parts5
        if cached is None:
            tail = self.payload
            length = len(self.topic) + len(tail) + 4
            if version == 5:
                if self.properties:
                    tail = b"".join((encode_varint(len(self.properties)), self.properties, tail))
                    length = len(self.topic) + len(tail) + 4
                else:
                    length += 1
            head = encode_varint(length) + len(self.topic).to_bytes(2, "big") + self.topic
            cached = (head, tail)
            if version == 4:
                self.parts4 = cached
            else:
                self.parts5 = cached
        return cached


class Burst:
    """QoS 0 packets of one topic and one length, exactly as they were received."""

    __slots__ = (
        "at",
        "head",
        "heat",
        "largest",
        "level",
        "messages",
        "origin",
        "packets",
        "size",
        "stride",
        "taxon",
        "topic",
        "version",
    )

    qos = 0
    retain = False
    is_owed = False
    expires: float | None = None
    properties = b""

    def __init__(  # made once per run of packets on the hot path: positional
        self,
        packets: bytes,
        messages: int,
        head: int,
        topic: bytes,
        version: int,
        origin: Origin,
        level: int,
        at: float,
        heat: float,
        taxon: int,
    ) -> None:
        #: ``messages`` packets of ``stride`` bytes each.
        self.packets = packets
        self.messages = messages
        self.size = len(packets)
        self.stride = self.largest = self.size // messages
        #: Where the payload begins in each packet.
        self.head = head
        self.topic = topic
        #: The protocol version in which the packets are encoded.
        self.version = version
        self.origin = origin
        #: As in a message.
        self.level = level
        self.at = at
        self.heat = heat
        self.taxon = taxon

    def __repr__(self) -> str:
        return f"<Burst {self.topic.decode()} {self.messages} x {self.stride} B>"

    def cut(self, messages: int) -> tuple[Burst, Burst]:
        """The first ``messages`` packets, and the rest."""
        return self.part(0, messages), self.part(messages, self.messages)

    def part(self, begin: int, end: int) -> Burst:
        """The packets from one number up to another."""
        if end - begin == self.messages:
            return self
        packets = self.packets[begin * self.stride : end * self.stride]
        rest = (self.head, self.topic, self.version, self.origin, self.level, self.at, self.heat, self.taxon)
        return Burst(packets, end - begin, *rest)

    def bursts(self) -> Iterator[Burst]:
        """Itself, as the only one."""
        yield self

    def deal(self, hands: int) -> Iterator[Burst]:
        """Divide into at most so many bursts of about equal length."""
        rest: Burst = self
        for hand in range(hands, 1, -1):
            if rest.messages <= 1:
                break
            part, rest = rest.cut(-(-rest.messages // hand))
            yield part
        yield rest

    def payloads(self) -> Iterator[bytes]:
        """The payload of each packet, in order."""
        for start in range(0, self.size, self.stride):
            yield self.packets[start + self.head : start + self.stride]


class Bundle:
    """QoS 0 packets of one publisher for the same receivers, exactly as they were received."""

    __slots__ = ("at", "heat", "largest", "level", "messages", "origin", "packets", "size", "version")

    qos = 0

    def __init__(  # made once per run of packets on the hot path: positional
        self,
        packets: bytes,
        messages: int,
        largest: int,
        version: int,
        origin: Origin,
        level: int,
        at: float,
        heat: float,
    ) -> None:
        self.packets = packets
        self.messages = messages
        self.size = len(packets)
        #: The length of the longest packet.
        self.largest = largest
        #: As in a burst.
        self.version = version
        self.origin = origin
        self.level = level
        self.at = at
        self.heat = heat

    def __repr__(self) -> str:
        return f"<Bundle {self.messages} messages, {self.size} B>"

    def bursts(self) -> Iterator[Burst]:
        """The messages, each as a burst of its own."""
        packets, pos = self.packets, 0
        while pos < self.size:
            head = publish_head(packets, pos, self.size)
            assert head is not None, "a bundle is made of whole packets"
            start, top, end = head
            payload = top - pos + (self.version == 5)
            rest = (packets[start:top], self.version, self.origin, self.level, self.at, self.heat, self.level)
            yield Burst(packets[pos:end], 1, payload, *rest)
            pos = end


#: What has one topic.
Item = Message | Burst
#: What waits in a queue.
Queued = Message | Burst | Bundle
