"""Chapter 3.1: the format of CONNECT, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import Client, World
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.frames import Framer
from tieline.wire.packets import Connack, Connect, Disconnect, Pingreq, Pingresp, Publish
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])

CLEAN, WILL, WILL_QOS_1, WILL_QOS_3, WILL_RETAIN, PASSWORD, USER = 0x02, 0x04, 0x08, 0x18, 0x20, 0x40, 0x80
ID, TOPIC, MESSAGE, NAME, SECRET = (raw.text(word) for word in ("a", "topic", "message", "name", "secret"))
NO_PROPERTIES = b"\0"


def will(version: int) -> tuple[bytes, ...]:
    return (NO_PROPERTIES, TOPIC, MESSAGE) if version == 5 else (TOPIC, MESSAGE)


def expect_malformed_connect(client: Client, *reasons: Reason) -> None:
    """MQTT 5 says why in CONNACK, 3.1.1 must close without one [MQTT311-3.1.4-1]; neither sends DISCONNECT."""
    if client.version == 5:
        answer = client.expect(Connack, session_present=False)
        assert answer.reason in (reasons or (Reason.MALFORMED_PACKET,))
    assert client.take() == []
    assert client.closed


@clause("MQTT-3.1.0-1", "MQTT311-3.1.0-1", "MQTT-3.14.0-1", "MQTT-3.2.0-1", "MQTT311-3.2.0-1")
@pytest.mark.parametrize(
    "first",
    [
        raw.publish(5, "a"),
        raw.publish(4, "a"),
        raw.subscribe(5, raw.text("a"), b"\0"),
        raw.packet(raw.PINGREQ),
        raw.packet(raw.DISCONNECT),
        raw.packet(raw.AUTH),
    ],
    ids=["PUBLISH 5", "PUBLISH 3.1.1", "SUBSCRIBE", "PINGREQ", "DISCONNECT", "AUTH"],
)
def test_3_1_0_1_anything_before_connect_is_closed_without_a_word(world: World, first: bytes) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.open()
    client.send(first, Connect(version=5, client_id="late"))
    assert client.closed and client.raw == b""
    watcher.expect_nothing()


@clause("MQTT-3.1.0-2", "MQTT311-3.1.0-2", "MQTT-4.13.1-1", "MQTT311-4.8.0-1")
@BOTH
def test_3_1_0_2_a_second_connect_ends_the_connection(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(Connect(version=version, client_id="a"))
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.1.2-1", "MQTT311-3.1.2-1")
@pytest.mark.parametrize("name", ["mqtt", "MQTTX", "", "HTTP", b"\xff\xff"])
@BOTH
def test_3_1_2_1_another_protocol_name_is_closed(world: World, version: int, name: str | bytes) -> None:
    client = world.open(0)
    client.send(raw.connect(version, ID, name=name), raw.packet(raw.PINGREQ))
    assert client.closed
    assert client.raw == b"" or is_wrong_version(client.raw)


@clause("MQTT-3.1.2-2", "MQTT-3.2.2-7")
@pytest.mark.parametrize("level", [0, 1, 6, 127, 255])
def test_3_1_2_2_an_unknown_version_is_refused_and_closed(world: World, level: int) -> None:
    client = world.open(0)
    client.send(raw.connect(5, ID, level=level), raw.packet(raw.PINGREQ))
    assert client.closed
    assert is_wrong_version(client.raw)


def is_wrong_version(answer: bytes) -> bool:
    """CONNACK 0x84 of MQTT 5, or return code 1 of the versions before."""
    if answer == b"\x20\x02\x00\x01":
        return True
    (connack,) = Framer(1_000, 5).feed(answer)
    return isinstance(connack, Connack) and connack.reason is Reason.UNSUPPORTED_PROTOCOL_VERSION


@clause("MQTT311-3.1.2-2", "MQTT311-3.2.2-4", "MQTT311-3.2.2-5")
@pytest.mark.parametrize(("name", "level"), [("MQIsdp", 3), ("MQTT", 3), ("MQTT", 0x84)])
def test_v311_3_1_2_2_an_older_level_gets_return_code_1(world: World, name: str, level: int) -> None:
    client = world.open(0)
    client.send(raw.connect(4, ID, name=name, level=level))
    assert client.raw == b"\x20\x02\x00\x01"
    assert client.closed


@clause("MQTT-3.1.2-3", "MQTT311-3.1.2-3")
@BOTH
def test_3_1_2_3_the_reserved_connect_flag_is_malformed(world: World, version: int) -> None:
    client = world.open(version)
    client.send(raw.connect(version, ID, flags=CLEAN | 0x01))
    expect_malformed_connect(client)


@BOTH
@pytest.mark.parametrize(
    ("flags", "payload"),
    [
        pytest.param(WILL, 1, marks=clause("MQTT-3.1.2-9", "MQTT311-3.1.2-9"), id="no will"),
        pytest.param(WILL, 2, marks=clause("MQTT-3.1.2-9", "MQTT311-3.1.2-9"), id="no will payload"),
        pytest.param(WILL_QOS_1, 1, marks=clause("MQTT-3.1.2-11", "MQTT311-3.1.2-13"), id="QoS of no will"),
        pytest.param(WILL_QOS_1, 3, marks=clause("MQTT311-3.1.2-11"), id="will fields without a will"),
        pytest.param(WILL | WILL_QOS_3, 3, marks=clause("MQTT-3.1.2-12", "MQTT311-3.1.2-14"), id="will QoS 3"),
        pytest.param(WILL_RETAIN, 1, marks=clause("MQTT-3.1.2-13", "MQTT311-3.1.2-15"), id="retain of no will"),
        pytest.param(0, 3, marks=clause("MQTT311-3.1.2-11"), id="unannounced will"),
        pytest.param(USER, 1, marks=clause("MQTT-3.1.2-17", "MQTT311-3.1.2-19"), id="no user name"),
        pytest.param(USER | PASSWORD, 4, marks=clause("MQTT-3.1.2-19", "MQTT311-3.1.2-21"), id="no password"),
    ],
)
@clause("MQTT-3.1.4-1", "MQTT311-3.1.4-1", "MQTT311-3.2.2-6")
def test_flags_and_payload_of_connect_agree(world: World, version: int, flags: int, payload: int) -> None:
    fields = {1: (ID,), 2: (ID, *will(version)[:-1]), 3: (ID, *will(version)), 4: (ID, NAME)}[payload]
    client = world.open(version)
    client.send(raw.connect(version, *fields, flags=CLEAN | flags))
    # the standard does not say which of the two a contradiction is
    expect_malformed_connect(client, Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)


@BOTH
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(0, marks=clause("MQTT-3.1.2-16", "MQTT311-3.1.2-18"), id="user name"),
        pytest.param(USER, marks=clause("MQTT-3.1.2-18", "MQTT311-3.1.2-20"), id="password"),
    ],
)
def test_a_field_that_no_flag_announces_is_malformed(world: World, version: int, flags: int) -> None:
    client = world.open(version)
    client.send(raw.connect(version, ID, NAME, *((SECRET,) if flags else ()), flags=CLEAN | flags))
    expect_malformed_connect(client)


@clause("MQTT311-3.1.2-22")
def test_v311_3_1_2_22_a_password_needs_a_user_name(world: World) -> None:
    client = world.open(4)
    client.send(raw.connect(4, ID, SECRET, flags=CLEAN | PASSWORD))
    expect_malformed_connect(client)


@clause("MQTT-3.1.2-18", "MQTT-3.1.2-19")
def test_3_1_2_19_in_mqtt_5_a_password_needs_no_user_name(world: World) -> None:
    client = world.client(password=b"secret")
    assert client.connack.reason is Reason.SUCCESS


class Doorman:
    """Lets in who knows the word, and remembers everyone who asked."""

    is_open = False

    def __init__(self) -> None:
        self.seen: list[Login] = []

    def connect(self, login: Login) -> Verdict:
        self.seen.append(login)
        if login.password == b"secret":
            return Allowed()
        return Refused("wrong password", Reason.BAD_USER_NAME_OR_PASSWORD)

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()


@clause("MQTT-3.1.3-1", "MQTT-3.1.3-3", "MQTT311-3.1.3-1", "MQTT311-3.1.3-3", "MQTT-3.1.2-9", "MQTT-3.1.2-17")
@BOTH
def test_3_1_3_1_the_payload_is_read_in_its_order(new_world: NewWorld, version: int) -> None:
    doorman = Doorman()
    world = new_world(access=doorman)
    watcher = world.client("watcher", password=b"secret")
    watcher.subscribe("topic")
    client = world.open(version)
    client.send(raw.connect(version, ID, *will(version), NAME, SECRET, flags=CLEAN | WILL | USER | PASSWORD))
    client.expect(Connack, reason=Reason.SUCCESS)
    login = doorman.seen[-1]
    assert (login.client_id, login.username, login.password) == ("a", "name", b"secret")
    client.drop()
    watcher.expect(Publish, topic="topic", payload=b"message")


@clause("MQTT-3.1.3-3", "MQTT311-3.1.3-3")
@BOTH
def test_3_1_3_3_a_connect_without_client_identifier_is_malformed(world: World, version: int) -> None:
    client = world.open(version)
    client.send(raw.connect(version))
    expect_malformed_connect(client)


@BOTH
@pytest.mark.parametrize(
    "field",
    [
        pytest.param("client id", marks=clause("MQTT-3.1.3-4", "MQTT311-3.1.3-4")),
        pytest.param("will topic", marks=clause("MQTT-3.1.3-11", "MQTT311-3.1.3-10")),
        pytest.param("user name", marks=clause("MQTT-3.1.3-12", "MQTT311-3.1.3-11")),
    ],
)
@pytest.mark.parametrize("bad", [*raw.ILL_FORMED, b"\0"], ids=lambda data: data.hex())
def test_text_in_connect_is_utf_8(world: World, version: int, field: str, bad: bytes) -> None:
    words = {"client id": ID, "will topic": TOPIC, "user name": NAME} | {field: raw.text(bad)}
    before_will = (NO_PROPERTIES,) if version == 5 else ()
    payload = (words["client id"], *before_will, words["will topic"], MESSAGE, words["user name"])
    client = world.open(version)
    client.send(raw.connect(version, *payload, flags=CLEAN | WILL | USER))
    expect_malformed_connect(client)


@clause("MQTT-3.1.4-1", "MQTT-4.13.1-1")
@pytest.mark.parametrize(
    ("props", "reason"),
    [
        (bytes([raw.RECEIVE_MAXIMUM]) + raw.u16(0), Reason.PROTOCOL_ERROR),
        (bytes([raw.MAXIMUM_PACKET_SIZE]) + bytes(4), Reason.PROTOCOL_ERROR),
        (bytes([raw.REQUEST_PROBLEM_INFORMATION, 2]), Reason.PROTOCOL_ERROR),
        (bytes([raw.RECEIVE_MAXIMUM, 0, 1, raw.RECEIVE_MAXIMUM, 0, 1]), Reason.PROTOCOL_ERROR),
        (bytes([raw.TOPIC_ALIAS]) + raw.u16(1), Reason.MALFORMED_PACKET),
        (b"\x7f", Reason.MALFORMED_PACKET),
        (bytes([raw.RECEIVE_MAXIMUM, 0]), Reason.MALFORMED_PACKET),
    ],
    ids=["receive maximum 0", "packet size 0", "not a flag", "twice", "not in CONNECT", "unknown", "cut short"],
)
def test_3_1_4_1_properties_of_connect_are_checked(world: World, props: bytes, reason: Reason) -> None:
    client = world.open()
    client.send(raw.connect(5, ID, props=props))
    expect_malformed_connect(client, reason)


@clause("MQTT-3.1.4-1", "MQTT311-3.1.4-1")
@BOTH
def test_3_1_4_1_bytes_after_the_payload_are_malformed(world: World, version: int) -> None:
    client = world.open(version)
    client.send(raw.connect(version, ID, b"more"))
    expect_malformed_connect(client)


@clause("MQTT-3.1.4-2", "MQTT-3.2.2-7", "MQTT-3.2.2-6", "MQTT-4.13.2-1", "MQTT311-3.2.2-4", "MQTT311-3.2.2-5")
@BOTH
def test_3_1_4_2_a_client_that_fails_a_check_is_refused_and_closed(new_world: NewWorld, version: int) -> None:
    world = new_world(access=Doorman())
    client = world.client(version=version, username="name", password=b"guess", clean_start=False)
    refusal = client.expect_refusal(Reason.BAD_USER_NAME_OR_PASSWORD)
    assert not refusal.session_present


@clause("MQTT-3.1.4-5", "MQTT311-3.1.4-4")
@BOTH
def test_3_1_4_5_a_good_connect_is_accepted(world: World, version: int) -> None:
    client = world.client(version=version)
    assert client.connack.reason is Reason.SUCCESS
    client.send(Pingreq())
    client.expect(Pingresp)


@clause("MQTT-3.1.4-6", "MQTT311-3.1.4-5")
@BOTH
def test_3_1_4_6_nothing_after_a_refused_connect_is_processed(new_world: NewWorld, version: int) -> None:
    world = new_world(access=Doorman())
    watcher = world.client("watcher", password=b"secret")
    watcher.subscribe("#")
    client = world.open(version)
    client.send(
        raw.connect(version, ID),
        raw.publish(version, "a"),
        raw.subscribe(version, raw.text("a"), b"\0"),
        raw.packet(raw.PINGREQ),
    )
    client.expect(Connack, reason=Reason.BAD_USER_NAME_OR_PASSWORD)
    assert client.take() == [] and client.closed
    watcher.expect_nothing()


@clause("MQTT-3.1.2-30", "MQTT-4.12.0-1", "MQTT-4.12.0-4", "MQTT-4.12.0-6")
def test_4_12_0_1_an_authentication_method_is_refused_and_closed(world: World) -> None:
    client = world.client(authentication_method="SCRAM-SHA-256", authentication_data=b"n,,n=user")
    refusal = client.expect_refusal(Reason.BAD_AUTHENTICATION_METHOD)
    assert "authentication_method" not in refusal.properties


@clause("MQTT-3.1.4-1")
def test_3_1_4_1_authentication_data_needs_a_method(world: World) -> None:
    client = world.client(authentication_data=b"data")
    client.expect_refusal(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.1.2-20", "MQTT-3.1.2-22", "MQTT311-3.1.2-23", "MQTT311-3.1.2-24")
@BOTH
def test_3_1_2_22_silence_for_one_and_a_half_keep_alives_ends_the_connection(world: World, version: int) -> None:
    client = world.client(version=version, keep_alive=10)
    world.advance(14.9)
    client.send(Pingreq())
    client.expect(Pingresp)
    world.advance(14.9)
    client.put("a")
    world.advance(14.9)
    client.expect_nothing()
    world.advance(0.2)
    client.expect_end(Reason.KEEP_ALIVE_TIMEOUT)


@clause("MQTT-3.1.2-22", "MQTT311-3.1.2-24")
@BOTH
def test_3_1_2_22_keep_alive_zero_means_no_limit(world: World, version: int) -> None:
    client = world.client(version=version, keep_alive=0)
    world.advance(1_000_000)
    client.send(Pingreq())
    client.expect(Pingresp)


@clause("MQTT-3.1.2-22", "MQTT311-3.1.2-24")
def test_3_1_2_22_half_a_packet_is_not_a_packet() -> None:
    world = World()
    client = world.client(keep_alive=10)
    packet = raw.publish(5, "a", bytes(100))
    for byte in packet[:-1]:
        client.send(bytes([byte]))
        world.advance(1)
    client.expect_end(Reason.KEEP_ALIVE_TIMEOUT)


@clause("MQTT-3.1.2-28")
@pytest.mark.parametrize("request_", [{}, {"request_response_information": 0}], ids=["absent", "0"])
def test_3_1_2_28_no_response_information_unless_asked_for(world: World, request_: dict[str, Any]) -> None:
    client = world.client(**request_)
    assert "response_information" not in client.connack.properties


@clause("MQTT-3.1.4-1")
def test_3_14_disconnect_is_never_the_answer_to_connect(world: World) -> None:
    client = world.open()
    client.send(raw.connect(5, ID, flags=0xFF))
    assert not any(isinstance(packet, Disconnect) for packet in client.take())
    assert client.closed
