"""Chapter 4.13 (4.8 in 3.1.1): what happens to others, and to the rest of the bytes, when a client goes wrong."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World, payloads
from tieline.wire.packets import Disconnect, Pingreq, Pingresp, Publish
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])

#: Packets that are wrong in every version, each in its own way.
WRONG = {
    "reserved packet type": b"\x00\x00",
    "length of five bytes": b"\x30\xff\xff\xff\xff\x01",
    "second CONNECT": raw.connect(4, raw.text("a")),
    "server's packet": b"\x20\x02\x00\x00",
    "QoS 3": raw.packet(0x36, raw.text("a"), raw.u16(1)),
    "topic cut short": raw.packet(0x30, b"\x00\xffab"),
    "SUBSCRIBE cut short": raw.packet(0x82, b"\x00"),
    "PINGREQ with a body": b"\xc0\x01\x00",
}


@clause("MQTT-4.13.1-1", "MQTT311-4.8.0-1")
@BOTH
@pytest.mark.parametrize("case", WRONG)
def test_4_13_1_1_a_wrong_packet_closes_its_own_connection_only(world: World, version: int, case: str) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    client.send(raw.publish(version, "before"), WRONG[case], raw.publish(version, "after"))
    assert client.closed
    told = client.take()
    if version == 5:
        assert len(told) == 1 and isinstance(told[0], Disconnect)
        assert told[0].reason in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)
    else:
        assert told == []
    assert [message.topic for message in watcher.messages()] == ["before"]
    watcher.send(Pingreq())
    watcher.expect(Pingresp)


@clause("MQTT-4.13.1-1")
@pytest.mark.parametrize(
    ("props", "reason"),
    [
        (b"\x01\x02", Reason.PROTOCOL_ERROR),
        (b"\x01\x01\x01\x01", Reason.PROTOCOL_ERROR),
        (b"\x23\x00\x01\x23\x00\x01", Reason.PROTOCOL_ERROR),
        (b"\x02\x00\x00\x00", Reason.MALFORMED_PACKET),
        (b"\x7e\x00", Reason.MALFORMED_PACKET),
        (b"\x11\x00\x00\x00\x00", Reason.MALFORMED_PACKET),
    ],
    ids=["not a flag", "twice", "alias twice", "cut short", "unknown", "not in PUBLISH"],
)
def test_4_13_1_1_properties_of_publish_are_checked(world: World, props: bytes, reason: Reason) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client()
    client.send(raw.publish(5, "a", props=props))
    client.expect_end(reason)
    watcher.expect_nothing()


@clause("MQTT-4.13.2-1")
@pytest.mark.parametrize("reason", [Reason.UNSPECIFIED_ERROR, Reason.MALFORMED_PACKET, Reason.QUOTA_EXCEEDED])
def test_4_13_2_1_a_client_that_leaves_with_an_error_is_closed(world: World, reason: Reason) -> None:
    client = world.client()
    client.send(Disconnect(reason=reason), raw.packet(raw.PINGREQ))
    assert client.closed and client.take() == []


@clause("MQTT311-4.8.0-2")
def test_v311_4_8_0_2_a_publisher_whose_message_finds_no_room_is_closed_in_the_end(new_world: NewWorld) -> None:
    """The transient error of a broker in memory is a full queue; 3.1.1 has no code for it."""
    world = new_world(queue_messages=2, absent="refuse", pause_max_s=30)
    reader = world.durable("reader")
    reader.subscribe("a", qos=1)
    reader.drop()
    client = world.client(version=4)
    for packet_id in (1, 2):
        client.put("a", bytes([packet_id]), qos=1, packet_id=packet_id)
    assert len(client.take()) == 2
    client.put("a", b"no room", qos=1, packet_id=3)
    client.expect_nothing()
    world.advance(31)
    client.expect_end()
    assert payloads(world.durable("reader").messages()) == [b"\x01", b"\x02"]


@clause("MQTT-4.13.1-1")
def test_4_13_1_1_with_mqtt_5_a_full_queue_is_an_answer_not_the_end(new_world: NewWorld) -> None:
    world = new_world(queue_messages=2, absent="refuse")
    reader = world.durable("reader")
    reader.subscribe("a", qos=1)
    reader.drop()
    client = world.client()
    reasons = [client.publish("a", bytes([number]), qos=1) for number in range(4)]
    assert reasons == [Reason.SUCCESS] * 2 + [Reason.QUOTA_EXCEEDED] * 2
    assert payloads(world.durable("reader").messages()) == [b"\x00", b"\x01"]
    assert client.publish("a", b"room again", qos=1) is Reason.SUCCESS


@clause("MQTT-3.1.2-24")
def test_3_1_2_24_a_suback_above_the_maximum_packet_size_is_not_sent(world: World) -> None:
    client = world.client(maximum_packet_size=50)
    before = len(client.raw)
    client.send(raw.subscribe(5, *(raw.text(f"{number}") + b"\0" for number in range(100))))
    assert len(client.raw) - before <= 50
    world.client("other").put("a")
    assert not any(isinstance(packet, Publish) for packet in client.take())
