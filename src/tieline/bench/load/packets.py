"""The few packets the generator sends, encoded here and not by ``tieline.wire``, and acknowledgements by the chunk.

A generator that shared its encoder with one of the brokers would share that broker's mistakes too.  No acknowledgement
is looked at singly: a whole chunk is answered with a few slices.

The messages of a publisher are encoded once and sent round and round.  All packets of such a stream have one length, so
a receiver counts packets by counting bytes and finds every packet identifier by a stride.  The payload opens with the
publisher's number and the position in the stream, so a receiver can tell which message it holds, and whether what
arrived is what was sent.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tieline.bench.load.job import Garbled
from tieline.wire.topics import matches

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK = 0x20, 0x30, 0x40, 0x50, 0x62, 0x70, 0x90
DISCONNECT = b"\xe0\x00"


def varint(number: int) -> bytes:
    """A number as MQTT writes the remaining length of a packet."""
    out = bytearray()
    while True:
        number, low = divmod(number, 128)
        out.append(low | 0x80 if number else low)
        if not number:
            return bytes(out)


def text(value: str) -> bytes:
    """A string as MQTT writes it: two bytes of length, then UTF-8."""
    raw = value.encode()
    return len(raw).to_bytes(2, "big") + raw


def framed(first: int, body: bytes) -> bytes:
    """A packet from its first byte and everything after the remaining length."""
    return bytes([first]) + varint(len(body)) + body


_USER_PROPERTY = b"\x26"
NOTHING: Mapping[str, str] = {}


def properties(user: Mapping[str, str], version: int) -> bytes:
    """The property section of a packet, which holds nothing but user properties; 3.1.1 has none."""
    body = b"".join(_USER_PROPERTY + text(name) + text(value) for name, value in user.items())
    return varint(len(body)) + body if version == 5 else b""


def connect(
    client_id: str, *, version: int, keep_alive_s: int = 600, clean: bool = True, user: Mapping[str, str] = NOTHING
) -> bytes:
    """CONNECT without will and user name; ``clean`` begins a session anew and, in 3.1.1, ends it with itself."""
    head = text("MQTT") + bytes([version, 0x02 if clean else 0x00]) + keep_alive_s.to_bytes(2, "big")
    return framed(0x10, head + properties(user, version) + text(client_id))


def subscribe(
    packet_id: int, filters: Sequence[str], *, qos: int, version: int, user: Mapping[str, str] = NOTHING
) -> bytes:
    """SUBSCRIBE to all filters at one QoS."""
    body = b"".join(text(name) + bytes([qos]) for name in filters)
    return framed(0x82, packet_id.to_bytes(2, "big") + properties(user, version) + body)


def publish(  # as the packet has fields
    topic: str,
    payload: bytes,
    *,
    qos: int = 0,
    packet_id: int = 0,
    version: int = 4,
    user: Mapping[str, str] = NOTHING,
) -> bytes:
    """PUBLISH without DUP and RETAIN."""
    identifier = packet_id.to_bytes(2, "big") if qos else b""
    return framed(PUBLISH | qos << 1, text(topic) + identifier + properties(user, version) + payload)


def length_of(data: bytes) -> int:
    """Size of the packet at the start of ``data``, 0 while its header is incomplete."""
    size = shift = 0
    for at in range(1, min(len(data), 5)):
        size |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return size + at + 1
        shift += 7
    return 0


#: Length of every acknowledgement in MQTT 3.1.1.
ACK = 4
_REC_OR_COMP = re.compile(rb"\x50+|\x70+")


def answer(publishes: bytes, *, packet: int, identifier: int, kind: int) -> bytes:
    """One acknowledgement of ``kind`` for each of the equally long packets, in order."""
    count = len(publishes) // packet
    out = bytearray(ACK * count)
    out[0::ACK] = bytes([kind]) * count
    out[1::ACK] = b"\x02" * count
    out[2::ACK] = publishes[identifier::packet]
    out[3::ACK] = publishes[identifier + 1 :: packet]
    return bytes(out)


def retyped(acks: bytes, kind: int) -> bytes:
    """The same packet identifiers under another packet type."""
    out = bytearray(acks)
    out[0::ACK] = bytes([kind]) * (len(acks) // ACK)
    return bytes(out)


def check_acks(acks: bytes, kinds: bytes) -> None:
    """Whole acknowledgements of these types only."""
    types = acks[0::ACK]
    if types.translate(None, kinds) or acks[1::ACK].count(2) != len(acks) // ACK:
        raise Garbled(f"expected acknowledgements, got {acks[:16].hex(' ')}")


def runs_of_acks(acks: bytes) -> Iterator[tuple[int, bytes]]:
    """Successive acknowledgements of one type (PUBREC or PUBCOMP), as (type, bytes)."""
    check_acks(acks, bytes([PUBREC, PUBCOMP]))
    for run in _REC_OR_COMP.finditer(acks[0::ACK]):
        yield acks[run.start() * ACK], acks[run.start() * ACK : run.end() * ACK]


class Deliveries:
    """Cuts what a QoS 2 subscriber receives into runs of PUBLISH and runs of PUBREL, across chunk borders."""

    def __init__(self, packet: int) -> None:
        publish, release = PUBLISH | 2 << 1, PUBREL
        self._runs = re.compile(rb"(?s:(?:\x%02x.{%d})++|(?:\x%02x\x02..)++)" % (publish, packet - 1, release))
        self._firsts = {publish, release}
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The runs completed by this chunk, as (first byte, bytes)."""
        data = self._rest + data
        at = 0
        while run := self._runs.match(data, at):
            at = run.end()
            yield data[run.start()], run.group()
        self._rest = data[at:]
        if self._rest and self._rest[0] not in self._firsts:
            raise Garbled(f"expected PUBLISH or PUBREL, got {self._rest[:16].hex(' ')}")


