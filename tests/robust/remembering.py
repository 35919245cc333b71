"""Clients that remember everything they were told, over connections that may end at any moment.

They keep their own session state, as real ones would on flash memory: what was not acknowledged is sent again after
each reconnection, QoS 2 packet ids are remembered until they are released.  Every message carries a number that counts
its flow (publisher, topic, QoS).
"""

from __future__ import annotations

import socket
from collections import defaultdict
from contextlib import suppress
from typing import Final

from tests.kits.patience import PATIENCE_S
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Connack,
    Connect,
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
)
from tieline.wire.reason import Reason

#: Which messages belong together: publisher, topic, QoS.
Flow = tuple[str, str, int]

_LARGEST: Final = 268_435_460
#: Unacknowledged messages of one publisher.
WINDOW: Final = 60


class Client:
    """One MQTT client over a socket that may end at any moment; what it remembers outlives the socket."""

    def __init__(self, client_id: str, version: int, *, is_kept: bool = True) -> None:
        self.client_id = client_id
        self.version = version
        #: Its session outlives its connections; otherwise each begins a new one.
        self.is_kept = is_kept
        self.sock: socket.socket | None = None
        self._framer = Framer(_LARGEST, version)
        self._out = b""
        self.is_welcome = False
        #: The broker has said once that it keeps the session.
        self.is_known = False

    def connect(self, port: int) -> None:
        """Begin a connection; the answer comes later."""
        self.sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self._framer = Framer(_LARGEST, self.version)
        self._out = b""
        self.is_welcome = False
        connect = Connect(version=self.version, client_id=self.client_id, clean_start=not self.is_kept)
        if self.version == 5 and self.is_kept:
            connect.properties = {"session_expiry_interval": 100_000}
        self.send(connect)

    @property
    def is_connected(self) -> bool:
        """There is a socket."""
        return self.sock is not None

    def hang_up(self) -> None:
        """The connection is gone."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None
        self.is_welcome = False

    def send(self, *packets: Packet) -> None:
        """Write what the socket takes; the rest with the next call."""
        self._out += b"".join(encode(packet, self.version) for packet in packets)
        if self.sock is not None and self._out:
            with suppress(BlockingIOError):
                try:
                    self._out = self._out[self.sock.send(self._out) :]
                except (BrokenPipeError, ConnectionResetError):
                    self.hang_up()

    def read(self) -> None:
        """Handle what has arrived."""
        assert self.sock is not None
        try:
            data = self.sock.recv(262_144)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.hang_up()
            return
        for packet in self._framer.feed(data):
            if not self.is_connected:
                return
            if isinstance(packet, Connack):
                if packet.reason:
                    self.refused()
                    return
                if self.is_known and self.is_anew_by(packet):
                    self.session_lost()
                self.is_known = self.is_kept
                self.is_welcome = True
                self.welcomed()
            else:
                self.handle(packet)
        self.send()

    def refused(self) -> None:
        """It was not let in."""
        self.hang_up()

    def is_anew_by(self, connack: Connack) -> bool:
        """Whether the session that it had may be gone."""
        return not connack.session_present

    def welcomed(self) -> None:
        """CONNACK has come."""

    def session_lost(self) -> None:
        """There is no session although the broker has kept one."""
        raise AssertionError(f"the session of {self.client_id} was lost")

    def handle(self, packet: Packet) -> None:
        """Anything else has come."""
        raise NotImplementedError


class Publisher(Client):
    """Publishes numbered messages with one QoS to a few topics, and sends again what was not acknowledged."""

    def __init__(
        self, client_id: str, version: int, qos: int, topics: tuple[str, ...], *, retain: bool = False
    ) -> None:
        super().__init__(client_id, version)
        self.qos = qos
        self.topics = topics
        self.retain = retain
        self.sent: dict[str, int] = dict.fromkeys(topics, 0)
        #: The highest number of each topic that the broker has taken over.
        self.acknowledged: dict[str, int] = dict.fromkeys(topics, -1)
        #: Unacknowledged messages by packet id, in order; None once PUBREC has come.
        self._open: dict[int, Publish | None] = {}
        self._next = 0

    @property
    def is_settled(self) -> bool:
        """Everything is acknowledged."""
        return not self._open

    def write(self, topic: str, number: int) -> bytes:
        """What a message of a topic says."""
        return f"{self.client_id} {self.qos} {number}".encode()

    def number_of(self, message: Publish) -> int:
        """Which message of its topic it is."""
        return int(message.payload.split()[2])

    def welcomed(self) -> None:
        for packet_id, message in self._open.items():
            if message is None:
                self.send(Pubrel(packet_id=packet_id))
            else:
                message.dup = True
                self.send(message)

    def publish(self, count: int) -> None:
        """Up to so many more messages, within the window."""
        if not self.is_welcome:
            return
        packets: list[Packet] = []
        for _ in range(min(count, WINDOW - len(self._open))):
            topic = self.topics[self._next % len(self.topics)]
            self._next += 1
            # the least free one: a broker that forgets that an id was released takes the next message for the last one
            packet_id = next(number for number in range(1, WINDOW + 1) if number not in self._open)
            payload = self.write(topic, self.sent[topic])
            self.sent[topic] += 1
            message = Publish(topic=topic, payload=payload, qos=self.qos, packet_id=packet_id, retain=self.retain)
            self._open[packet_id] = message
            packets.append(message)
        self.send(*packets)

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, Puback | Pubrec) and packet.reason >= Reason.UNSPECIFIED_ERROR:
            # refused, by a broker that has just lost its writer: the message is still ours, and goes again in its place
            self.hang_up()
            return
        if isinstance(packet, Puback | Pubrec):
            message = self._open.get(packet.packet_id)
            if message is not None:
                self.acknowledged[message.topic] = self.number_of(message)
        if isinstance(packet, Puback | Pubcomp):
            self._open.pop(packet.packet_id, None)
        elif isinstance(packet, Pubrec):
            if packet.packet_id in self._open:
                self._open.pop(packet.packet_id)
                self._open[packet.packet_id] = None
            self.send(Pubrel(packet_id=packet.packet_id))


class Subscriber(Client):
    """Takes everything, acknowledges it, and remembers what it has got."""

    def __init__(self, client_id: str, version: int, qos: int, filter_: str, *, is_kept: bool = True) -> None:
        super().__init__(client_id, version, is_kept=is_kept)
        self.qos = qos
        self.filter = filter_
        self.is_subscribed = False
        #: Numbers in the order in which they came, by flow; with QoS 2 what the application would have seen.
        self.got: dict[Flow, list[int]] = defaultdict(list)
        #: QoS 2 packet ids that were received and not released.
        self._received: set[int] = set()

    def welcomed(self) -> None:
        if not self.is_kept:
            self.is_subscribed = False
            self._received.clear()
        if not self.is_subscribed:
            self.send(Subscribe(packet_id=1, subscriptions=self.wishes()))

    def wishes(self) -> tuple[Subscription, ...]:
        """What it subscribes to."""
        return (Subscription(filter=self.filter, qos=self.qos),)

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, Suback):
            self.is_subscribed = True
        elif isinstance(packet, Publish):
            if packet.qos < 2:
                self.take(packet)
            elif packet.packet_id not in self._received:
                self._received.add(packet.packet_id)
                self.take(packet)
            if packet.qos:
                self.send((Puback if packet.qos == 1 else Pubrec)(packet_id=packet.packet_id))
        elif isinstance(packet, Pubrel):
            self._received.discard(packet.packet_id)
            self.send(Pubcomp(packet_id=packet.packet_id))

    def take(self, message: Publish) -> None:
        """A message has come; with QoS 2 once, however often it was sent."""
        publisher, qos, number = message.payload.decode().split()
        self.got[publisher, message.topic, int(qos)].append(int(number))
