"""Clients with a memory: each keeps its own half of every exchange across connections, as the specification asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.core.oracle import Message, Oracle
from tests.kits.world import Client, World
from tieline.wire.packets import (
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)
from tieline.wire.properties import Properties

#: How long a durable MQTT 5 session waits for its client; one of 3.1.1 waits for ever.
EXPIRY_S: Final = 100
#: For SUBSCRIBE and UNSUBSCRIBE, out of the way of messages.
_SUBSCRIBE_ID: Final = 60_000


class Device:
    """One client id; at most one connection at a time."""

    def __init__(self, fleet: Fleet, client_id: str) -> None:
        self.fleet = fleet
        self.client_id = client_id
        self.client: Client | None = None
        #: How long the session outlives the connection; None for ever.
        self.expiry_s: int | None = 0
        #: When the connection was lost while the session went on.
        self.away_since: float | None = None
        #: Messages sent and not finished, in the order of sending; None once PUBREC has come.
        self.outbox: dict[int, Message | None] = {}
        #: Packet ids of QoS 2 messages that were taken and not released yet.
        self.taken: set[int] = set()
        #: Acknowledgements not sent yet.
        self.acks: list[Packet] = []
        #: Topic aliases that the broker set on this connection.
        self.aliases: dict[int, str] = {}

    def __repr__(self) -> str:
        return self.client_id

    def connect(self, version: int, *, is_clean: bool, is_durable: bool, window: int) -> None:
        """Connect, taking over from an older connection, and send again what was not finished."""
        was_present = self.fleet.oracle.begin(self.client_id, is_clean=is_clean)
        self.acks.clear()
        self.aliases.clear()
        properties: dict[str, Any] = {}
        if version == 4:
            self.expiry_s = 0 if is_clean else None
        else:
            self.expiry_s = EXPIRY_S if is_durable else 0
            properties = {
                "receive_maximum": window,
                "topic_alias_maximum": window - 1,
                "session_expiry_interval": self.expiry_s,
            }
        client = self.fleet.world.client(self.client_id, version=version, clean_start=is_clean, **properties)
        assert client.connack.session_present == was_present
        self.client = client
        self.away_since = None
        if not was_present:
            self.outbox.clear()
            self.taken.clear()
        for packet_id, message in self.outbox.items():
            if message is None:
                client.send(Pubrel(packet_id=packet_id))
            else:
                # the broker knows a QoS 2 message by its id; one of QoS 1 it takes once more
                if message.qos == 1:
                    self.fleet.accept(message)
                client.send(_packet(message, packet_id, dup=True))

    def lose(self, *, says_goodbye: bool = False) -> None:
        """Lose the connection, what was on its way, and the session if it was not to outlive the connection."""
        client, self.client = self.client, None
        if client is None:
            return
        self.acks.clear()
        if self.expiry_s == 0:
            self.fleet.oracle.end(self.client_id)
        else:
            self.away_since = self.fleet.world.now
        if says_goodbye:
            client.disconnect()
        else:
            client.drop()

    # --- sending ------------------------------------------------------------------------------------------------------

    def publish(self, message: Message) -> None:
        assert self.client is not None
        packet_id = 0
        if message.qos:
            packet_id = next(number for number in range(1, 65_536) if number not in self.outbox)
            self.outbox[packet_id] = message
        self.client.send(_packet(message, packet_id))

    def subscribe(self, wish: Subscription, identifier: int) -> None:
        assert self.client is not None
        properties: Properties = {"subscription_identifier": [identifier]} if identifier else {}
        # a copy: the broker may write the QoS it grants into the wish
        packet = Subscribe(packet_id=_SUBSCRIBE_ID, subscriptions=(replace(wish),), properties=properties)
        self.client.send(packet)

    def unsubscribe(self, filter_: str) -> None:
        assert self.client is not None
        self.client.send(Unsubscribe(packet_id=_SUBSCRIBE_ID, filters=(filter_,)))

    # --- receiving ----------------------------------------------------------------------------------------------------

    def process(self, count: int) -> bool:
        """Look at the next packets that have arrived; whether there were any."""
        client = self.client
        if client is None or not client.inbox:
            return False
        for _ in range(min(count, len(client.inbox))):
            self._handle(client.inbox.pop(0), client.version)
        return True

    def acknowledge(self) -> bool:
        """Send the acknowledgements that are due, in order; whether there were any."""
        acks, self.acks = self.acks, []
        if self.client is not None and acks:
            self.client.send(*acks)
        return bool(acks)

    def _handle(self, packet: Packet, version: int) -> None:
        if isinstance(packet, Publish):
            self._resolve(packet)
            if packet.qos != 2 or packet.packet_id not in self.taken:
                self.fleet.oracle.received(self.client_id, version, packet)
            if packet.qos == 1:
                self.acks.append(Puback(packet_id=packet.packet_id))
            elif packet.qos == 2:
                self.taken.add(packet.packet_id)
                self.acks.append(Pubrec(packet_id=packet.packet_id))
        elif isinstance(packet, Pubrel):
            self.taken.discard(packet.packet_id)
            self.acks.append(Pubcomp(packet_id=packet.packet_id))
        elif isinstance(packet, Puback):
            assert self.outbox.pop(packet.packet_id) is not None
        elif isinstance(packet, Pubrec):
            assert packet.packet_id in self.outbox
            self.outbox[packet.packet_id] = None
            self.acks.append(Pubrel(packet_id=packet.packet_id))
        elif isinstance(packet, Pubcomp):
            assert self.outbox.pop(packet.packet_id) is None
        else:
            assert isinstance(packet, Suback | Unsuback), f"{self} received {packet}"

    def _resolve(self, packet: Publish) -> None:
        """Put the topic in the place of its alias."""
        alias = packet.properties.get("topic_alias")
        if alias is not None:
            if packet.topic:
                self.aliases[alias] = packet.topic
            packet.topic = self.aliases[alias]


class Fleet:
    """Devices around one broker, and the oracle that watches them."""

    def __init__(self, world: World, count: int) -> None:
        self.world = world
        self.oracle = Oracle()
        self.devices = [Device(self, f"d{number}") for number in range(count)]

    @property
    def connected(self) -> set[str]:
        return {device.client_id for device in self.devices if device.client is not None}

    def accept(self, message: Message) -> dict[str, int]:
        """The broker is about to take a message."""
        return self.oracle.accept(message, self.connected)

    def advance(self, seconds: float) -> None:
        """Let time pass; sessions whose client stayed away too long end."""
        self.world.advance(seconds)
        for device in sorted(self.devices, key=lambda device: device.away_since or 0.0):
            since, expiry_s = device.away_since, device.expiry_s
            if since is not None and expiry_s is not None and since + expiry_s <= self.world.now:
                self.oracle.end(device.client_id)
                device.away_since = None

    def finish(self) -> None:
        """Everybody comes back, reads and answers everything; then nothing may be owed."""
        for device in self.devices:
            if device.client is None and device.away_since is not None:
                device.connect(5, is_clean=False, is_durable=True, window=100)
            if device.client is not None:
                device.client.resume()
        busy = True
        while busy:
            busy = False
            for device in self.devices:
                busy |= device.process(1_000_000)
                busy |= device.acknowledge()
        self.oracle.check_paid()
        for device in self.devices:
            if device.client is not None:
                assert not device.outbox, f"{device} still waits for answers"
                assert not device.taken, f"{device} still waits for PUBREL"


def _packet(message: Message, packet_id: int, *, dup: bool = False) -> Publish:
    return Publish(
        topic=message.topic,
        payload=message.payload,
        qos=message.qos,
        retain=message.retain,
        dup=dup,
        packet_id=packet_id,
    )
