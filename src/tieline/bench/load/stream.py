"""A publisher's messages, encoded once and sent round and round: equal lengths, different contents.

All packets of a stream have one length, so a receiver counts packets by counting bytes and finds every
packet identifier by a stride.  The payload opens with the publisher's number and the position in the
stream, so a receiver can tell which message it holds, and whether what arrived is what was sent.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tieline.bench.load import packets
from tieline.bench.load.job import Garbled
from tieline.wire.topics import matches

MARK = b"%04x%08x"
MARK_BYTES = 12
#: Packet identifiers stay below this, a multiple of every window, so that none is reused while in flight.
_IDENTIFIERS = 32_768


@dataclass(frozen=True, slots=True)
class Layout:
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
    layout: Layout

    def topic(self, position: int) -> str:
        """The topic of the message at this position."""
        return self.topics[position % len(self.topics)]


def layout_of(*, topic_bytes: int, payload: int, qos: int, version: int) -> Layout:
    """The layout of a PUBLISH without DUP and RETAIN."""
    identifier = 2 if qos else 0
    properties = 1 if version == 5 else 0
    remaining = 2 + topic_bytes + identifier + properties + payload
    head = bytes([packets.PUBLISH | qos << 1]) + packets.varint(remaining) + topic_bytes.to_bytes(2, "big")
    after_topic = len(head) + topic_bytes
    start = after_topic + identifier + properties
    return Layout(
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
    properties = b"\x00" if version == 5 else b""
    filler = random.Random(publisher).randbytes(payload - MARK_BYTES)
    parts: list[bytes] = []
    for position in range(count):
        identifier = (position % _IDENTIFIERS + 1).to_bytes(2, "big") if qos else b""
        mark = MARK % (publisher, position)
        parts += (layout.head, names[position % len(names)], identifier, properties, mark, filler)
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
