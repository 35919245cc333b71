"""MQTT over WebSocket at the address of the page: handed over to the broker, which decides who may connect."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.client import ClientProtocol
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S, until
from tests.kits.websocket import WebSocketDial
from tests.web.test_http import Checker, Serving, settings
from tieline.conf.schema import Attribute, Auth, Event, Http, Limits, Rule
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Puback, Publish, Suback, Subscribe, Subscription
from tieline.wire.reason import Reason

pytest.importorskip("uvicorn")

TOPIC = "$SYS/broker/tieline/page"
EVENTS = {"reading": Event(topic="microgrid/+/+/reading", attributes=(Attribute("voltage"), Attribute("frequency")))}
RULES = (Rule(filter="$SYS/#", allow="all", users=("operator",)),)


def shake_hands(serving: Serving, path: str = "/mqtt", **headers: str) -> bytes:
    """The answer to a request for a WebSocket."""
    named = {"Host": f"127.0.0.1:{serving.port}", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    request = (
        f"GET {path} HTTP/1.1\r\n{lines}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", serving.port), PATIENCE_S) as sock:
        sock.sendall(request.encode())
        return sock.recv(65_536)


class Client:
    """An MQTT client of a browser."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None, **fields: Any) -> None:
        self.web = WebSocketDial(url, path="/mqtt", context=context)
        self.web.send(encode(Connect(version=5, client_id="", **fields), 5))
        self.connack = self.web.packet()
        assert isinstance(self.connack, Connack)

    def subscribe(self, filter_: str) -> Suback:
        wanted = Subscription(filter=filter_, qos=0)
        self.web.send(encode(Subscribe(packet_id=1, subscriptions=(wanted,)), 5))
        suback = self.web.packet()
        assert isinstance(suback, Suback)
        return suback

    def page(self) -> dict[str, Any]:
        """The next object on the topic of the page."""
        packet = self.web.packet()
        assert isinstance(packet, Publish) and packet.topic == TOPIC and packet.qos == 0 and not packet.retain
        found: dict[str, Any] = msgspec.json.decode(packet.payload)
        return found


@pytest.fixture(name="open_", scope="module")
def _open() -> Iterator[Serving]:
    serving = Serving(settings(event=EVENTS, limits=Limits(connections=40)))
    yield serving
    serving.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    serving = Serving(settings(rule=RULES, auth=Auth(failures="none", anonymous="nowhere")), authenticator=Checker())
    yield serving
    serving.close()


def test_the_page_is_told_what_there_is_every_second(open_: Serving) -> None:
    client = Client(f"ws://127.0.0.1:{open_.port}")
    with client.web, dial(open_.broker.urls[0], "<b>meter</b>") as other:
        assert client.subscribe(TOPIC).reasons == (Reason.GRANTED_QOS_0,)
        first = client.page()
        assert first["v"] == 1 and first["name"] == "tieline" and first["views"]["overview"]["state"] in {"ok", "warn"}
        assert first["grid"]["filter"] == "microgrid/+/+/reading" and first["joined"] is False
        other.send(Publish(topic="a", payload=b"x", qos=1, packet_id=1))
        other.expect(Puback)
        found = until(lambda: page if (page := client.page())["tiles"]["connected"] >= 2 else None, "two are connected")
        assert [each["level"] for each in found["classes"]] == [3, 2, 1, 0]
        assert found["time"] > first["time"] and found["point"].keys() >= {"received", "p99/3", "lag"}
        assert found["point"]["p99/3"] is None
        assert [each["name"] for each in found["brokers"]] == ["tieline"] and found["links"] == []
        assert found["cost"]["spoken"] >= 1


def test_nothing_is_said_while_nobody_listens(open_: Serving) -> None:
    page = open_.broker._server.page
    until(lambda: not open_.broker.ask(lambda core: page.feed.is_heard), "nobody listens")
    before = page.feed.spoken
    counted = len(page.history)
    until(lambda: len(page.history) >= counted + 2, "two seconds have been counted")
    assert page.feed.spoken == before


def test_a_page_of_another_site_may_not_connect(open_: Serving) -> None:
    own = f"http://127.0.0.1:{open_.port}"
    assert shake_hands(open_, Origin=own).startswith(b"HTTP/1.1 101")
    assert shake_hands(open_).startswith(b"HTTP/1.1 101"), "programs name none"
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example", "http://evil.example:8080"):
        assert shake_hands(open_, Origin=origin).startswith(b"HTTP/1.1 403"), origin
    name = {"Host": "rebound.example", "Origin": "http://rebound.example"}
    assert shake_hands(open_, **name).startswith(b"HTTP/1.1 403"), "a name that leads here"


