"""Chapter 2: fixed header, packet identifiers and property length."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel, Suback, Unsuback
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])

#: Packets of both versions whose flags are fixed, with the right first byte.
FIXED = {
    "PUBACK": (raw.PUBACK, raw.u16(1)),
    "PUBREC": (raw.PUBREC, raw.u16(1)),
    "PUBREL": (raw.PUBREL, raw.u16(1)),
    "PUBCOMP": (raw.PUBCOMP, raw.u16(1)),
    "PINGREQ": (raw.PINGREQ, b""),
    "DISCONNECT": (raw.DISCONNECT, b""),
}


@clause("MQTT-2.1.3-1", "MQTT311-2.2.2-1", "MQTT311-2.2.2-2")
@BOTH
@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("wrong", [0x1, 0x2, 0x4, 0x8, 0xF])
def test_2_1_3_1_wrong_reserved_flags_are_malformed(world: World, version: int, kind: str, wrong: int) -> None:
    first, body = FIXED[kind]
    client = world.client(version=version)
    client.send(raw.packet(first ^ wrong, body))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-2.1.3-1", "MQTT311-2.2.2-2")
@BOTH
@pytest.mark.parametrize("wrong", [0x1, 0x2, 0x4, 0x8])
def test_2_1_3_1_connect_with_reserved_flags_is_not_accepted(world: World, version: int, wrong: int) -> None:
    client = world.open(version)
    good = raw.connect(version, raw.text("a"))
    client.send(bytes([good[0] | wrong]) + good[1:])
    assert client.closed
    assert all(reason >= 0x80 for reason in client.told())


@clause("MQTT-2.1.3-1")
@pytest.mark.parametrize("first", [0x00, 0x0F, 0x20, 0x90, 0xB0, 0xD0], ids=hex)
@BOTH
def test_2_1_3_1_packet_types_that_no_client_sends_end_the_connection(world: World, version: int, first: int) -> None:
    client = world.client(version=version)
    client.send(raw.packet(first, raw.u16(1), b"\0"))
    assert client.closed


@clause("MQTT-2.2.1-2", "MQTT311-2.3.1-5")
@BOTH
def test_2_2_1_2_qos_0_has_no_packet_identifier(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a", qos=2)
    before = len(client.raw)
    client.put("a", b"\x00\x07payload")
    assert client.raw[before:] == raw.publish(version, "a", b"\x00\x07payload")


@clause("MQTT-2.2.1-3", "MQTT311-2.3.1-1")
@BOTH
@pytest.mark.parametrize("kind", ["QoS 1", "QoS 2", "SUBSCRIBE", "UNSUBSCRIBE"])
def test_2_2_1_3_identifier_zero_is_refused(world: World, version: int, kind: str) -> None:
    data = {
        "QoS 1": raw.publish(version, "a", flags=0x2, packet_id=0),
        "QoS 2": raw.publish(version, "a", flags=0x4, packet_id=0),
        "SUBSCRIBE": raw.subscribe(version, raw.text("a"), b"\0", packet_id=0),
        "UNSUBSCRIBE": raw.unsubscribe(version, raw.text("a"), packet_id=0),
    }[kind]
    client = world.client(version=version)
    client.send(data)
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT311-2.3.1-1", "MQTT311-2.3.1-4")
@BOTH
def test_2_2_1_4_identifiers_of_the_broker_are_free_and_not_zero(new_world: NewWorld, version: int) -> None:
    world = new_world(inflight=5)
    client = world.client(version=version)
    client.subscribe("a", qos=1)
    other = world.client("other")
    waiting: list[Publish] = []
    for round_ in range(40):
        other.publish("a", bytes([round_]), qos=1)
        waiting += client.messages()
        identifiers = [message.packet_id for message in waiting]
        assert all(identifiers) and len(set(identifiers)) == len(identifiers) <= 5
        if len(waiting) == 5:
            client.acknowledge(waiting.pop(round_ % 5))
            waiting += client.messages()


@clause("MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1", "MQTT311-4.3.2-1", "MQTT311-4.3.3-1")
@BOTH
@pytest.mark.parametrize("qos", [1, 2])
def test_2_2_1_4_an_identifier_in_use_is_passed_over_when_the_counter_wraps(
    world: World, version: int, qos: int
) -> None:
    client = world.client(version=version)
    client.subscribe("a", "stuck", qos=qos)
    other = world.client("other")
    other.publish("stuck", qos=qos)
    stuck = client.messages()[0].packet_id
    session = client.connection.session
    assert session is not None
    session.last_id = 65_533
    used = []
    for _ in range(stuck + 4):
        other.publish("a", qos=qos)
        message = client.messages()[0]
        used.append(message.packet_id)
        client.acknowledge(message)
    assert 65_535 in used and stuck + 1 in used
    assert 0 not in used and stuck not in used and len(set(used)) == len(used)


@clause("MQTT-2.2.1-5", "MQTT-4.3.2-4", "MQTT-4.3.3-8", "MQTT-4.3.3-11", "MQTT311-2.3.1-6", "MQTT311-4.3.2-2")
@BOTH
@pytest.mark.parametrize("packet_id", [1, 255, 256, 65_535])
def test_2_2_1_5_acknowledgements_repeat_the_identifier(world: World, version: int, packet_id: int) -> None:
    client = world.client(version=version)
    client.put("a", qos=1, packet_id=packet_id)
    client.expect(Puback, packet_id=packet_id)
    client.put("a", qos=2, packet_id=packet_id)
    client.expect(Pubrec, packet_id=packet_id)
    client.send(Pubrel(packet_id=packet_id))
    client.expect(Pubcomp, packet_id=packet_id)


@clause("MQTT-2.2.1-5", "MQTT-4.3.3-4", "MQTT311-2.3.1-6")
@BOTH
def test_2_2_1_5_pubrel_repeats_the_identifier(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a", qos=2)
    world.client("other").publish("a", qos=2)
    message = client.expect(Publish, qos=2)
    client.send(Pubrec(packet_id=message.packet_id))
    client.expect(Pubrel, packet_id=message.packet_id)


@clause("MQTT-2.2.1-6", "MQTT-3.8.4-2", "MQTT-3.10.4-5")
@clause("MQTT311-2.3.1-7", "MQTT311-3.8.4-2", "MQTT311-3.10.4-4")
@BOTH
@pytest.mark.parametrize("packet_id", [1, 256, 65_535])
def test_2_2_1_6_suback_and_unsuback_repeat_the_identifier(world: World, version: int, packet_id: int) -> None:
    client = world.client(version=version)
    client.send(raw.subscribe(version, raw.text("a"), b"\0", packet_id=packet_id))
    client.expect(Suback, packet_id=packet_id)
    client.send(raw.unsubscribe(version, raw.text("a"), packet_id=packet_id))
    client.expect(Unsuback, packet_id=packet_id)


@clause("MQTT-2.2.2-1")
def test_2_2_2_1_no_properties_is_length_zero(world: World) -> None:
    client = world.client()
    before = len(client.raw)
    client.subscribe("a")
    client.put("a", b"payload")
    client.unsubscribe("a")
    assert client.raw[before:] == (
        raw.packet(0x90, raw.u16(1), b"\x00", b"\x00")
        + raw.packet(0x30, raw.text("a"), b"\x00", b"payload")
        + raw.packet(0xB0, raw.u16(2), b"\x00", b"\x00")
    )


@clause("MQTT-2.2.2-1")
@pytest.mark.parametrize("kind", ["CONNECT", "PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE"])
def test_2_2_2_1_a_packet_without_its_property_length_is_malformed(world: World, kind: str) -> None:
    client = world.open() if kind == "CONNECT" else world.client()
    client.send(
        {
            "CONNECT": raw.packet(raw.CONNECT, raw.text("MQTT"), b"\x05\x02", raw.u16(0)),
            "PUBLISH": raw.packet(raw.PUBLISH, raw.text("a")),
            "SUBSCRIBE": raw.packet(raw.SUBSCRIBE, raw.u16(1)),
            "UNSUBSCRIBE": raw.packet(raw.UNSUBSCRIBE, raw.u16(1)),
        }[kind]
    )
    assert client.closed
    assert set(client.told()) <= {Reason.MALFORMED_PACKET}
