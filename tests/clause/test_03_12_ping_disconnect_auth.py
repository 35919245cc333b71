"""Chapters 3.12 to 3.15 and 4.12: PINGREQ, DISCONNECT and AUTH."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Auth, Disconnect, Pingreq, Pingresp, Publish, Will
from tieline.wire.reason import ALLOWED, Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])

#: What a client can do to be told off, and the reason it gets.
OFFENCES = {
    "malformed": (raw.packet(raw.PUBLISH, b"\0"), Reason.MALFORMED_PACKET),
    "violation": (raw.connect(5, raw.text("a")), Reason.PROTOCOL_ERROR),
    "too large": (b"\x30\xff\xff\xff\x7f", Reason.PACKET_TOO_LARGE),
    "bad alias": (raw.publish(5, "a", props=b"\x23\xff\xff"), Reason.TOPIC_ALIAS_INVALID),
}


@clause("MQTT-3.12.4-1", "MQTT311-3.12.4-1")
@BOTH
def test_3_12_4_1_every_ping_is_answered(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(Pingreq(), Pingreq())
    client.expect(Pingresp)
    client.expect(Pingresp)
    client.expect_nothing()


@clause("MQTT-3.14.0-1")
@pytest.mark.parametrize("offence", OFFENCES)
def test_3_14_0_1_before_connack_there_is_no_disconnect(world: World, offence: str) -> None:
    client = world.open()
    client.send(OFFENCES[offence][0] if offence != "violation" else raw.packet(raw.PINGREQ))
    assert client.closed and client.raw == b""


@clause("MQTT-3.14.0-1")
def test_3_14_0_1_a_stopping_server_says_nothing_before_connack(world: World) -> None:
    client = world.open()
    world.stop()
    assert client.closed and client.raw == b""


@clause("MQTT-3.14.1-1", "MQTT311-3.14.1-1")
@BOTH
@pytest.mark.parametrize("flags", [0x1, 0x2, 0x4, 0x8], ids=hex)
def test_3_14_1_1_disconnect_with_reserved_bits_is_malformed(world: World, version: int, flags: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("will")
    client = world.client(version=version, will=Will(topic="will", payload=b"gone"))
    client.send(raw.packet(raw.DISCONNECT | flags))
    client.expect_end(Reason.MALFORMED_PACKET)
    watcher.expect(Publish, topic="will")


@clause("MQTT-3.14.2-1", "MQTT-3.14.2-2", "MQTT-3.14.4-1", "MQTT-3.14.4-2", "MQTT-4.13.1-1", "MQTT-4.13.2-1")
@pytest.mark.parametrize("offence", OFFENCES)
def test_3_14_2_1_the_broker_says_why_and_closes(world: World, offence: str) -> None:
    data, reason = OFFENCES[offence]
    client = world.durable()
    client.subscribe("#")
    client.send(data, raw.packet(raw.PINGREQ), raw.publish(5, "after"))
    world.client("other").put("later")
    told = client.expect(Disconnect, reason=reason)
    assert told.reason in ALLOWED[PacketType.DISCONNECT]
    assert "session_expiry_interval" not in told.properties
    assert client.take() == [] and client.closed


@clause("MQTT311-4.8.0-1")
@pytest.mark.parametrize("offence", ["malformed", "violation", "too large"])
def test_v311_4_8_0_1_a_violation_closes_without_a_word(world: World, offence: str) -> None:
    client = world.client(version=4)
    before = client.raw
    client.send(OFFENCES[offence][0], raw.packet(raw.PINGREQ))
    assert client.closed and client.raw == before


@clause("MQTT-3.14.2-3", "MQTT-3.14.2-4")
@pytest.mark.parametrize("offence", OFFENCES)
@pytest.mark.parametrize("size", [24, 1_000])
def test_3_14_2_3_disconnect_fits_the_maximum_packet_size(world: World, offence: str, size: int) -> None:
    data, reason = OFFENCES[offence]
    client = world.client(maximum_packet_size=size)
    before = len(client.raw)
    client.send(data)
    assert client.closed and len(client.raw) - before <= size
    told = client.expect(Disconnect, reason=reason)
    assert "user_property" not in told.properties
    assert ("reason_string" in told.properties) is (size == 1_000)


@clause("MQTT-3.14.4-1", "MQTT-3.14.4-2", "MQTT-3.14.2-1")
@BOTH
def test_3_14_4_1_a_stopping_server_says_goodbye_last(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("#")
    world.stop()
    client.expect_end(Reason.SERVER_SHUTTING_DOWN)


@clause("MQTT311-3.14.4-1", "MQTT311-3.14.4-2", "MQTT-3.14.4-1", "MQTT-3.14.4-2")
@BOTH
def test_3_14_4_2_after_a_clients_disconnect_nothing_more_is_read_and_the_broker_closes(
    world: World, version: int
) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    client.send(Disconnect(), raw.publish(version, "after"), raw.packet(raw.PINGREQ))
    assert client.closed and client.take() == []
    watcher.expect_nothing()


@clause("MQTT-3.14.2-1")
@pytest.mark.parametrize("code", [0x01, 0x7F, 0xFF, 0x86], ids=hex)
def test_3_14_2_1_an_undefined_reason_code_is_refused(world: World, code: int) -> None:
    client = world.client()
    client.send(raw.packet(raw.DISCONNECT, bytes([code]), b"\0"))
    assert client.closed
    assert client.told()[-1] in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)


@clause("MQTT-3.15.1-1")
@pytest.mark.parametrize("flags", [0x1, 0x2, 0x4, 0x8], ids=hex)
def test_3_15_1_1_auth_with_other_flags_is_malformed(world: World, flags: int) -> None:
    client = world.client()
    client.send(raw.packet(raw.AUTH | flags))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.15.2-1")
@pytest.mark.parametrize("code", [0x01, 0x17, 0x1A, 0x80, 0xFF], ids=hex)
def test_3_15_2_1_auth_with_an_undefined_code_is_refused(world: World, code: int) -> None:
    client = world.client()
    client.send(raw.packet(raw.AUTH, bytes([code]), b"\0"))
    assert client.closed
    assert client.told()[-1] in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)


@clause("MQTT-4.12.0-7", "MQTT-4.12.0-3", "MQTT-4.12.1-1", "MQTT-4.12.1-2")
@pytest.mark.parametrize("reason", [Reason.SUCCESS, Reason.CONTINUE_AUTHENTICATION, Reason.REAUTHENTICATE])
def test_4_12_1_2_auth_without_a_method_in_connect_ends_the_connection(world: World, reason: Reason) -> None:
    client = world.client()
    client.send(Auth(reason=reason, properties={"authentication_method": "SCRAM-SHA-256"}))
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.15.2-1", "MQTT311-4.8.0-1")
def test_3_15_2_1_mqtt_3_1_1_has_no_auth(world: World) -> None:
    client = world.client(version=4)
    client.send(raw.packet(raw.AUTH))
    client.expect_end()


@clause("MQTT-4.12.0-6")
def test_4_12_0_6_without_a_method_there_is_none_in_connack_and_no_auth(new_world: NewWorld) -> None:
    world = new_world()
    client = world.client(username="name", password=b"secret")
    assert "authentication_method" not in client.connack.properties
    assert "authentication_data" not in client.connack.properties
    client.send(Pingreq())
    client.expect(Pingresp)
    client.expect_nothing()