MARK = b"%04x%08x"
MARK_BYTES = 12
#: Packet identifiers stay below this, a multiple of every window, so that none is reused while in flight.
_IDENTIFIERS = 32_768


@dataclass(frozen=True, slots=True)
class PacketLayout:
    """Where things stand in every packet of a stream."""

    packet: int
    #: First byte, remaining length and topic length: the same bytes in every packet.
    head: bytes
    topic: slice
    identifier: int
    payload: slice


@dataclass(frozen=True, slots=True)
class Stream:
    """Whole packets, one after another, and how to read them."""

    data: memoryview
    count: int
    topics: Sequence[str]
    layout: PacketLayout

    def packet(self, position: int) -> bytes:
        """The message at this position."""
        size = self.layout.packet
        return bytes(self.data[position * size : (position + 1) * size])

    def topic(self, position: int) -> str:
        """The topic of the message at this position."""
        return self.topics[position % len(self.topics)]


def layout_of(*, topic_bytes: int, payload: int, qos: int, version: int) -> PacketLayout:
    """The layout of a PUBLISH without DUP and RETAIN."""
    identifier = 2 if qos else 0
    own = identifier + (1 if version == 5 else 0)
    remaining = 2 + topic_bytes + own + payload
    head = bytes([PUBLISH | qos << 1]) + varint(remaining) + topic_bytes.to_bytes(2, "big")
    after_topic = len(head) + topic_bytes
    start = after_topic + own
    return PacketLayout(
        packet=start + payload,
        head=head,
        topic=slice(len(head), after_topic),
        identifier=after_topic,
        payload=slice(start, start + payload),
    )


def encode(publisher: int, topics: Sequence[str], *, payload: int, qos: int, version: int, count: int) -> Stream:
    """At least ``count`` messages that take the topics in turn, rounded up so that every topic comes equally often."""
    if payload < MARK_BYTES:
        raise ValueError(f"a payload holds its mark of {MARK_BYTES} bytes")
    names = [topic.encode() for topic in topics]
    if len({len(name) for name in names}) != 1:
        raise ValueError("the topics of a stream have one length")
    count = -(-count // len(topics)) * len(topics)
    layout = layout_of(topic_bytes=len(names[0]), payload=payload, qos=qos, version=version)
    nothing = properties(NOTHING, version)
    filler = random.Random(publisher).randbytes(payload - MARK_BYTES)
    parts: list[bytes] = []
    for position in range(count):
        identifier = (position % _IDENTIFIERS + 1).to_bytes(2, "big") if qos else b""
        mark = MARK % (publisher, position)
        parts += (layout.head, names[position % len(names)], identifier, nothing, mark, filler)
    return Stream(data=memoryview(b"".join(parts)), count=count, topics=topics, layout=layout)


def check_deliveries(data: bytes, topic_filter: str, streams: Sequence[Stream]) -> int:
    """Compare a subscriber's first packets with what each publisher sent; returns the number compared.

    ``data`` holds whole packets from the very first one on, so each publisher's messages that match the
    filter must appear from the beginning of its stream, gaplessly, interleaved in any way.
    """
    layout = streams[0].layout
    wanted = [_matching(stream, topic_filter) for stream in streams]
    count = len(data) // layout.packet
    for number in range(count):
        packet = data[number * layout.packet : (number + 1) * layout.packet]
        payload = packet[layout.payload]
        try:
            publisher, position = int(payload[:4], 16), int(payload[4:MARK_BYTES], 16)
            stream, expected = streams[publisher], next(wanted[publisher])
        except (ValueError, IndexError, StopIteration) as error:
            raise Garbled(f"packet {number} is none that was sent: {packet[:32].hex(' ')}") from error
        if position != expected:
            raise Garbled(f"publisher {publisher}: message {expected} was due, message {position} came")
        sent = stream.data[position * layout.packet : (position + 1) * layout.packet]
        if not packet.startswith(layout.head) or packet[layout.topic] != sent[layout.topic]:
            raise Garbled(f"publisher {publisher}, message {position}: header or topic differs")
        if payload != sent[layout.payload]:
            raise Garbled(f"publisher {publisher}, message {position}: payload differs")
    return count


def _matching(stream: Stream, topic_filter: str) -> Iterator[int]:
    """Positions of the messages that the filter selects, round and round."""
    while True:
        found = False
        for position in range(stream.count):  # lazily: a stream may have a hundred thousand topics
            if matches(topic_filter, stream.topic(position)):
                found = True
                yield position
        if not found:
            return
