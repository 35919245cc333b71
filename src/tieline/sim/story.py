"""What happened in a virtual world, told on demand: of one node, of one message, or of all.

A story is kept by whoever asks for one, and costs nothing otherwise.  It listens at the lines: what crosses them is
cut into MQTT packets, and each packet, each new or ended connection, each partition is an entry.  The number of entries
is bounded; the oldest go first, and how many have gone is said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tieline.sim.clock import GENESIS, Clock
from tieline.sim.link import VirtualLink
from tieline.wire.errors import ProtocolError
from tieline.wire.frames import Framer
from tieline.wire.packets import Connect, Packet, Publish

#: Entries that are kept.
_MOST = 100_000
_LARGEST_PACKET = 268_435_460


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """Something that happened, and to whom."""

    #: Seconds since the world began.
    at: float
    #: Whom it is about; the second is empty where there is only one.
    node: str
    other: str
    what: str
    #: Of a message its topic and payload; else empty.
    topic: str = ""
    payload: bytes = b""

    def __str__(self) -> str:
        way = f"{self.node} → {self.other}" if self.other else self.node
        return f"{self.at:10.3f} s  {way}: {self.what}"


class Story:
    """A bounded record of a world."""

    def __init__(self, clock: Clock, *, most: int = _MOST) -> None:
        self._clock = clock
        self._entries: deque[StoryEntry] = deque(maxlen=most)
        #: Entries that had to make room.
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._entries)

    def tell(self, node: str, what: str, other: str = "", *, topic: str = "", payload: bytes = b"") -> None:
        """Add an entry with the time that it is now."""
        self.forgotten += len(self._entries) == self._entries.maxlen
        self._entries.append(StoryEntry(self._clock.now - GENESIS, node, other, what, topic, payload))

    def of(self, node: str) -> Iterator[StoryEntry]:
        """What happened to one node."""
        return (entry for entry in self._entries if node in (entry.node, entry.other))

    def about(self, topic: str, payload: bytes | None = None) -> Iterator[StoryEntry]:
        """The way of one message: of one topic and, if that is not enough, of one payload."""
        return (
            entry for entry in self._entries if entry.topic == topic and (payload is None or entry.payload == payload)
        )

    def all(self) -> Iterator[StoryEntry]:
        """Everything that is still known."""
        return iter(self._entries)

    def listen(self, node: str, other: str, there: VirtualLink, back: VirtualLink) -> None:
        """Hear both directions of a connection that ``node`` has made to ``other``."""
        version = _Version()
        for sender, receiver, link in ((node, other, there), (other, node, back)):
            link.tap = _PacketTap(self, sender, receiver, version, link).take


class _Version:
    """The MQTT version of a connection, which its CONNECT says."""

    number = 5


class _PacketTap:
    """Cuts what arrives over one line into packets; on a line that does not speak MQTT it counts bytes."""

    def __init__(self, story: Story, sender: str, receiver: str, version: _Version, link: VirtualLink) -> None:
        self._story = story
        self._names = sender, receiver
        self._version = version
        self._link = link
        self._framer: Framer | None = None
        self._is_mqtt = True
        self._aliases: dict[int, str] = {}
        self._retried = 0

    def take(self, _now: float, data: bytes) -> None:
        sender, receiver = self._names
        if self._link.retried > self._retried:
            self._story.tell(
                sender, f"{self._link.retried - self._retried} segments were lost and sent again", receiver
            )
            self._retried = self._link.retried
        if not data:
            self._story.tell(sender, "the connection is over", receiver)
            return
        for packet in self._packets(data):
            self._note(packet)

    def _packets(self, data: bytes) -> list[Packet]:
        sender, receiver = self._names
        if self._is_mqtt:
            try:
                self._framer = self._framer or Framer(_LARGEST_PACKET, self._version.number)
                return list(self._framer.feed(data))
            except ProtocolError:
                self._is_mqtt = False
        self._story.tell(sender, f"{len(data)} bytes", receiver)
        return []

    def _note(self, packet: Packet) -> None:
        sender, receiver = self._names
        if isinstance(packet, Connect):
            self._version.number = packet.version
        if not isinstance(packet, Publish):
            self._story.tell(sender, type(packet).__name__.upper(), receiver)
            return
        alias = packet.properties.get("topic_alias")
        if alias is not None and packet.topic:
            self._aliases[alias] = packet.topic
        topic = packet.topic or self._aliases.get(alias or 0, "")
        payload = bytes(packet.payload)
        again = " again" if packet.dup else ""
        what = f"PUBLISH{again} {topic}, QoS {packet.qos}, {len(payload)} bytes"
        self._story.tell(sender, what, receiver, topic=topic, payload=payload)
