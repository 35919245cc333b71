"""The MQTT 5 packets of these experiments, with a mark in every payload, and what became of each message.

Encoded here and not by ``tieline.wire``, for the reason given in ``tieline.bench.load.packets``: user properties, the
extra header byte, and in every payload the message's number in its flow and when it was sent.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tieline.bench.load import packets
from tieline.bench.load.job import quantile
from tieline.bench.load.packets import NOTHING

#: Every payload opens with the message's number in its flow and the wall clock when it was sent, in nanoseconds.
MARK = struct.Struct("!IQ")


def acknowledge(kind: int, packet_id: int) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP, all with reason "success"."""
    return packets.framed(kind, packet_id.to_bytes(2, "big"))


def with_header_byte(packet: bytes, level: int) -> bytes:
    """The packet as the priority-QoS format has it: one byte after the remaining length, not counted by it."""
    at = 2
    while packet[at - 1] & 0x80:
        at += 1
    return packet[:at] + bytes([level << 6]) + packet[at:]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A PUBLISH that came in."""

    topic: str
    payload: bytes
    qos: int
    packet_id: int

    @property
    def mark(self) -> tuple[int, int]:
        """Number and time of sending."""
        number, sent_ns = MARK.unpack_from(self.payload)
        return number, sent_ns


def arrival(first: int, body: bytes) -> Arrival:
    """A PUBLISH from its first byte and what follows its fixed header."""
    size = int.from_bytes(body[:2], "big")
    at = 2 + size
    qos = first >> 1 & 3
    packet_id = int.from_bytes(body[at : at + 2], "big") if qos else 0
    at += 2 if qos else 0
    length, at = _varint(body, at)
    return Arrival(body[2 : 2 + size].decode(), body[at + length :], qos, packet_id)


class Inbox:
    """Cuts what arrives into packets, across chunk borders."""

    def __init__(self, *, has_header_byte: bool = False) -> None:
        self._extra = 1 if has_header_byte else 0
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The packets completed by this chunk, as (first byte, what follows the fixed header)."""
        data = self._rest + data if self._rest else data
        at = 0
        while (size := packets.length_of(data[at : at + 5])) and len(data) >= (end := at + size + self._extra):
            _, begin = _varint(data, at + 1)
            yield data[at], data[begin + self._extra : end]
            at = end
        self._rest = data[at:]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
        shift += 7


@dataclass(slots=True)
class Tally:
    """One flow as its sender and its receiver saw it; times of the wall clock in nanoseconds."""

    sent: list[int] = field(default_factory=list)
    arrived: dict[int, int] = field(default_factory=dict)
    #: Messages that came twice, and messages that came after a later one of the flow: none should.
    duplicates: int = 0
    disordered: int = 0
    #: The latest message that has come.
    latest: int = -1

    def payload(self, size: int) -> bytes:
        """The payload of the next message, marked with its number and the time."""
        number, now = len(self.sent), time.time_ns()
        self.sent.append(now)
        return MARK.pack(number, now).ljust(size, b".")

    def message(self, topic: str, size: int, user: Mapping[str, str] = NOTHING) -> bytes:
        """The next message, as a QoS 0 packet of 128 bytes to 16 kB."""
        head = 1 + 2 + 2 + len(topic.encode()) + len(packets.properties(user, 5))
        return packets.publish(topic, self.payload(size - head), version=5, user=user)

    def arrival(self, number: int, when_ns: int) -> None:
        """Message ``number`` has arrived."""
        if number in self.arrived:
            self.duplicates += 1
            return
        self.arrived[number] = when_ns
        self.disordered += number < self.latest
        self.latest = max(self.latest, number)

    def received(self, arrival: Arrival, when_ns: int) -> None:
        """One of the messages has arrived."""
        self.arrival(arrival.mark[0], when_ns)

    def before(self, when_ns: int) -> Tally:
        """Only the messages that were sent before this time."""
        count = sum(sent < when_ns for sent in self.sent)
        return Tally(self.sent[:count], {number: came for number, came in self.arrived.items() if number < count})

    @property
    def lost(self) -> int:
        """Messages that have not arrived."""
        return len(self.sent) - len(self.arrived)

    def waits_s(self, missing_s: float | None = None) -> list[float]:
        """Time from send to receive in order of sending; a missing message counts as so long, or not at all."""
        waits = []
        for number, sent in enumerate(self.sent):
            came = self.arrived.get(number)
            if came is not None:
                waits.append((came - sent) / 1e9)
            elif missing_s is not None:
                waits.append(missing_s)
        return waits

    def quantile_s(self, q: float, missing_s: float | None = None) -> float:
        """A quantile of the waits; nothing sent is a wait of zero."""
        return quantile_of(self.waits_s(missing_s), q)


class Flows(dict[str, Tally]):
    """Flows by their topics, all of which lead to one receiver."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__({topic: Tally() for topic in topics})

    def message(self, topic: str, size: int, user: Mapping[str, str] = NOTHING) -> bytes:
        """The next message of one of them, as a packet of this size."""
        return self[topic].message(topic, size, user)

    def received(self, arrival: Arrival, when_ns: int) -> None:
        """A message has arrived."""
        self[arrival.topic].received(arrival, when_ns)

    @property
    def lost(self) -> int:
        """Messages that have not arrived."""
        return sum(flow.lost for flow in self.values())


def quantile_of(waits_s: list[float], q: float) -> float:
    """A nearest-rank quantile of seconds, zero of an empty sample."""
    return quantile(sorted(round(wait * 1e9) for wait in waits_s), q) / 1e9 if waits_s else 0.0
