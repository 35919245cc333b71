"""MQTT over WebSocket: the handshake, the frames, and what is refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import msgspec
import pytest
from websockets.client import ClientProtocol
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tests.kits.certificates import Certificates
from tests.kits.dial import open_socket, read_to_end
from tests.kits.patience import until
from tests.kits.websocket import WebSocketDial
from tieline import Limits, Settings
from tieline.conf.quantities import bound
from tieline.core.broker import Broker as Core
from tieline.net.link import SocketLink
from tieline.net.ws import FRAMES, WORK_PER_FRAME, WebSocket
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Subscription,
    Will,
)
from tieline.wire.reason import Reason

_LIMIT = 65_536


@pytest.fixture(params=["ws", "wss"])
def broker(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[BrokerThread]:
    listeners = certificates.listeners([f"{request.param}://127.0.0.1:0"])
    with BrokerThread(Settings(listener=listeners, limits=Limits(packet_bytes=_LIMIT))) as running:
        yield running


@pytest.fixture
def make(broker: BrokerThread, certificates: Certificates) -> Iterator[_Maker]:
    maker = _Maker(broker, certificates)
    yield maker
    maker.close()


class _Maker:
    """Opens connections to the broker under test, with TLS if it wants TLS."""

    def __init__(self, broker: BrokerThread, certificates: Certificates) -> None:
        self._broker = broker
        self._context = certificates.context() if broker.urls[0].startswith("wss") else None
        self._made: list[WebSocketDial] = []

    def open(self, path: str = "/mqtt", offers: tuple[str, ...] = ("mqtt",)) -> WebSocketDial:
        """A WebSocket, if the broker agrees."""
        made = WebSocketDial(self._broker.urls[0], path=path, offers=offers, context=self._context)
        self._made.append(made)
        return made

    def connect(self, client_id: str, will: Will | None = None) -> WebSocketDial:
        """An MQTT client that has been let in."""
        made = self.open()
        made.send(_bytes(Connect(version=5, client_id=client_id, will=will)))
        answer = made.packet()
        assert isinstance(answer, Connack) and answer.reason is Reason.SUCCESS
        return made

    def say(self, data: bytes, size: int | None = None) -> bytes:
        """Say something, in pieces of some size, and hear the answer to its end."""
        size = size or len(data)
        with open_socket(self._broker.urls[0], context=self._context) as sock:
            for at in range(0, len(data), size):
                sock.sendall(data[at : at + size])
            return read_to_end(sock)

    def closed(self, name: str) -> None:
        """The counters name the end of one connection."""
        until(lambda: self._broker.ask(lambda core: core.account.closed[name] == 1), f"{name} is counted")
        until(lambda: self._broker.ask(lambda core: not core.connections), "the connection is forgotten")

    def close(self) -> None:
        for made in self._made:
            made.sock.close()


def _bytes(*packets: Packet) -> bytes:
    return b"".join(encode(packet, 5) for packet in packets)


def _subscribe(filter_: str, qos: int = 0) -> bytes:
    return _bytes(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),)))


def _close_code(client: WebSocketDial) -> int:
    """The code of the close frame that comes next, after which the stream ends."""
    frame = client.event()
    assert isinstance(frame, Frame) and frame.opcode is Opcode.CLOSE, frame
    client.flush()
    assert client.event() is None
    return Close.parse(bytes(frame.data)).code


# --- the handshake --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mqtt", "/", "/any/thing?at=all"])
def test_any_path_will_do(make: _Maker, path: str) -> None:
    client = make.open(path)
    assert client.response.status_code == 101
    client.send(_bytes(Connect(version=5, client_id="path")))
    assert isinstance(client.packet(), Connack)


@pytest.mark.parametrize("offers", [("mqtt",), ("chat", "mqtt"), ("mqttv3.1", "mqtt")])
def test_mqtt_is_chosen_and_said_6_0_0_4(make: _Maker, offers: tuple[str, ...]) -> None:
    client = make.open(offers=offers)
    assert client.response.status_code == 101
    assert client.response.headers["Sec-WebSocket-Protocol"] == "mqtt"


@pytest.mark.parametrize("offers", [(), ("chat",), ("MQTT",), ("mqttv3.1",)])
def test_without_the_sub_protocol_mqtt_there_is_no_connection_6_0_0_3(make: _Maker, offers: tuple[str, ...]) -> None:
    client = make.open(offers=offers)
    assert client.response.status_code == 400
    assert b"mqtt" in (client.response.body or b"")
    assert read_to_end(client.sock) == b""
    make.closed("ws_handshake_failed")


@pytest.mark.parametrize(
    ("origin", "host", "is_let_in"),
    [
        (None, "anything", True),
        ("http://127.0.0.1", "127.0.0.1:8083", True),
        ("https://localhost:3000", "localhost:8083", True),
        ("https://grid.example", "127.0.0.1:8083", True),
        ("https://GRID.example", "127.0.0.1:8083", True),
        ("https://grid.example:444", "127.0.0.1:8083", False),
        ("https://evil.example", "127.0.0.1:8083", False),
        ("null", "127.0.0.1:8083", False),
        ("http://127.0.0.1.evil.example", "127.0.0.1:8083", False),
        ("http://[", "127.0.0.1:8083", False),
        ("http://rebound.example", "rebound.example:8083", False),
    ],
)
def test_a_browser_connects_for_pages_of_this_host_or_of_the_list(
    certificates: Certificates, origin: str | None, host: str, is_let_in: bool
) -> None:
    (listener,) = certificates.listeners(["ws://127.0.0.1:0"])
    listener = msgspec.structs.replace(listener, origins=("https://grid.example",))
    with BrokerThread(Settings(listener=(listener,))) as running:
        maker = _Maker(running, certificates)
        lines = [
            "GET /mqtt HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: mqtt",
            *([] if origin is None else [f"Origin: {origin}"]),
        ]  # fmt: skip
        answer = maker.say("\r\n".join([*lines, "", ""]).encode() + b"\x88\x80\0\0\0\0")
        assert answer.startswith(b"HTTP/1.1 101 " if is_let_in else b"HTTP/1.1 403 ")
        if not is_let_in:
            maker.closed("ws_handshake_failed")
        maker.close()


def test_a_browser_that_looks_in_is_told_to_upgrade(make: _Maker) -> None:
    answer = make.say(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 426 ")
    make.closed("ws_handshake_failed")


@pytest.mark.parametrize(
    "words",
    [_bytes(Connect(version=5, client_id="x")), b"POST / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"GET /" + b"a" * 100_000],
    ids=["mqtt", "post", "zeroes", "endless"],
)
def test_whatever_is_not_a_handshake_ends_in_order(make: _Maker, words: bytes) -> None:
    make.say(words + b"\r\n\r\n" + bytes(300_000))
    make.closed("ws_handshake_failed")


def _impatient(*frames: Frame) -> bytes:
    """The bytes of a client that does not wait for the answer to its handshake."""
    client = ClientProtocol(parse_uri("ws://broker/mqtt"), subprotocols=[Subprotocol("mqtt")])
    client.send_request(client.connect())
    handshake = b"".join(client.data_to_send())
    return handshake + b"".join(frame.serialize(mask=True) for frame in frames)


def test_the_handshake_and_everything_else_in_one_go(make: _Maker) -> None:
    packets = _bytes(Connect(version=5, client_id="eager"), Pingreq(), Disconnect())
    answer = make.say(_impatient(Frame(Opcode.BINARY, packets), Frame(Opcode.PING, b"early")))
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"\xd0\x00" in answer
    make.closed("disconnect")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (_impatient() + b"\x82\x02\xc0\x00", "ws_error"),
        (_impatient(Frame(Opcode.PING, b"")) + b"\xff\xff", "ws_error"),
        (_impatient(Frame(Opcode.CLOSE, b"\x03\xe8")), "connection_lost"),
        (_impatient(Frame(Opcode.TEXT, b"hello")), "ws_text_frame"),
    ],
    ids=["unmasked", "reserved-bits", "close", "text"],
)
def test_a_bad_frame_right_behind_the_handshake(make: _Maker, words: bytes, name: str) -> None:
    assert make.say(words).startswith(b"HTTP/1.1 101 ")
    make.closed(name)


def test_the_handshake_in_single_bytes(make: _Maker) -> None:
    answer = make.say(_impatient(Frame(Opcode.CLOSE, b"\x03\xe8")), size=1)
    assert answer.startswith(b"HTTP/1.1 101 ")


# --- frames and packets ---------------------------------------------------------------------------------------------


def test_several_packets_in_one_frame_6_0_0_2(make: _Maker) -> None:
    client = make.open()
    client.send(_bytes(Connect(version=5, client_id="many"), *[Pingreq()] * 50))
    assert isinstance(client.packet(), Connack)
    assert all(isinstance(client.packet(), Pingresp) for _ in range(50))


def test_one_packet_in_many_frames_6_0_0_2(make: _Maker) -> None:
    client = make.open()
    data = _bytes(Connect(version=5, client_id="split"), Pingreq())
    client.send(*[data[at : at + 1] for at in range(len(data))])
    assert isinstance(client.packet(), Connack)
    assert isinstance(client.packet(), Pingresp)


def test_empty_frames_mean_nothing(make: _Maker) -> None:
    client = make.connect("empty")
    client.send(b"", b"", _bytes(Pingreq()), b"")
    assert isinstance(client.packet(), Pingresp)


def test_a_fragmented_frame_with_a_ping_in_the_middle(make: _Maker) -> None:
    client = make.connect("fragments")
    data = _bytes(*[Pingreq()] * 3)
    client.protocol.send_binary(data[:1], fin=False)
    client.protocol.send_continuation(data[1:4], fin=False)
    client.protocol.send_ping(b"between")
    client.protocol.send_continuation(data[4:], fin=True)
    client.flush()
    seen = [client.event() for _ in range(2)]
    pongs = [frame for frame in seen if isinstance(frame, Frame) and frame.opcode is Opcode.PONG]
    assert [bytes(frame.data) for frame in pongs] == [b"between"]
    answers = [bytes(frame.data) for frame in seen if isinstance(frame, Frame) and frame.opcode is Opcode.BINARY]
    while len(b"".join(answers)) < 6:
        frame = client.event()
        assert isinstance(frame, Frame)
        answers.append(bytes(frame.data))
    assert b"".join(answers) == b"\xd0\x00" * 3


def test_a_ping_before_connect_is_answered(make: _Maker) -> None:
    client = make.open()
    client.protocol.send_ping(b"early")
    client.flush()
    frame = client.event()
    assert isinstance(frame, Frame) and frame.opcode is Opcode.PONG and bytes(frame.data) == b"early"


def test_what_the_broker_sends_is_binary_and_unmasked(make: _Maker) -> None:
    client = make.connect("binary")
    client.send(_subscribe("a", 1))
    assert isinstance(client.packet(), Suback)
    client.send(_bytes(Publish(topic="a", payload=b"x", qos=1, packet_id=7)))
    # packet() insists on binary frames, and the client's own parser on unmasked ones
    assert {type(client.packet()), type(client.packet())} == {Publish, Puback}


def test_a_packet_as_large_as_is_allowed(make: _Maker) -> None:
    payload = bytes(_LIMIT - 20)
    client = make.connect("large")
    client.send(_subscribe("a"))
    assert isinstance(client.packet(), Suback)
    data = _bytes(Publish(topic="a", payload=payload))
    client.send(data[:30_000], data[30_000:])
    packet = client.packet()
    assert isinstance(packet, Publish) and packet.payload == payload


def test_an_mqtt_packet_above_the_limit_is_refused_by_mqtt(make: _Maker) -> None:
    client = make.connect("larger")
    client.send(_bytes(Publish(topic="a", payload=bytes(_LIMIT))))
    packet = client.packet()
    assert isinstance(packet, Disconnect) and packet.reason is Reason.PACKET_TOO_LARGE
    make.closed("packet_too_large")


def test_a_frame_far_above_the_limit_is_refused_by_websocket(make: _Maker) -> None:
    client = make.connect("largest")
    client.send(bytes(1_000_000))
    assert _close_code(client) == CloseCode.MESSAGE_TOO_BIG
    make.closed("ws_error")


# --- how much in one go -----------------------------------------------------------------------------------------------


def _server() -> WebSocket:
    """A layer whose handshake is done."""
    layer = WebSocket(_LIMIT)
    assert layer.received(_impatient()) == b""
    assert layer.is_ready
    layer.pending()
    layer.take_work()
    return layer


def test_a_chunk_full_of_frames_is_looked_at_in_parts_and_each_is_counted() -> None:
    layer = _server()
    frames = [Frame(Opcode.BINARY, b"%d," % number).serialize(mask=True) for number in range(1_000)]
    plain, calls = layer.received(b"".join(frames)), 1
    while layer.has_more:
        assert layer.take_work() >= FRAMES * WORK_PER_FRAME
        plain += layer.received(b"")
        calls += 1
    assert plain == b"".join(b"%d," % number for number in range(1_000))
    assert calls == 1_000 / FRAMES


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64, 1_000, 10_000])
def test_how_frames_are_cut_into_chunks_makes_no_difference(size: int) -> None:
    layer = _server()
    payloads = [b"", b"a" * 125, b"b" * 126, b"", b"c" * 65_535, b"d" * 65_536, b"e", *[b""] * 100, b"f"]
    data = b"".join(Frame(Opcode.BINARY, payload).serialize(mask=True) for payload in payloads)
    plain = b""
    for at in range(0, len(data), size):
        plain += layer.received(data[at : at + size])
        while layer.has_more:
            plain += layer.received(b"")
    assert plain == b"".join(payloads)


def test_pongs_that_were_not_taken_are_counted() -> None:
    layer = _server()
    layer.received(Frame(Opcode.PING, b"x" * 100).serialize(mask=True) * 10)
    assert layer.waiting == 10 * 102
    assert len(layer.pending()) == 10 * 102
    assert layer.waiting == 0


def test_one_that_pings_and_does_not_read_is_not_read_either(make: _Maker, broker: BrokerThread) -> None:
    client = make.connect("pinging")
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    ping = Frame(Opcode.PING, b"x" * 125).serialize(mask=True) * 500
    client.sock.settimeout(0.5)
    sent = 0
    with pytest.raises(TimeoutError):
        for _ in range(2_000):
            sent += client.sock.send(ping)

    def held(core: Core) -> int:
        (conn,) = core.connections
        link = conn.link
        assert isinstance(link, SocketLink) and link._layer is not None
        return link.unsent + link._layer.waiting + len(link._put_off)

    assert broker.ask(held) < 1_000_000


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_text_frame_is_refused_6_0_0_1(make: _Maker) -> None:
    client = make.connect("text")
    client.protocol.send_text(_bytes(Pingreq()))
    client.flush()
    assert _close_code(client) == CloseCode.UNSUPPORTED_DATA
    make.closed("ws_text_frame")


def test_connect_in_a_text_frame_is_refused_6_0_0_1(make: _Maker) -> None:
    client = make.open()
    client.protocol.send_text(b"hello")
    client.flush()
    assert _close_code(client) == CloseCode.UNSUPPORTED_DATA
    make.closed("ws_text_frame")


def test_an_unmasked_frame_is_a_protocol_error(make: _Maker) -> None:
    client = make.connect("unmasked")
    client.sock.sendall(b"\x82\x02\xc0\x00")
    assert _close_code(client) == CloseCode.PROTOCOL_ERROR
    make.closed("ws_error")


def test_packets_before_a_bad_frame_still_count(make: _Maker) -> None:
    watcher = make.connect("watcher")
    watcher.send(_subscribe("a"))
    assert isinstance(watcher.packet(), Suback)
    client = make.connect("half")
    client.protocol.send_binary(_bytes(Publish(topic="a", payload=b"counted")))
    good = b"".join(client.protocol.data_to_send())
    client.sock.sendall(good + b"\x82\x02\xc0\x00")
    packet = watcher.packet()
    assert isinstance(packet, Publish) and packet.payload == b"counted"


def test_a_reader_that_stops_does_not_harm_others(make: _Maker, broker: BrokerThread) -> None:
    stalled, busy = make.connect("stalled"), make.connect("busy")
    stalled.send(_subscribe("flood"))
    busy.send(_subscribe("echo", 1))
    assert isinstance(busy.packet(), Suback)
    for _ in range(1_000):
        busy.send(_bytes(Publish(topic="flood", payload=bytes(60_000))))
    busy.send(_bytes(Publish(topic="echo", payload=b"still here", qos=1, packet_id=9)))
    assert {type(busy.packet()), type(busy.packet())} == {Puback, Publish}
    assert broker.ask(lambda core: core.queued_bytes <= bound(core.settings.limits.queue_bytes))
    until(lambda: broker.ask(lambda core: sum(core.account.drops.values())) > 0, "drops have a name")


# --- the end --------------------------------------------------------------------------------------------------------


def test_disconnect_is_followed_by_a_normal_close(make: _Maker) -> None:
    client = make.connect("polite")
    client.send(_bytes(Disconnect()))
    assert _close_code(client) == CloseCode.NORMAL_CLOSURE
    make.closed("disconnect")


def test_a_close_frame_is_answered(make: _Maker) -> None:
    client = make.connect("closing")
    client.protocol.send_close(CloseCode.GOING_AWAY)
    client.flush()
    assert _close_code(client) == CloseCode.GOING_AWAY
    make.closed("connection_lost")


def test_a_close_frame_without_disconnect_publishes_the_will(make: _Maker) -> None:
    watcher = make.connect("watcher")
    watcher.send(_subscribe("wills"))
    assert isinstance(watcher.packet(), Suback)
    client = make.connect("closing", will=Will(topic="wills", payload=b"gone"))
    client.protocol.send_close(CloseCode.NORMAL_CLOSURE)
    client.flush()
    packet = watcher.packet()
    assert isinstance(packet, Publish) and packet.payload == b"gone"


def test_disconnect_and_close_frame_in_one_go_publish_no_will(make: _Maker, broker: BrokerThread) -> None:
    client = make.connect("both", will=Will(topic="wills", payload=b"gone", retain=True))
    client.protocol.send_binary(_bytes(Disconnect()))
    client.protocol.send_close(CloseCode.NORMAL_CLOSURE)
    client.flush()
    assert _close_code(client) == CloseCode.NORMAL_CLOSURE
    make.closed("disconnect")
    assert broker.ask(lambda core: core.retained.get("wills")) is None


def test_a_refusal_reaches_the_client_before_the_close(make: _Maker) -> None:
    client = make.connect("wrong")
    client.send(b"\x00\x00")
    packet = client.packet()
    assert isinstance(packet, Disconnect) and packet.reason is Reason.MALFORMED_PACKET
    assert client.packet() is None
    make.closed("malformed_packet")
