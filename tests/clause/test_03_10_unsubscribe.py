"""Chapters 3.10 and 3.11: UNSUBSCRIBE and UNSUBACK."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clause import raw
from tests.clause.marker import clause
from tests.kits.world import World, payloads
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Publish, Pubrec, Pubrel, Unsuback
from tieline.wire.reason import ALLOWED, Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


@clause("MQTT-3.10.1-1", "MQTT311-3.10.1-1")
@BOTH
@pytest.mark.parametrize("flags", [0x0, 0x1, 0x3, 0x6, 0xA, 0xF], ids=hex)
def test_3_10_1_1_unsubscribe_with_other_flags_ends_the_connection(world: World, version: int, flags: int) -> None:
    client = world.client(version=version)
    client.send(raw.unsubscribe(version, raw.text("a"), first=0xA0 | flags))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.10.3-1", "MQTT311-3.10.3-1")
@BOTH
@pytest.mark.parametrize("data", raw.ILL_FORMED, ids=lambda data: data.hex())
def test_3_10_3_1_filters_are_text(world: World, version: int, data: bytes) -> None:
    client = world.client(version=version)
    client.send(raw.unsubscribe(version, raw.text("good"), raw.text(data)))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.10.3-1", "MQTT311-3.10.3-1")
@BOTH
@pytest.mark.parametrize("gap", [b"\0", b"\0\x05a"], ids=["half a length", "cut short"])
def test_3_10_3_1_filters_follow_each_other_without_gaps(world: World, version: int, gap: bytes) -> None:
    client = world.client(version=version)
    client.send(raw.unsubscribe(version, raw.text("a"), gap))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.10.3-2", "MQTT311-3.10.3-2")
@BOTH
def test_3_10_3_2_an_unsubscribe_without_filters_is_a_violation(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(raw.unsubscribe(version))
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.10.4-1", "MQTT311-3.10.4-1")
@BOTH
@pytest.mark.parametrize("filter_", ["a/+", "#", "A/b", "a/b/", "a", "$share/g/a/b", "a/B"])
def test_3_10_4_1_only_the_same_characters_end_a_subscription(world: World, version: int, filter_: str) -> None:
    client = world.client(version=version)
    client.subscribe("a/b")
    client.unsubscribe(filter_)
    client.put("a/b")
    client.expect(Publish, topic="a/b")
    client.unsubscribe("a/b")
    client.put("a/b")
    client.expect_nothing()


@clause("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT311-3.10.4-1", "MQTT311-3.10.4-2")
@BOTH
@pytest.mark.parametrize("filter_", ["a/b", "a/+", "#", "$share/g/a/+"])
def test_3_10_4_2_nothing_is_added_after_the_unsubscribe(world: World, version: int, filter_: str) -> None:
    client = world.durable(version=version)
    client.subscribe(filter_, qos=1)
    other = world.client("other")
    other.publish("a/b", b"before", qos=1)
    client.acknowledge(client.expect(Publish, payload=b"before"))
    client.unsubscribe(filter_)
    other.publish("a/b", b"after", qos=1)
    client.expect_nothing()
    client.drop()
    other.publish("a/b", b"away", qos=1)
    world.durable(version=version).expect_nothing()


@clause("MQTT-3.10.4-2", "MQTT311-3.10.4-2")
@BOTH
def test_3_10_4_2_one_of_two_overlapping_subscriptions_remains(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a/#", qos=0)
    client.subscribe("a/b", qos=1)
    client.unsubscribe("a/b")
    world.client("other").publish("a/b", qos=1)
    client.expect(Publish, qos=0)
    client.expect_nothing()


@clause("MQTT-3.10.4-3", "MQTT311-3.10.4-3")
@BOTH
def test_3_10_4_3_deliveries_that_have_begun_are_finished(world: World, version: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=2)
    other = world.client("other")
    other.publish("a", b"one", qos=1)
    other.publish("a", b"two", qos=2)
    one, two = client.messages()
    client.unsubscribe("a")
    client.drop()
    client = world.durable(version=version)
    assert payloads(client.messages()) == [b"one", b"two"]
    client.acknowledge(one)
    client.send(Pubrec(packet_id=two.packet_id))
    client.expect(Pubrel, packet_id=two.packet_id)


@clause("MQTT-3.10.4-4", "MQTT-3.10.4-5", "MQTT-3.11.3-2")
@clause("MQTT311-3.10.4-4", "MQTT311-3.10.4-5")
@BOTH
def test_3_10_4_5_an_unsuback_is_sent_even_if_nothing_was_subscribed(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(raw.unsubscribe(version, raw.text("never"), packet_id=500))
    unsuback = client.expect(Unsuback, packet_id=500)
    assert unsuback.reasons == ((Reason.NO_SUBSCRIPTION_EXISTED,) if version == 5 else ())


@clause("MQTT-3.10.4-6", "MQTT-3.11.3-1", "MQTT-3.11.3-2", "MQTT311-3.10.4-6")
@BOTH
def test_3_10_4_6_several_filters_get_one_unsuback_in_order(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a", "b", "c")
    unsuback = client.unsubscribe("c", "never", "a", "a")
    if version == 5:
        none = Reason.NO_SUBSCRIPTION_EXISTED
        assert unsuback.reasons == (Reason.SUCCESS, none, Reason.SUCCESS, none)
        assert all(code in ALLOWED[PacketType.UNSUBACK] for code in unsuback.reasons)
    else:
        assert client.raw.endswith(b"\xb0\x02" + raw.u16(unsuback.packet_id))
    client.expect_nothing()
    for topic in ("a", "b", "c"):
        client.put(topic)
    assert [message.topic for message in client.messages()] == ["b"]


#: What is a filter in neither version, shared or not.
ILL_FORMED = ["", "a#", "a/#/b", "a+", "$share/g/a#", "$share/g/#/b", "$share/g+/a"]


@clause("MQTT-4.7.1-1", "MQTT-4.7.1-2", "MQTT-4.7.3-1", "MQTT-3.10.4-6", "MQTT-3.11.3-1", "MQTT-3.11.3-2")
@pytest.mark.parametrize("filter_", [*ILL_FORMED, "$share/", "$share/g", "$share//a", "$share/+/a"])
def test_4_7_3_1_what_is_no_filter_gets_a_code_of_its_own_in_unsuback(world: World, filter_: str) -> None:
    client = world.client()
    client.subscribe("a", "b")
    client.send(raw.unsubscribe(5, *map(raw.text, ("a", filter_, "never"))))
    unsuback = client.expect(Unsuback, reasons=(0, Reason.TOPIC_FILTER_INVALID, Reason.NO_SUBSCRIPTION_EXISTED))
    assert unsuback.properties.get("reason_string")
    client.put("a")
    client.put("b")
    client.expect(Publish, topic="b")
    client.expect_nothing()


@clause("MQTT311-4.7.1-2", "MQTT311-4.7.1-3", "MQTT311-4.7.3-1", "MQTT311-4.8.0-1")
@pytest.mark.parametrize("filter_", ILL_FORMED)
def test_v311_4_8_0_1_an_unsubscribe_with_what_is_no_filter_ends_the_connection(world: World, filter_: str) -> None:
    client = world.durable(version=4)
    client.subscribe("a")
    client.send(raw.unsubscribe(4, raw.text("a"), raw.text(filter_)))
    client.expect_end()
    # nothing of such a packet was done
    assert list(world.broker.sessions["a"].subscriptions) == ["a"]


@clause("MQTT311-3.10.4-4", "MQTT311-3.10.4-5")
@pytest.mark.parametrize("filter_", ["$share/", "$share/g", "$share//a", "$share/g/", "$share/+/a", "$share/#", "?a<1"])
def test_v311_3_10_4_5_what_is_a_filter_in_311_only_is_answered(world: World, filter_: str) -> None:
    client = world.client(version=4)
    client.subscribe("a")
    client.unsubscribe(filter_)
    client.put("a")
    client.expect(Publish, topic="a")
    client.expect_nothing()


@clause("MQTT-3.11.2-1", "MQTT-3.11.2-2")
@pytest.mark.parametrize("fields", [{"maximum_packet_size": 24}, {"request_problem_information": 0}], ids=str)
def test_3_11_2_1_no_reason_string_that_does_not_fit_or_is_not_wanted(world: World, fields: dict[str, Any]) -> None:
    assert not world.client(**fields).unsubscribe("a#").properties


@clause("MQTT-3.11.2-1", "MQTT-3.11.2-2")
def test_3_11_2_1_unsuback_fits_the_maximum_packet_size(world: World) -> None:
    client = world.client(maximum_packet_size=24)
    before = len(client.raw)
    unsuback = client.unsubscribe("never")
    assert len(client.raw) - before <= 24
    assert not unsuback.properties
