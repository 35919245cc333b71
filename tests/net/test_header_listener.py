"""A listener on which every packet carries the priority byte: both directions, and what a stock client is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import pytest

from tests.kits.certificates import Certificates
from tests.kits.dial import Dial, dial, open_socket
from tests.kits.world import World
from tieline import Listener, Settings
from tieline.conf.schema import Claim, Mqtt
from tieline.net.listener import ListenError
from tieline.pytest_plugin import BrokerThread
from tieline.wire.decode import decode
from tieline.wire.encode import encode
from tieline.wire.frames import level_of, measure, stamp
from tieline.wire.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
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
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from types import TracebackType

HEADER = "tcp://127.0.0.1:0?header=priority"
PLAIN = "tcp://127.0.0.1:0"


def cut(data: bytes, version: int) -> tuple[list[tuple[Packet, int]], bytes]:
    """Whole packets with the level that each carries, and the beginning of the next one."""
    packets, pos = [], 0
    while (found := measure(data, pos, 1 << 30)) is not None and found[1] < len(data):
        body, end = found
        packets.append((decode(data[pos], data[body + 1 : end + 1], version), level_of(data[body])))
        pos = end + 1
    return packets, data[pos:]


class HeaderDial:
    """A client that speaks the byte."""

    def __init__(self, url: str, client_id: str, *, level: int = 1, version: int = 5) -> None:
        self.version = version
        self.level = level
        self.sock: socket.socket = open_socket(url)
        self._data = b""
        self._inbox: list[tuple[Packet, int]] = []
        self.send(Connect(version=version, client_id=client_id, clean_start=True, keep_alive=0))
        self.expect(Connack, reason=Reason.SUCCESS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    def send(self, *packets: Packet, level: int | None = None) -> None:
        stamped = stamp(b"".join(encode(one, self.version) for one in packets), self.level if level is None else level)
        self.sock.sendall(stamped)

    def receive(self) -> tuple[Packet, int] | None:
        while not self._inbox:
            data = self.sock.recv(65_536)
            if not data:
                assert not self._data, f"left over: {self._data!r}"
                return None
            self._inbox, self._data = cut(self._data + data, self.version)
        return self._inbox.pop(0)

    def expect(self, kind: type[Packet], /, **fields: object) -> int:
        """The next packet has this type and these fields; the level it carries."""
        received = self.receive()
        assert received is not None
        packet, level = received
        assert isinstance(packet, kind), f"expected {kind.__name__}, received {packet}"
        for name, wanted in fields.items():
            assert getattr(packet, name) == wanted
        return level

    def subscribe(self, filter_: str, qos: int = 0) -> None:
        self.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),)))
        self.expect(Suback)


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(listen=[HEADER, PLAIN]) as thread:
        yield thread


def test_the_address_says_what_is_spoken_there(broker: BrokerThread) -> None:
    header, plain = broker.urls
    assert header.endswith("?header=priority")
    assert "?" not in plain


@pytest.mark.parametrize("version", [4, 5])
def test_every_packet_carries_the_byte_in_both_directions(broker: BrokerThread, version: int) -> None:
    with HeaderDial(broker.urls[0], "a", level=2, version=version) as client:
        client.subscribe("t/#", qos=2)
        client.send(Pingreq())
        assert client.expect(Pingresp) == 2, "answers carry the node's level"
        client.send(Publish(topic="t/0", payload=b"zero"), level=3)
        assert client.expect(Publish, payload=b"zero", qos=0) == 3, "messages carry their own"
        client.send(Publish(topic="t/1", payload=b"one", qos=1, packet_id=7), level=0)
        assert client.expect(Puback, packet_id=7) == 2
        assert client.expect(Publish, payload=b"one", qos=1) == 0
        client.send(Puback(packet_id=1))
        client.send(Publish(topic="t/2", payload=b"two", qos=2, packet_id=8), level=1)
        client.expect(Pubrec, packet_id=8)
        assert client.expect(Publish, payload=b"two", qos=2, packet_id=2) == 1
        client.send(Pubrec(packet_id=2), Pubrel(packet_id=8))
        client.expect(Pubrel, packet_id=2)
        client.expect(Pubcomp, packet_id=8)
        client.send(Pubcomp(packet_id=2), Unsubscribe(packet_id=9, filters=("t/#",)))
        client.expect(Unsuback, packet_id=9)
        client.send(Disconnect())
        assert client.receive() is None


def test_many_in_one_write_and_one_in_many(broker: BrokerThread) -> None:
    with HeaderDial(broker.urls[0], "s") as subscriber, HeaderDial(broker.urls[0], "p") as publisher:
        subscriber.subscribe("t")
        publisher.send(*(Publish(topic="t", payload=b"%d" % number) for number in range(500)), level=2)
        for number in range(500):
            assert subscriber.expect(Publish, payload=b"%d" % number) == 2
        for byte in stamp(encode(Publish(topic="t", payload=bytes(300)), 5), 3):
            publisher.sock.sendall(bytes((byte,)))
        assert subscriber.expect(Publish, payload=bytes(300)) == 3


def test_header_and_stock_clients_talk_to_each_other(broker: BrokerThread) -> None:
    header, plain = broker.urls
    with HeaderDial(header, "h") as special, dial(plain, "p", version=5) as stock, dial(plain, "q", version=4) as old:
        for client in (special, stock, old):
            client.subscribe("t")
        special.send(Publish(topic="t", payload=b"from the header"), level=3)
        assert special.expect(Publish, payload=b"from the header") == 3
        stock.expect(Publish, payload=b"from the header")
        old.expect(Publish, payload=b"from the header")
        stock.send(Publish(topic="t", payload=b"claimed", properties={"user_property": [("priority", "2")]}))
        assert special.expect(Publish, payload=b"claimed") == 2
        old.send(Publish(topic="t", payload=b"plain"))
        assert special.expect(Publish, payload=b"plain") == 1


def test_the_byte_goes_before_the_property(broker: BrokerThread) -> None:
    claim = [("priority", "0")]
    with HeaderDial(broker.urls[0], "s") as client:
        client.subscribe("t")
        client.send(Publish(topic="t", payload=b"x", properties={"user_property": claim}), level=3)
        assert client.expect(Publish, payload=b"x") == 3


def test_the_byte_of_connect_is_the_nodes_level(broker: BrokerThread) -> None:
    with HeaderDial(broker.urls[0], "node", level=3), HeaderDial(broker.urls[0], "low", level=0):
        levels = broker.ask(lambda core: {conn.client_id: conn.level for conn in core.connections})
    assert levels == {"node": 3, "low": 0}


@pytest.mark.parametrize("level", [0, 2, 3])
def test_the_byte_of_subscribe_is_the_nodes_level_from_then_on(broker: BrokerThread, level: int) -> None:
    with HeaderDial(broker.urls[0], "node") as client:
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t"),)), level=level)
        assert client.expect(Suback) == level
        client.send(Pingreq(), level=1)
        assert client.expect(Pingresp) == level, "only SUBSCRIBE says it"
        assert broker.ask(lambda core: ([conn.level for conn in core.connections], core.serves_by_level)) == (
            [level],
            True,
        )


def test_the_byte_of_publish_is_the_level_of_its_message_and_not_of_the_node(broker: BrokerThread) -> None:
    with HeaderDial(broker.urls[0], "node", level=2) as client:
        client.subscribe("t")
        for level in (0, 3):
            client.send(Publish(topic="t", payload=b"x"), level=level)
            assert client.expect(Publish) == level
            assert broker.ask(lambda core: [conn.level for conn in core.connections]) == [2]
        # but who has just sent something urgent is looked at first for a while
        assert broker.ask(lambda core: [conn.urgent_at > 0 for conn in core.connections]) == [True]


def test_the_byte_of_subscribe_is_judged_like_every_other_claim() -> None:
    settings = Settings(listener=(Listener(url=HEADER, max_level=2),), claim=(Claim(user="-", max_level=1), Claim()))
    with BrokerThread(settings) as broker, HeaderDial(broker.urls[0], "c", level=0) as client:
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t"),)), level=3)
        assert client.expect(Suback) == 1
        assert broker.ask(lambda core: [conn.level for conn in core.connections]) == [1]
    settings = Settings(listener=(Listener(url=HEADER, max_level=2),))
    with BrokerThread(settings) as broker, HeaderDial(broker.urls[0], "c", level=0) as client:
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t"),)), level=3)
        assert client.expect(Suback) == 2


def test_claims_and_the_listeners_bound_hold_for_the_byte() -> None:
    settings = Settings(
        listener=(Listener(url=HEADER, max_level=2),),
        claim=(Claim(filter="low/#", max_level=0), Claim()),
    )
    with BrokerThread(settings) as broker, HeaderDial(broker.urls[0], "c", level=3) as client:
        assert broker.ask(lambda core: [conn.level for conn in core.connections]) == [2]
        client.subscribe("#")
        client.send(Publish(topic="t", payload=b"x"), Publish(topic="low/t", payload=b"y"), level=3)
        assert client.expect(Publish, topic="t") == 2
        assert client.expect(Publish, topic="low/t") == 0
        assert broker.ask(lambda core: core.priorities.claims.lowered) == 2


def test_what_comes_at_the_end_carries_the_byte_once(broker: BrokerThread) -> None:
    """At shutdown the rest of the queue and the farewell go out together."""
    client = HeaderDial(broker.urls[0], "s")
    client.subscribe("t")
    broker.__exit__(None, None, None)
    kinds = []
    while (received := client.receive()) is not None:
        kinds.append(type(received[0]))
    assert kinds == [Disconnect]
    client.sock.close()


def test_a_backlog_at_shutdown_carries_the_byte_once() -> None:
    world = World(Settings(mqtt=Mqtt(sys_interval_s=0)))
    client, publisher = world.open(0), world.client("p")
    client.connection.has_header = True
    for packet in (
        Connect(version=5, client_id="h", clean_start=True, keep_alive=0),
        Subscribe(packet_id=1, subscriptions=(Subscription(filter="#", qos=1),)),
    ):
        client.send(stamp(encode(packet, 5), 1))
    client.stall()
    publisher.publish("t", b"last words", qos=1, user_property=[("priority", "3")])
    client.is_reading = True
    world.stop()
    packets, rest = cut(client.raw, 5)
    assert rest == b""
    assert [(type(packet), level) for packet, level in packets] == [
        (Connack, 1),
        (Suback, 1),
        (Publish, 3),
        (Disconnect, 1),
    ]


# --- those who do not speak it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("client_id", ["", "stock"])
def test_a_stock_client_is_refused_in_words_it_knows(broker: BrokerThread, version: int, client_id: str) -> None:
    with Dial(broker.urls[0], version=version) as stock:
        connack = stock.connect(client_id)
        assert connack.reason is Reason.UNSUPPORTED_PROTOCOL_VERSION
        if version == 5:
            assert "priority byte" in connack.properties["reason_string"]
        stock.expect_end()
    assert broker.ask(lambda core: core.account.closed["refused_unsupported_protocol_version"]) == 1


@pytest.mark.parametrize("version", [4, 5])
def test_a_stock_client_is_refused_however_its_connect_is_cut(version: int) -> None:
    packet = encode(Connect(version=version, client_id="stock", clean_start=True, keep_alive=0), version)
    for at in range(1, len(packet)):
        world = World(Settings(mqtt=Mqtt(sys_interval_s=0)))
        client = world.open(version)
        client.connection.has_header = True
        client.send(packet[:at])
        client.send(packet[at:])
        client.note_connack()
        client.expect_refusal(Reason.UNSUPPORTED_PROTOCOL_VERSION)


def test_a_client_that_speaks_it_on_a_stock_listener_is_refused(broker: BrokerThread) -> None:
    with open_socket(broker.urls[1]) as sock:
        connect = encode(Connect(version=5, client_id="h", clean_start=True, keep_alive=0), 5)
        sock.sendall(stamp(connect, 3))
        assert sock.recv(100) in (b"", b"\x20\x02\x00\x01")
    assert broker.ask(lambda core: sum(core.account.closed.values())) == 1


def test_a_listener_with_tls_may_have_the_byte_too(certificates: Certificates) -> None:
    (listener,) = certificates.listeners(["tls://127.0.0.1:0?header=priority"])
    with BrokerThread(Settings(listener=(listener,))) as broker:
        assert broker.urls[0].startswith("tls://") and broker.urls[0].endswith("?header=priority")
        with open_socket(broker.urls[0], context=certificates.context()) as sock:
            sock.sendall(stamp(encode(Connect(version=4, client_id="h", clean_start=True, keep_alive=0), 4), 3))
            assert sock.recv(100) == b"\x20\x02\xc0\x00\x00"


def test_any_other_query_is_refused() -> None:
    with (
        pytest.raises((ListenError, ValueError), match="query"),
        BrokerThread(listen=["tcp://127.0.0.1:0?header=heat"]),
    ):
        pass
