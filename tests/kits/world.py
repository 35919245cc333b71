"""A broker and its clients without sockets: bytes are handed over in memory and time is a number.

>>> world = World(receive_maximum=10)
>>> subscriber, publisher = world.client("s"), world.client("p", version=4)
>>> subscriber.subscribe("a/#", qos=1)
Suback(...)
>>> publisher.publish("a/b", b"hello", qos=1)
<Reason.SUCCESS: 0>
>>> subscriber.expect(Publish, topic="a/b", payload=b"hello", qos=1)
Publish(...)

Everything a call causes has happened when it returns: each step ends with every connection written out, except those
of clients that have stalled, and the broker's invariants hold after each.  ``World(split=True)`` hands the same bytes
over one at a time, in both directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

import msgspec

from tests.kits.invariants import check
from tieline.conf.schema import Limits, Mqtt, Settings
from tieline.core.broker import Broker
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Connack,
    Connect,
    Disconnect,
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
    Will,
)
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tieline.core.client import Connection
    from tieline.core.ports import Access, Store

P = TypeVar("P", bound=Packet)

#: When a world begins; not zero, so that a forgotten ``now`` shows.
GENESIS: Final = 1_000.0
#: Bytes asked of the broker in one write.
CHUNK: Final = 65_536
#: Writes or ticks in a row after which a world is declared to be stuck.
PATIENCE: Final = 1_000_000
#: The largest packet there can be.
NO_LIMIT: Final = 268_435_460


def configured(settings: Settings | None = None, **options: object) -> Settings:
    """Settings in which each option is looked up in ``limits`` and in ``mqtt``; no $SYS traffic unless asked for."""
    settings = settings or Settings(mqtt=Mqtt(sys_interval_s=0))
    limits = {name: value for name, value in options.items() if name in Limits.__struct_fields__}
    mqtt = {name: value for name, value in options.items() if name in Mqtt.__struct_fields__}
    unknown = options.keys() - limits.keys() - mqtt.keys()
    if unknown:
        raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
    return msgspec.structs.replace(
        settings,
        limits=msgspec.structs.replace(settings.limits, **limits),
        mqtt=msgspec.structs.replace(settings.mqtt, **mqtt),
    )


class World:
    """One broker, its clients, and the time."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        access: Access | None = None,
        store: Store | None = None,
        split: bool = False,
        **options: object,
    ) -> None:
        self.settings = configured(settings, **options)
        self.broker = Broker(self.settings, access=access, store=store)
        self.now = GENESIS
        self.split = split
        self.clients: list[Client] = []

    def open(self, version: int = 5) -> Client:
        """A client that is connected at network level and has sent nothing; it reads packets of ``version``.

        Version 0 reads none: what arrives is only kept in ``client.raw``.
        """
        client = Client(self, version)
        self.clients.append(client)
        return client

    def client(  # one argument per field of CONNECT
        self,
        client_id: str = "a",
        *,
        version: int = 5,
        clean_start: bool = True,
        keep_alive: int = 0,
        will: Will | None = None,
        username: str | None = None,
        password: bytes | None = None,
        **properties: object,
    ) -> Client:
        """A client that has sent CONNECT; ``client.connack`` is the answer."""
        client = self.open(version)
        client.connect(
            client_id,
            clean_start=clean_start,
            keep_alive=keep_alive,
            will=will,
            username=username,
            password=password,
            **properties,
        )
        return client

    def durable(self, client_id: str = "a", *, version: int = 5, expiry_s: int = 3_600, **fields: Any) -> Client:
        """A client that asks for its old session and for one that outlives the connection."""
        if version == 5:
            fields["session_expiry_interval"] = expiry_s
        return self.client(client_id, version=version, clean_start=False, **fields)

    def advance(self, seconds: float) -> None:
        """Let time pass; every timer fires at its own moment, in order."""
        until = self.now + seconds
        for _ in range(PATIENCE):
            due = self.broker.timer()
            if due is None or due > until:
                self.now = until
                return
            self.now = max(self.now, due)
            self.settle()
        raise AssertionError("the broker asks for the same timer for ever")

    def stop(self) -> None:
        """The server shuts down."""
        self.broker.stop(self.now)
        self.settle()

    def receive(self, connection: Connection, data: bytes) -> None:
        """Bytes arrive at the broker, whole or one at a time."""
        for piece in (data[at : at + 1] for at in range(len(data))) if self.split else (data,):
            self.broker.receive(connection, piece, self.now)
            self.settle()
        check(self.broker)

    def settle(self) -> None:
        """Write out whatever the broker wants written, and do what is due at once, until it wants nothing more."""
        for _ in range(PATIENCE):
            while self.broker.dirty:
                changed = self.broker.take_dirty()
                for connection in changed:
                    connection.is_dirty = False
                for connection in changed:
                    cast("Client", connection.link).collect()
                check(self.broker)
            self.broker.seal()
            if self.broker.dirty:
                continue
            due = self.broker.timer()
            if due is None or due > self.now:
                return
            self.broker.tick(self.now)
        raise AssertionError("the broker asks for the same timer for ever")


