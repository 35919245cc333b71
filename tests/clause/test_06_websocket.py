"""Chapters 4.2 and 6 (7.1.1 in 3.1.1): the transports, with a real server on real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.clause import raw
from tests.clause.marker import clause
from tests.kits.patience import PATIENCE_S
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Connack,
    Connect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    Subscription,
)

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])
MQTT = [Subprotocol("mqtt")]


@pytest.fixture(scope="module")
def server() -> Iterator[BrokerThread]:
    with BrokerThread(listen=["ws://127.0.0.1:0", "tcp://127.0.0.1:0"]) as broker:
        yield broker


@pytest.fixture
def stream(server: BrokerThread) -> Iterator[ClientConnection]:
    with connect(server.urls[0], subprotocols=MQTT, compression=None, open_timeout=PATIENCE_S) as opened:
        yield opened


def packets(stream: ClientConnection, version: int, count: int) -> list[Packet]:
    """The next packets from the server; every frame that carries them is binary."""
    framer = Framer(1_000_000, version)
    received: list[Packet] = []
    while len(received) < count:
        data = stream.recv(timeout=PATIENCE_S)
        assert isinstance(data, bytes), f"a text frame: {data!r}"
        received += framer.feed(data)
    return received


def hello(version: int, client_id: str = "") -> bytes:
    return encode(Connect(version=version, client_id=client_id), version)


def subscribe(version: int, filter_: str) -> bytes:
    return encode(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_),)), version)


@clause("MQTT-6.0.0-1", "MQTT311-6.0.0-1")
@BOTH
def test_6_0_0_1_packets_travel_in_binary_frames(stream: ClientConnection, version: int) -> None:
    stream.send(hello(version))
    stream.send(encode(Pingreq(), version))
    assert [type(packet) for packet in packets(stream, version, 2)] == [Connack, Pingresp]


@clause("MQTT-6.0.0-1", "MQTT311-6.0.0-1")
@BOTH
@pytest.mark.parametrize("when", ["instead of CONNECT", "after CONNECT"])
def test_6_0_0_1_a_text_frame_closes_the_connection(stream: ClientConnection, version: int, when: str) -> None:
    if when == "after CONNECT":
        stream.send(hello(version))
        packets(stream, version, 1)
    stream.send("\x00")
    with pytest.raises(ConnectionClosed):
        for _ in range(10):
            stream.recv(timeout=PATIENCE_S)


@clause("MQTT-6.0.0-2", "MQTT311-6.0.0-2")
@BOTH
def test_6_0_0_2_several_packets_may_share_a_frame(stream: ClientConnection, version: int) -> None:
    publish = [encode(Publish(topic="ws/many", payload=bytes([number])), version) for number in range(50)]
    stream.send(b"".join((hello(version), subscribe(version, "ws/many"), *publish)))
    received = packets(stream, version, 52)
    assert [type(packet) for packet in received[:2]] == [Connack, Suback]
    messages = [packet for packet in received if isinstance(packet, Publish)]
    assert [message.payload for message in messages] == [bytes([number]) for number in range(50)]


@clause("MQTT-6.0.0-2", "MQTT311-6.0.0-2")
@BOTH
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_6_0_0_2_a_packet_may_be_spread_over_frames(stream: ClientConnection, version: int, size: int) -> None:
    payload = bytes(range(256)) * (1 if size < 1_000 else 200)
    topic = f"ws/spread/{version}/{size}"
    data = b"".join((hello(version), subscribe(version, topic), encode(Publish(topic=topic, payload=payload), version)))
    for at in range(0, len(data), size):
        stream.send(data[at : at + size])
    message = packets(stream, version, 3)[2]
    assert isinstance(message, Publish) and message.payload == payload


@clause("MQTT-6.0.0-2", "MQTT311-6.0.0-2")
@BOTH
def test_6_0_0_2_a_packet_may_be_spread_over_fragments_of_a_frame(stream: ClientConnection, version: int) -> None:
    data = hello(version) + encode(Pingreq(), version)
    stream.send(data[at : at + 2] for at in range(0, len(data), 2))
    assert [type(packet) for packet in packets(stream, version, 2)] == [Connack, Pingresp]


@clause("MQTT-6.0.0-3", "MQTT-6.0.0-4", "MQTT311-6.0.0-3", "MQTT311-6.0.0-4")
@pytest.mark.parametrize("offer", [["mqtt"], ["mqttv3.1", "mqtt"], ["mqtt", "other"]], ids="+".join)
def test_6_0_0_4_the_server_selects_mqtt(server: BrokerThread, offer: list[str]) -> None:
    names = [Subprotocol(name) for name in offer]
    with connect(server.urls[0], subprotocols=names, open_timeout=PATIENCE_S) as stream:
        assert stream.subprotocol == "mqtt"


@clause("MQTT-6.0.0-3", "MQTT-6.0.0-4", "MQTT311-6.0.0-3", "MQTT311-6.0.0-4")
@pytest.mark.parametrize("offer", [None, ["other"], ["mqttv3.1"]], ids=["nothing", "other", "mqttv3.1"])
def test_6_0_0_4_the_server_never_selects_anything_else(server: BrokerThread, offer: list[str] | None) -> None:
    names = None if offer is None else [Subprotocol(name) for name in offer]
    with suppress(InvalidHandshake), connect(server.urls[0], subprotocols=names, open_timeout=PATIENCE_S) as stream:
        assert stream.subprotocol in (None, "mqtt")


@clause("MQTT-4.2.0-1", "MQTT311-7.1.1-1")
@BOTH
def test_4_2_0_1_tcp_carries_an_ordered_lossless_stream(server: BrokerThread, version: int) -> None:
    host, port = server.urls[1].removeprefix("tcp://").rsplit(":", 1)
    topic = f"tcp/{version}"
    publish = [raw.publish(version, topic, str(number).encode() * 100) for number in range(300)]
    data = b"".join((hello(version), subscribe(version, topic), *publish))
    framer, received = Framer(1_000_000, version), list[Packet]()
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as plain:
        for at in range(0, len(data), 997):
            plain.sendall(data[at : at + 997])
        while len(received) < 302:
            chunk = plain.recv(65_536)
            assert chunk, "the server closed the connection"
            received += framer.feed(chunk)
    messages = [packet for packet in received if isinstance(packet, Publish)]
    assert [message.payload for message in messages] == [str(number).encode() * 100 for number in range(300)]
