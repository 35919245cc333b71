"""Acknowledgements by stride: no packet is looked at singly, a whole chunk is answered with a few slices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tieline.bench.load import packets
from tieline.bench.load.failure import Garbled

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
    check_acks(acks, bytes([packets.PUBREC, packets.PUBCOMP]))
    for run in _REC_OR_COMP.finditer(acks[0::ACK]):
        yield acks[run.start() * ACK], acks[run.start() * ACK : run.end() * ACK]


class Deliveries:
    """Cuts what a QoS 2 subscriber receives into runs of PUBLISH and runs of PUBREL, across chunk borders."""

    def __init__(self, packet: int) -> None:
        publish, release = packets.PUBLISH | 2 << 1, packets.PUBREL
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
