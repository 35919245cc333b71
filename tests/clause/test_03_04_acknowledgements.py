"""Chapters 3.4 to 3.7: PUBACK, PUBREC, PUBREL, PUBCOMP as packets; chapter 4.3 has their order."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.clause.test_03_03_publish import Fence
from tests.kits.world import World
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from tieline.wire.reason import ALLOWED, Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])

#: A maximum packet size with room for CONNACK and for every answer, but not for a reason string as well.
SMALL = 24
#: The first answer to a PUBLISH, by its QoS.
ANSWERS: dict[int, type[Puback | Pubrec]] = {1: Puback, 2: Pubrec}
#: What the broker answers to a packet whose identifier it does not know.
UNKNOWN: list[tuple[Packet, type[Pubrel | Pubcomp]]] = [(Pubrec(packet_id=5), Pubrel), (Pubrel(packet_id=5), Pubcomp)]


@clause("MQTT-3.4.2-1", "MQTT-3.5.2-1")
@pytest.mark.parametrize(("qos", "kind"), [(1, PacketType.PUBACK), (2, PacketType.PUBREC)])
@pytest.mark.parametrize("case", ["accepted", "nobody", "refused", "full"])
def test_3_4_2_1_answers_to_publish_use_defined_reason_codes(
    new_world: NewWorld, qos: int, kind: PacketType, case: str
) -> None:
    world = new_world(access=Fence(), queue_messages=1, absent="refuse")
    reader = world.durable("reader", receive_maximum=1)
    reader.subscribe("a", qos=2)
    if case == "full":
        reader.drop()
        world.client("filler").publish("a", qos=1)
    client = world.client()
    topic = {"accepted": "a", "nobody": "b", "refused": "secret", "full": "a"}[case]
    client.put(topic, qos=qos)
    answer = client.expect(ANSWERS[qos])
    assert answer.reason in ALLOWED[kind]
    assert (
        answer.reason
        is {
            "accepted": Reason.SUCCESS,
            "nobody": Reason.NO_MATCHING_SUBSCRIBERS,
            "refused": Reason.NOT_AUTHORIZED,
            "full": Reason.QUOTA_EXCEEDED,
        }[case]
    )


@clause("MQTT-3.4.2-2", "MQTT-3.4.2-3", "MQTT-3.5.2-2", "MQTT-3.5.2-3")
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("size", [SMALL, 1_000])
def test_3_4_2_2_a_refusal_fits_the_maximum_packet_size(new_world: NewWorld, qos: int, size: int) -> None:
    world = new_world(access=Fence())
    client = world.client(maximum_packet_size=size)
    before = len(client.raw)
    client.put("secret", qos=qos)
    assert len(client.raw) - before <= size
    answer = client.expect(ANSWERS[qos], reason=Reason.NOT_AUTHORIZED)
    assert ("reason_string" in answer.properties) is (size == 1_000)
    assert "user_property" not in answer.properties


@clause("MQTT-3.1.2-29")
@pytest.mark.parametrize("wanted", [0, 1])
def test_3_1_2_29_reason_strings_only_for_clients_that_want_them(new_world: NewWorld, wanted: int) -> None:
    world = new_world(access=Fence())
    client = world.client(request_problem_information=wanted)
    client.put("secret", qos=1)
    client.put("secret", qos=2)
    client.send(Pubrel(packet_id=77), Pubrec(packet_id=77))
    answers = [
        client.expect(Puback).properties,
        client.expect(Pubrec).properties,
        client.expect(Pubcomp).properties,
        client.expect(Pubrel).properties,
        client.subscribe("secret").properties,
        client.subscribe("a/#/b").properties,
        client.unsubscribe("unknown").properties,
    ]
    assert any("reason_string" in properties for properties in answers) is bool(wanted)
    assert not any("user_property" in properties for properties in answers)


@clause("MQTT-3.6.1-1", "MQTT311-3.6.1-1")
@BOTH
@pytest.mark.parametrize("flags", [0x0, 0x1, 0x3, 0x4, 0x8, 0xF], ids=hex)
def test_3_6_1_1_pubrel_with_other_flags_ends_the_connection(world: World, version: int, flags: int) -> None:
    client = world.client(version=version)
    client.put("a", qos=2, packet_id=1)
    client.take()
    client.send(raw.packet(0x60 | flags, raw.u16(1)))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.6.2-1")
@pytest.mark.parametrize("case", ["known", "unknown", "again"])
def test_3_6_2_1_pubrel_uses_defined_reason_codes(world: World, case: str) -> None:
    client = world.client()
    client.subscribe("a", qos=2)
    world.client("other").publish("a", qos=2)
    packet_id = client.expect(Publish).packet_id
    if case == "unknown":
        packet_id += 1
    client.send(Pubrec(packet_id=packet_id))
    if case == "again":
        client.expect(Pubrel, packet_id=packet_id, reason=Reason.SUCCESS)
        client.send(Pubrec(packet_id=packet_id))
    wanted = Reason.PACKET_IDENTIFIER_NOT_FOUND if case == "unknown" else Reason.SUCCESS
    client.expect(Pubrel, packet_id=packet_id, reason=wanted)
    client.expect_nothing()


@clause("MQTT-3.7.2-1")
@pytest.mark.parametrize("case", ["known", "unknown"])
def test_3_7_2_1_pubcomp_uses_defined_reason_codes(world: World, case: str) -> None:
    client = world.client()
    if case == "known":
        client.put("a", qos=2, packet_id=5)
        client.expect(Pubrec)
    client.send(Pubrel(packet_id=5))
    wanted = Reason.SUCCESS if case == "known" else Reason.PACKET_IDENTIFIER_NOT_FOUND
    client.expect(Pubcomp, packet_id=5, reason=wanted)


@clause("MQTT-3.6.2-2", "MQTT-3.6.2-3", "MQTT-3.7.2-2", "MQTT-3.7.2-3")
@pytest.mark.parametrize("size", [SMALL, 1_000])
def test_3_6_2_2_pubrel_and_pubcomp_fit_the_maximum_packet_size(world: World, size: int) -> None:
    client = world.client(maximum_packet_size=size)
    for packet, answer in UNKNOWN:
        before = len(client.raw)
        client.send(packet)
        assert len(client.raw) - before <= size
        found = client.expect(answer, reason=Reason.PACKET_IDENTIFIER_NOT_FOUND)
        assert "user_property" not in found.properties
        assert size > SMALL or "reason_string" not in found.properties


@clause("MQTT-4.13.1-1", "MQTT-3.4.2-1", "MQTT-3.5.2-1", "MQTT-3.6.2-1", "MQTT-3.7.2-1")
@pytest.mark.parametrize("first", [raw.PUBACK, raw.PUBREC, raw.PUBREL, raw.PUBCOMP], ids=hex)
@pytest.mark.parametrize("code", [0x01, 0x7F, 0x81, 0xFF], ids=hex)
def test_4_13_1_1_a_reason_code_of_another_packet_ends_the_connection(world: World, first: int, code: int) -> None:
    client = world.client()
    client.send(raw.packet(first, raw.u16(1), bytes([code])))
    assert client.closed
    assert client.told()[-1] in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)


@clause("MQTT-4.13.1-1", "MQTT311-4.8.0-1")
@BOTH
@pytest.mark.parametrize("first", [raw.PUBACK, raw.PUBREC, raw.PUBREL, raw.PUBCOMP], ids=hex)
@pytest.mark.parametrize("body", [b"", b"\0"], ids=["empty", "one byte"])
def test_4_13_1_1_an_acknowledgement_without_identifier_is_malformed(
    world: World, version: int, first: int, body: bytes
) -> None:
    client = world.client(version=version)
    client.send(raw.packet(first, body))
    client.expect_end(Reason.MALFORMED_PACKET)