def test_a_proxy_is_named(open_: Serving) -> None:
    named = Http(url="http://127.0.0.1:0", origins=("https://broker.example",))
    serving = Serving(msgspec.structs.replace(settings(), http=named))
    try:
        name = {"Host": "broker.example", "Origin": "https://broker.example"}
        assert shake_hands(serving, **name).startswith(b"HTTP/1.1 101")
        assert serving.get("/v1/history", Host="broker.example")[0] == 200
        assert serving.get("/v1/history", Host="other.example")[0] == 403
    finally:
        serving.close()


def test_only_this_path_becomes_a_websocket(open_: Serving) -> None:
    for path in ("/", "/page/", "/mqtt/", "/MQTT", "//mqtt", "/v1/ask", "/metrics"):
        assert not shake_hands(open_, path).startswith(b"HTTP/1.1 101"), path
    assert open_.get("/mqtt")[0] == 404


def test_what_comes_with_the_request_is_not_lost(open_: Serving) -> None:
    """A client that cannot wait sends its first frames behind the request; the address may have a query."""
    frames = ClientProtocol(parse_uri(f"ws://127.0.0.1:{open_.port}/mqtt?x=1"), subprotocols=[Subprotocol("mqtt")])
    frames.send_request(frames.connect())
    request = b"".join(frames.data_to_send())
    frames.state = State.OPEN
    frames.send_binary(encode(Connect(version=5, client_id="hasty"), 5))
    with socket.create_connection(("127.0.0.1", open_.port), PATIENCE_S) as sock:
        sock.sendall(request + b"".join(frames.data_to_send()))
        until(lambda: open_.broker.ask(lambda core: "hasty" in core.sessions), "it was let in")


def test_users_log_in_and_rules_hold(guarded: Serving) -> None:
    url = f"ws://127.0.0.1:{guarded.port}"
    wrong = Client(url, username="operator", password=b"wrong")
    for client, reason in ((Client(url), Reason.NOT_AUTHORIZED), (wrong, Reason.BAD_USER_NAME_OR_PASSWORD)):
        with client.web:
            assert isinstance(client.connack, Connack) and client.connack.reason == reason
    nosy = Client(url, username="nosy", password=b"right")
    with nosy.web:
        assert nosy.subscribe(TOPIC).reasons == (Reason.NOT_AUTHORIZED,)
    operator = Client(url, username="operator", password=b"right")
    with operator.web:
        operator.subscribe(TOPIC)
        assert operator.page()["v"] == 1


def test_they_count_towards_the_limits_of_the_broker(open_: Serving) -> None:
    many = [socket.create_connection(("127.0.0.1", open_.port), PATIENCE_S) for _ in range(45)]
    try:
        for sock in many:
            sock.sendall(
                b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
            )
            sock.recv(1000)
        refused = open_.broker.ask(lambda core: core.account.closed["too_many_connections"])
        assert refused >= 5
        assert open_.get("/health")[0] == 200, "they take no place of the pages"
    finally:
        for sock in many:
            sock.close()
    until(lambda: open_.broker.ask(lambda core: not core.connections), "all are gone")


def test_an_encrypted_page_has_an_encrypted_websocket(tmp_path: Path) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    secure = Http(url="https://127.0.0.1:0", certificate=str(chain), key=str(key))
    serving = Serving(msgspec.structs.replace(settings(), http=secure))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    try:
        client = Client(f"wss://127.0.0.1:{serving.port}", context)
        with client.web:
            client.subscribe(TOPIC)
            client.subscribe("bulk")
            assert client.page()["v"] == 1
            with dial(serving.broker.urls[0], "p") as publisher:
                for number in range(200):
                    publisher.send(Publish(topic="bulk", payload=b"%06d" % number * 2_000))
            got = [packet for _ in range(200) if isinstance(packet := client.web.packet(), Publish)]
            bulk = [packet.payload[:6] for packet in got if packet.topic == "bulk"]
            assert bulk == sorted(bulk) and len(bulk) >= 190, "in order, whatever was paused on the way"
        until(lambda: serving.broker.ask(lambda core: not core.connections), "the broker knows that it is gone")
    finally:
        serving.close()
