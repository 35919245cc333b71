"""Chapters 3.8 and 3.9: SUBSCRIBE and SUBACK."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.clause.test_03_03_publish import Fence
from tests.kits.world import World, payloads
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Publish, Suback, Subscription
from tieline.wire.reason import ALLOWED, Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])
FAILURE = 0x80


@clause("MQTT-3.8.1-1", "MQTT311-3.8.1-1")
@BOTH
@pytest.mark.parametrize("flags", [0x0, 0x1, 0x3, 0x6, 0xA, 0xF], ids=hex)
def test_3_8_1_1_subscribe_with_other_flags_ends_the_connection(world: World, version: int, flags: int) -> None:
    client = world.client(version=version)
    client.send(raw.subscribe(version, raw.text("a"), b"\0", first=0x80 | flags))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.8.3-1", "MQTT311-3.8.3-1")
@BOTH
@pytest.mark.parametrize("data", raw.ILL_FORMED, ids=lambda data: data.hex())
def test_3_8_3_1_filters_are_text(world: World, version: int, data: bytes) -> None:
    client = world.client(version=version)
    client.send(raw.subscribe(version, raw.text("good"), b"\0", raw.text(data), b"\0"))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.8.3-2", "MQTT311-3.8.3-3")
@BOTH
def test_3_8_3_2_a_subscribe_without_filters_is_a_violation(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(raw.subscribe(version))
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.8.3-2", "MQTT311-3.8.3-3")
@BOTH
def test_3_8_3_2_a_filter_without_options_is_malformed(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(raw.subscribe(version, raw.text("a")))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.8.3-3")
@pytest.mark.parametrize("no_local", [False, True])
def test_3_8_3_3_no_local_keeps_a_clients_own_messages_away(world: World, no_local: bool) -> None:
    client = world.client()
    client.subscribe("a", no_local=no_local)
    client.put("a", b"own")
    world.client("other").put("a", b"from other")
    assert payloads(client.messages()) == ([] if no_local else [b"own"]) + [b"from other"]


@clause("MQTT-3.8.3-3")
def test_3_8_3_3_no_local_looks_at_the_client_identifier_not_at_the_connection(world: World) -> None:
    client = world.durable()
    client.subscribe("a", qos=1, no_local=True)
    client.disconnect()
    client = world.durable()
    client.publish("a", b"own", qos=1)
    client.expect_nothing()


@clause("MQTT-3.8.3-3")
def test_3_8_3_3_another_subscription_may_still_want_them(world: World) -> None:
    client = world.client()
    client.subscribe("a", qos=1, no_local=True, subscription_identifier=[1])
    client.subscribe("#", qos=0, subscription_identifier=[2])
    client.publish("a", b"own", qos=1)
    client.expect(Publish, payload=b"own", qos=0, subscription_identifier=[2])
    client.expect_nothing()


@clause("MQTT-3.8.3-3")
@pytest.mark.parametrize("way", ["same connection", "new session"])
def test_3_8_3_3_retained_messages_of_its_own_are_kept_away_too(world: World, way: str) -> None:
    client = world.client()
    client.publish("a/own", retain=True)
    world.client("other").publish("a/other", retain=True)
    if way == "new session":
        client.disconnect()
        client = world.client()
    client.subscribe("a/#", no_local=True)
    assert [message.topic for message in client.messages()] == ["a/other"]


@clause("MQTT-3.8.3-4")
def test_3_8_3_4_no_local_on_a_shared_subscription_is_a_violation(world: World) -> None:
    client = world.client()
    client.send(raw.subscribe(5, raw.text("$share/group/a"), b"\x04"))
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.8.3-5")
@pytest.mark.parametrize("options", [0x40, 0x80, 0xC0, 0x03, 0x30], ids=hex)
def test_3_8_3_5_options_that_mean_nothing_end_the_connection(world: World, options: int) -> None:
    client = world.client()
    client.send(raw.subscribe(5, raw.text("a"), bytes([options])))
    # reserved bits are malformed; QoS 3 and Retain Handling 3 are called protocol errors
    client.expect_end(Reason.PROTOCOL_ERROR if options & 0x3F else Reason.MALFORMED_PACKET)


@clause("MQTT311-3.8.3-4")
@pytest.mark.parametrize("options", [0x03, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80], ids=hex)
def test_v311_3_8_3_4_anything_but_a_qos_ends_the_connection(world: World, options: int) -> None:
    client = world.client(version=4)
    client.send(raw.subscribe(4, raw.text("a"), bytes([options])))
    client.expect_end()


@clause("MQTT311-3.8.3-2", "MQTT-3.9.3-2")
@BOTH
def test_v311_3_8_3_2_without_wildcards_filters_that_have_them_are_refused(new_world: NewWorld, version: int) -> None:
    world = new_world(wildcard_available=False)
    client = world.client(version=version)
    if version == 5:
        assert client.connack.properties["wildcard_subscription_available"] == 0
    refused = Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED if version == 5 else FAILURE
    assert client.subscribe("a/+", "a", "#").reasons == (refused, 0, refused)
    world.client("other").put("a/b")
    client.expect_nothing()


@clause("MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT311-3.8.4-1", "MQTT311-3.8.4-2")
@BOTH
def test_3_8_4_1_each_subscribe_has_its_suback(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(*(raw.subscribe(version, raw.text("a"), b"\0", packet_id=number) for number in (9, 3, 65_535)))
    for packet_id in (9, 3, 65_535):
        client.expect(Suback, packet_id=packet_id)
    client.expect_nothing()


@clause("MQTT-3.8.4-3", "MQTT311-3.8.4-3")
@BOTH
def test_3_8_4_3_the_same_filter_replaces_its_subscription(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a", qos=2)
    client.subscribe("a", qos=0)
    world.client("other").publish("a", qos=2)
    client.expect(Publish, qos=0)
    client.expect_nothing()
    client.unsubscribe("a")
    world.client("other").publish("a", qos=2)
    client.expect_nothing()


@clause("MQTT-3.8.4-4", "MQTT311-3.8.4-3")
@BOTH
def test_3_8_4_4_replacing_loses_nothing(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a", qos=1)
    other = world.client("other")
    client.stall()
    for number in range(10):
        other.publish("a", bytes([number]), qos=1)
        client.send(raw.subscribe(version, raw.text("a"), bytes([1 + number % 2]), packet_id=number + 1))
    client.resume()
    received = [packet for packet in client.take() if isinstance(packet, Publish)]
    assert payloads(received) == [bytes([number]) for number in range(10)]


@clause("MQTT-3.8.4-5", "MQTT-3.8.4-6", "MQTT-3.9.3-1", "MQTT-3.8.4-7")
@clause("MQTT311-3.8.4-4", "MQTT311-3.8.4-5", "MQTT311-3.9.3-1")
@BOTH
def test_3_8_4_5_several_filters_get_one_suback_with_a_code_each(new_world: NewWorld, version: int) -> None:
    world = new_world(access=Fence())
    client = world.client(version=version)
    suback = client.subscribe(
        Subscription(filter="a", qos=2),
        Subscription(filter="secret", qos=1),
        Subscription(filter="b/+", qos=1),
        Subscription(filter="a", qos=0),
        Subscription(filter="c", qos=2),
    )
    refused = Reason.NOT_AUTHORIZED if version == 5 else FAILURE
    assert suback.reasons == (2, refused, 1, 0, 2)
    client.expect_nothing()
    other = world.client("other")
    for topic in ("a", "b/x", "c"):
        other.publish(topic, qos=2)
    assert [(message.topic, message.qos) for message in client.messages()] == [("a", 0), ("b/x", 1), ("c", 2)]


@clause("MQTT-3.8.4-7", "MQTT311-3.8.4-5", "MQTT-3.9.3-2", "MQTT311-3.9.3-2")
@BOTH
@pytest.mark.parametrize(
    ("filter_", "reason"),
    [
        ("secret", Reason.NOT_AUTHORIZED),
        ("$share/group/secret", Reason.NOT_AUTHORIZED),
        ("one/too/many/levels", Reason.TOPIC_FILTER_INVALID),
    ],
)
def test_3_8_4_7_a_refused_filter_has_a_defined_code(
    new_world: NewWorld, version: int, filter_: str, reason: Reason
) -> None:
    client = new_world(access=Fence(), topic_levels=3).client(version=version)
    (code,) = client.subscribe(filter_).reasons
    assert code == (reason if version == 5 else FAILURE)
    assert code in ALLOWED[PacketType.SUBACK]


@clause("MQTT-3.9.3-2", "MQTT311-3.9.3-2")
@BOTH
def test_3_9_3_2_a_full_table_has_a_defined_code(new_world: NewWorld, version: int) -> None:
    client = new_world(subscriptions=2).client(version=version)
    full = Reason.QUOTA_EXCEEDED if version == 5 else FAILURE
    assert client.subscribe("a", "b", "c", "a").reasons == (0, 0, full, 0)


@clause("MQTT-3.9.3-2", "MQTT311-3.9.3-2")
@BOTH
def test_3_9_3_2_shared_subscriptions_that_are_off_have_a_defined_code(new_world: NewWorld, version: int) -> None:
    client = new_world(shared_available=False).client(version=version)
    off = Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED if version == 5 else FAILURE
    assert client.subscribe("$share/group/a").reasons == (off,)


@clause("MQTT-3.8.4-8", "MQTT311-3.8.4-6")
@BOTH
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("published", [0, 1, 2])
def test_3_8_4_8_the_lower_qos_counts(world: World, version: int, granted: int, published: int) -> None:
    client = world.client(version=version)
    assert client.subscribe("a", qos=granted).reasons == (granted,)
    world.client("other").publish("a", qos=published)
    client.expect(Publish, qos=min(granted, published))
    client.expect_nothing()


@clause("MQTT-3.9.2-1", "MQTT-3.9.2-2")
@pytest.mark.parametrize("size", [24, 1_000])
def test_3_9_2_1_a_refusal_fits_the_maximum_packet_size(new_world: NewWorld, size: int) -> None:
    world = new_world(access=Fence())
    client = world.client(maximum_packet_size=size)
    before = len(client.raw)
    suback = client.subscribe("secret")
    assert len(client.raw) - before <= size
    assert suback.reasons == (Reason.NOT_AUTHORIZED,)
    assert ("reason_string" in suback.properties) is (size == 1_000)
    assert "user_property" not in suback.properties


@clause("MQTT-4.13.1-1")
@pytest.mark.parametrize("identifier", [b"\x00", b"\x80\x00", b"\x01\x0b\x02"], ids=["0", "long 0", "two"])
def test_4_13_1_1_a_wrong_subscription_identifier_ends_the_connection(world: World, identifier: bytes) -> None:
    client = world.client()
    props = bytes([raw.SUBSCRIPTION_IDENTIFIER]) + identifier
    client.send(raw.subscribe(5, raw.text("a"), b"\0", props=props))
    assert client.closed
    assert client.told()[-1] in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)


@clause("MQTT311-3.8.4-1", "MQTT311-3.8.4-5")
@pytest.mark.parametrize(
    "filter_", ["$share/", "$share/g", "$share//x", "$share/g/", "$share/+/x", "$share/#", "?a<1", "$share/g/?a<1"]
)
def test_v311_3_8_4_1_what_is_a_filter_in_311_only_is_answered(world: World, filter_: str) -> None:
    client = world.client(version=4)
    assert client.subscribe(filter_, "a").reasons == (0x80, 0)
    client.put("a")
    client.expect(Publish, topic="a")
    client.expect_nothing()


@clause("MQTT311-4.7.1-2", "MQTT311-4.7.1-3", "MQTT311-4.8.0-1")
@pytest.mark.parametrize("filter_", ["$share/g/a#", "$share/#/a", "$share/g+/a", "$share//+a", "a#?a<1"])
def test_v311_4_8_0_1_what_is_no_filter_there_either_ends_the_connection(world: World, filter_: str) -> None:
    client = world.client(version=4)
    client.send(raw.subscribe(4, raw.text(filter_), b"\0"))
    client.expect_end()
