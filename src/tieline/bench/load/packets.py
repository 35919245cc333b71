"""The few packets the generator sends, encoded here and not by ``tieline.wire``, and acknowledgements by the chunk.

A generator that shared its encoder with one of the brokers would share that broker's mistakes too.  No acknowledgement
is looked at singly: a whole chunk is answered with a few slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tieline.bench.load.job import Garbled

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


def connect(client_id: str, *, version: int, keep_alive_s: int = 600, clean: bool = True) -> bytes:
    """CONNECT without will, user or property; ``clean`` begins a session anew and, in 3.1.1, ends it with itself."""
    properties = b"\x00" if version == 5 else b""
    head = text("MQTT") + bytes([version, 0x02 if clean else 0x00]) + keep_alive_s.to_bytes(2, "big")
    return framed(0x10, head + properties + text(client_id))


def subscribe(packet_id: int, filters: Sequence[str], *, qos: int, version: int) -> bytes:
    """SUBSCRIBE to all filters at one QoS."""
    properties = b"\x00" if version == 5 else b""
    body = b"".join(text(name) + bytes([qos]) for name in filters)
    return framed(0x82, packet_id.to_bytes(2, "big") + properties + body)


def publish(topic: str, payload: bytes) -> bytes:
    """PUBLISH with QoS 0 in 3.1.1."""
    return framed(PUBLISH, text(topic) + payload)


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