class Client:
    """One network connection and the packets that came over it."""

    def __init__(self, world: World, version: int) -> None:
        self.world = world
        self.version = version
        self.connection = world.broker.open(world.now, listener="tcp", peer=f"client:{len(world.clients)}")
        self.connection.link = self
        #: Packets received and not yet looked at, oldest first.
        self.inbox: list[Packet] = []
        #: Every byte received.
        self.raw = b""
        #: The server closed the connection.
        self.closed = False
        #: A client that does not read leaves everything with the broker.
        self.is_reading = True
        self._dropped = False
        self._framer = Framer(NO_LIMIT, version)
        self._packet_id = 0
        self._connack: Connack | None = None

    # --- what the client does ---------------------------------------------------------------------------------------

    def send(self, *packets: Packet | bytes) -> Self:
        """Send packets, or bytes as they are, in one go; nothing happens on a connection that is gone."""
        data = b"".join(one if isinstance(one, bytes) else encode(one, self.version) for one in packets)
        if self.is_open:
            self.world.receive(self.connection, data)
        return self

    def connect(
        self,
        client_id: str = "a",
        *,
        clean_start: bool = True,
        keep_alive: int = 0,
        will: Will | None = None,
        username: str | None = None,
        password: bytes | None = None,
        **properties: object,
    ) -> None:
        """Send CONNECT and keep the CONNACK, if there is one."""
        self.send(
            Connect(
                version=self.version,
                client_id=client_id,
                clean_start=clean_start,
                keep_alive=keep_alive,
                will=will,
                username=username,
                password=password,
                properties=cast("Properties", properties),
            )
        )
        self.note_connack()

    def note_connack(self) -> None:
        """Keep the CONNACK, if it has come: later than CONNECT when the broker's verdict took its time."""
        if self.inbox and isinstance(self.inbox[0], Connack):
            self._connack = cast("Connack", self.inbox.pop(0))

    def disconnect(self, reason: Reason = Reason.NORMAL_DISCONNECTION, **properties: object) -> None:
        """Say goodbye and hang up."""
        self.send(Disconnect(reason=reason, properties=cast("Properties", properties)))
        self.drop()

    def drop(self) -> None:
        """The network connection is lost."""
        if self.is_open:
            self._dropped = True
            self.world.broker.closed(self.connection, self.world.now)
            self.world.settle()
            check(self.world.broker)

    def subscribe(  # one argument per subscription option
        self,
        *filters: str | Subscription,
        qos: int = 0,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
        packet_id: int | None = None,
        **properties: object,
    ) -> Suback:
        """Subscribe and return the SUBACK; what else arrives stays in the inbox."""
        subscriptions = tuple(
            one
            if isinstance(one, Subscription)
            else Subscription(
                filter=one,
                qos=qos,
                no_local=no_local,
                retain_as_published=retain_as_published,
                retain_handling=retain_handling,
            )
            for one in filters
        )
        packet_id = packet_id or self.free_id()
        self.send(
            Subscribe(packet_id=packet_id, subscriptions=subscriptions, properties=cast("Properties", properties))
        )
        return self.find(Suback, packet_id=packet_id)

    def unsubscribe(self, *filters: str) -> Unsuback:
        """Unsubscribe and return the UNSUBACK; what else arrives stays in the inbox."""
        packet_id = self.free_id()
        self.send(Unsubscribe(packet_id=packet_id, filters=filters))
        return self.find(Unsuback, packet_id=packet_id)

    def put(  # one argument per field of PUBLISH
        self,
        topic: str,
        payload: bytes = b"x",
        qos: int = 0,
        *,
        retain: bool = False,
        dup: bool = False,
        packet_id: int | None = None,
        **properties: object,
    ) -> Publish:
        """Send one PUBLISH and return it; the answers stay in the inbox."""
        packet = Publish(
            topic=topic,
            payload=payload,
            qos=qos,
            retain=retain,
            dup=dup,
            packet_id=(packet_id or self.free_id()) if qos else 0,
            properties=cast("Properties", properties),
        )
        self.send(packet)
        return packet

    def publish(self, topic: str, payload: bytes = b"x", qos: int = 0, **fields: Any) -> Reason:
        """Publish with the whole exchange that the QoS asks for, and return what the broker said."""
        packet_id = self.put(topic, payload, qos, **fields).packet_id
        if qos == 0:
            return Reason.SUCCESS
        if qos == 1:
            return self.find(Puback, packet_id=packet_id).reason
        reason = self.find(Pubrec, packet_id=packet_id).reason
        if reason < Reason.UNSPECIFIED_ERROR:
            self.send(Pubrel(packet_id=packet_id))
            self.find(Pubcomp, packet_id=packet_id)
        return reason

    def acknowledge(self, message: Publish) -> None:
        """Finish the exchange that a received message began."""
        if message.qos == 1:
            self.send(Puback(packet_id=message.packet_id))
        elif message.qos == 2:
            self.send(Pubrec(packet_id=message.packet_id))
            self.find(Pubrel, packet_id=message.packet_id)
            self.send(Pubcomp(packet_id=message.packet_id))

    def stall(self) -> None:
        """Stop reading: whatever the broker wants to write stays with the broker."""
        self.is_reading = False

    def resume(self) -> None:
        """Read again, beginning with what has waited."""
        self.is_reading = True
        self.collect()
        self.world.settle()

    def free_id(self) -> int:
        """A packet identifier this client has not used."""
        self._packet_id += 1
        return self._packet_id

    # --- what the client sees ---------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Neither side has closed."""
        return not (self.closed or self._dropped)

    @property
    def connack(self) -> Connack:
        """The answer to CONNECT."""
        assert self._connack is not None, f"no CONNACK; received {self.inbox}"
        return self._connack

    def take(self) -> list[Packet]:
        """Everything received since the last look."""
        taken, self.inbox = self.inbox, []
        return taken

    def messages(self) -> list[Publish]:
        """Everything received since the last look; it must all be application messages."""
        taken = self.take()
        others = [packet for packet in taken if not isinstance(packet, Publish)]
        assert not others, f"expected only PUBLISH, received {taken}"
        return cast("list[Publish]", taken)

    def told(self) -> list[Reason]:
        """The reason code of every packet received since the last look; it must all be packets that have one."""
        return [packet.reason for packet in self.take()]  # type: ignore[union-attr]  # the test says so

    def expect(self, kind: type[P], /, **fields: object) -> P:
        """The next packet; it has this type and these fields or properties."""
        assert self.inbox, f"expected {kind.__name__}, received nothing (closed: {self.closed})"
        packet = self.inbox.pop(0)
        assert isinstance(packet, kind), f"expected {kind.__name__}, received {packet}"
        _compare(packet, fields)
        return packet

    def find(self, kind: type[P], /, **fields: object) -> P:
        """The next packet of this type, whatever came before it; it has these fields or properties."""
        for at, packet in enumerate(self.inbox):
            if isinstance(packet, kind):
                del self.inbox[at]
                _compare(packet, fields)
                return packet
        raise AssertionError(f"expected {kind.__name__}, received {self.inbox} (closed: {self.closed})")

    def expect_nothing(self) -> None:
        """Nothing came, and the connection is still open."""
        assert not self.inbox, f"expected nothing, received {self.inbox}"
        assert not self.closed, "the server closed the connection"

    def expect_end(self, reason: Reason | None = None) -> None:
        """The server closed the connection; MQTT 5 clients were told ``reason`` first, 3.1.1 has no way to say it."""
        if self.version == 5 and reason is not None:
            told = self.expect(Disconnect)
            assert told.reason is reason, f"expected {reason!r}, was told {told}"
        assert not self.inbox, f"expected the end, received {self.inbox}"
        assert self.closed, "the connection is still open"

    def expect_refusal(self, reason: Reason) -> Connack:
        """CONNECT was refused with this reason, and the server closed the connection."""
        assert self.connack.reason is reason, f"expected {reason!r}, received {self.connack}"
        assert not self.inbox, f"expected nothing after CONNACK, received {self.inbox}"
        assert self.closed, "the connection is still open"
        return self.connack

    # --- what the world does ----------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Take everything the broker has to write, and the end of the connection if that comes next."""
        if not self.is_open or not self.is_reading:
            return
        broker, connection, now = self.world.broker, self.connection, self.world.now
        for _ in range(PATIENCE):
            data = b"".join(broker.fill(connection, 1 if self.world.split else CHUNK, now))
            if not data:
                break
            self.write(data, now)
        else:
            raise AssertionError("the broker never stops writing")
        if connection.closing:
            self.closed = True
            broker.closed(connection, now)

    def write(self, data: bytes, now: float) -> None:
        """Bytes arrive at the client."""
        self.raw += data
        if self.version:
            self.inbox += self._framer.feed(data)
        if self._framer.error is not None:
            raise self._framer.error

    def __repr__(self) -> str:
        return f"<Client {self.connection.client_id!r} v{self.version}{'' if self.is_open else ' gone'}>"


def topics(messages: Iterable[Publish]) -> list[str]:
    """The topic of each message."""
    return [message.topic for message in messages]


def payloads(messages: Iterable[Publish]) -> list[bytes]:
    """The payload of each message."""
    return [message.payload for message in messages]


def _compare(packet: Packet, fields: dict[str, object]) -> None:
    """Each field is an attribute of the packet or one of its properties; None means that a property is absent."""
    for name, wanted in fields.items():
        known = type(packet).__dataclass_fields__
        found = getattr(packet, name) if name in known else packet.properties.get(name)  # type: ignore[union-attr]
        assert found == wanted, f"{name}: expected {wanted!r}, received {found!r} in {packet}"
