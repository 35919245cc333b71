"""Chapter 3.3: flags, topic, properties and answers of PUBLISH."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World, payloads
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel, Subscription
from tieline.wire.reason import Reason
from tieline.wire.topics import matches

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


class Fence:
    """Nobody may publish to ``secret`` or subscribe to it."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        return Refused("what is secret remains secret") if topic == "secret" else Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Refused("what is secret remains secret") if filter_ == "secret" else Allowed()


# --- 3.3.1 flags ----------------------------------------------------------------------------------------------------


@clause("MQTT-3.3.1-1", "MQTT-3.3.1-3", "MQTT311-3.3.1-1", "MQTT311-3.3.1-3")
@BOTH
@pytest.mark.parametrize("qos", [1, 2])
def test_3_3_1_1_only_a_redelivery_has_dup(world: World, version: int, qos: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=qos)
    world.client("other", version=version).put("a", b"sent as duplicate", qos=qos, dup=True)
    first = client.expect(Publish, dup=False)
    client.drop()
    client = world.durable(version=version)
    client.expect(Publish, dup=True, packet_id=first.packet_id, payload=b"sent as duplicate")


@clause("MQTT-3.3.1-2", "MQTT311-3.3.1-2")
@BOTH
def test_3_3_1_2_dup_with_qos_0_is_refused(world: World, version: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    client.send(raw.publish(version, "a", flags=0x8))
    client.expect_end(Reason.MALFORMED_PACKET)
    watcher.expect_nothing()


@clause("MQTT-3.3.1-2", "MQTT-3.3.1-3", "MQTT311-3.3.1-2")
@BOTH
def test_3_3_1_2_what_arrives_as_a_duplicate_leaves_with_qos_0_and_no_dup(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("a", qos=0)
    world.client("other").put("a", qos=1, dup=True)
    client.expect(Publish, qos=0, dup=False)


@clause("MQTT-3.3.1-4", "MQTT311-3.3.1-4")
@BOTH
@pytest.mark.parametrize("flags", [0x6, 0x7, 0xE, 0xF], ids=hex)
def test_3_3_1_4_qos_3_is_malformed(world: World, version: int, flags: int) -> None:
    client = world.client(version=version)
    client.send(raw.publish(version, "a", flags=flags, packet_id=1))
    client.expect_end(Reason.MALFORMED_PACKET)


# --- 3.3.2.1 topic --------------------------------------------------------------------------------------------------


@clause("MQTT-3.3.2-1", "MQTT311-3.3.2-1")
@BOTH
@pytest.mark.parametrize("body", [b"", b"\0", b"\0\x05ab"], ids=["none", "half a length", "cut short"])
def test_3_3_2_1_a_publish_without_its_topic_is_malformed(world: World, version: int, body: bytes) -> None:
    client = world.client(version=version)
    client.send(raw.packet(raw.PUBLISH, body))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-3.3.2-1", "MQTT311-3.3.2-1")
@BOTH
@pytest.mark.parametrize("topic", ["a", "ß/日本/🜁", "/", " ", "a" * 65_535])
def test_3_3_2_1_the_topic_arrives_as_it_was_sent(world: World, version: int, topic: str) -> None:
    client = world.client(version=version)
    client.subscribe("#")
    client.put(topic)
    client.expect(Publish, topic=topic)


@clause("MQTT-3.3.2-2", "MQTT-4.7.0-1", "MQTT311-3.3.2-2", "MQTT311-4.7.1-1")
@BOTH
@pytest.mark.parametrize("topic", ["a/+", "a/#", "+", "#", "a+b", "a#"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_3_3_2_2_a_topic_with_a_wildcard_is_refused(world: World, version: int, topic: str, qos: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    client.put(topic, qos=qos)
    watcher.expect_nothing()
    assert client.closed
    assert set(client.told()) <= {Reason.TOPIC_NAME_INVALID, Reason.PROTOCOL_ERROR}


@clause("MQTT-3.3.2-3", "MQTT311-3.3.2-3")
@BOTH
@pytest.mark.parametrize(
    "filter_", ["a", "a/b", "a/+", "+/b", "a/#", "#", "+", "/a", "+/+", "/+", "$x/#", "a/+/c", "a//c", "$x/+"]
)
def test_3_3_2_3_subscribers_get_what_matches_and_nothing_else(world: World, version: int, filter_: str) -> None:
    topics = ["a", "a/b", "a/c", "b", "b/b", "/a", "/", "a/", "a/b/c", "a//c", "$x", "$x/a", "$x/a/b", "A"]
    client = world.client(version=version)
    client.subscribe(filter_)
    other = world.client("other", version=version)
    for topic in topics:
        other.put(topic)
    assert [message.topic for message in client.messages()] == [topic for topic in topics if matches(filter_, topic)]


# --- 3.3.2.3 properties ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("payload_format_indicator", 0, marks=clause("MQTT-3.3.2-4")),
        pytest.param("payload_format_indicator", 1, marks=clause("MQTT-3.3.2-4")),
        pytest.param("response_topic", "answer/ß", marks=clause("MQTT-3.3.2-15", "MQTT-3.3.2-13")),
        pytest.param("correlation_data", b"\x00\xff\x80", marks=clause("MQTT-3.3.2-16")),
        pytest.param("correlation_data", b"", marks=clause("MQTT-3.3.2-16")),
        pytest.param("user_property", [("k", "v")], marks=clause("MQTT-3.3.2-17")),
        pytest.param("user_property", [("b", "2"), ("a", "1"), ("b", "2"), ("", "")], marks=clause("MQTT-3.3.2-18")),
        pytest.param("content_type", "text/plain; charset=utf-8", marks=clause("MQTT-3.3.2-20", "MQTT-3.3.2-19")),
    ],
)
@pytest.mark.parametrize("way", ["live", "queued", "retained"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_properties_are_passed_on_unchanged(world: World, name: str, value: object, way: str, qos: int) -> None:
    client = world.durable()
    other = world.client("other")
    if way != "retained":
        client.subscribe("a", qos=max(qos, 1))
    if way == "queued":
        client.drop()
        qos = max(qos, 1)
    other.publish("a", b"text", qos=qos, retain=way == "retained", **{name: value})
    if way == "queued":
        client = world.durable()
    elif way == "retained":
        client.subscribe("a", qos=qos)
    message = client.expect(Publish, payload=b"text", qos=qos)
    assert message.properties == {name: value}


@clause("MQTT-3.3.2-4", "MQTT-3.3.2-15", "MQTT-3.3.2-16", "MQTT-3.3.2-17", "MQTT-3.3.2-20")
def test_3_3_2_4_all_properties_together_reach_every_subscriber(world: World) -> None:
    everything: dict[str, Any] = {
        "payload_format_indicator": 1,
        "content_type": "t",
        "response_topic": "r",
        "correlation_data": b"c",
        "user_property": [("z", "1"), ("a", "2")],
    }
    readers = [world.client(name) for name in ("one", "two")]
    older = world.client("older", version=4)
    for reader in (*readers, older):
        reader.subscribe("a")
    world.client("other").put("a", b"x", **everything)
    for reader in readers:
        assert reader.expect(Publish, payload=b"x").properties == everything
    older.expect(Publish, payload=b"x")


@clause("MQTT-3.3.2-14")
@pytest.mark.parametrize("topic", ["answer/#", "+", "a/+/b"])
@pytest.mark.parametrize("qos", [0, 1])
def test_3_3_2_14_a_response_topic_with_a_wildcard_is_refused(world: World, topic: str, qos: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client()
    client.put("a", qos=qos, response_topic=topic)
    watcher.expect_nothing()
    assert client.closed or client.expect(Puback).reason >= 0x80


@clause("MQTT-4.7.3-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_4_7_3_1_an_empty_response_topic_is_refused(world: World, qos: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client()
    client.put("a", qos=qos, response_topic="")
    client.expect_end(Reason.PROTOCOL_ERROR)
    watcher.expect_nothing()


@clause("MQTT-3.3.2-5")
@pytest.mark.parametrize("qos", [1, 2])
def test_3_3_2_5_a_message_that_waited_too_long_is_not_delivered(world: World, qos: int) -> None:
    client = world.durable()
    client.subscribe("a", qos=2)
    client.drop()
    other = world.client("other")
    other.publish("a", b"short", qos=qos, message_expiry_interval=5)
    other.publish("a", b"long", qos=qos, message_expiry_interval=50)
    world.advance(6)
    assert payloads(world.durable().messages()) == [b"long"]


@clause("MQTT-3.3.2-6")
@pytest.mark.parametrize(("waited", "left"), [(0, 100), (1, 99), (60, 40), (99, 1)])
def test_3_3_2_6_the_waiting_time_is_taken_off_the_expiry(world: World, waited: int, left: int) -> None:
    client = world.durable()
    client.subscribe("a", qos=1)
    client.drop()
    world.client("other").publish("a", qos=1, message_expiry_interval=100)
    world.advance(waited)
    world.durable().expect(Publish, message_expiry_interval=left)


@clause("MQTT-3.3.2-6")
def test_3_3_2_6_without_an_expiry_there_is_none(world: World) -> None:
    client = world.durable()
    client.subscribe("a", qos=1)
    client.drop()
    world.client("other").publish("a", qos=1)
    world.advance(3_000)
    world.durable().expect(Publish, message_expiry_interval=None)


# --- topic alias ----------------------------------------------------------------------------------------------------


@clause("MQTT-3.3.2-12")
def test_3_3_2_12_every_alias_up_to_the_maximum_is_accepted(new_world: NewWorld) -> None:
    world = new_world(topic_alias_maximum=20)
    reader = world.client("reader")
    reader.subscribe("#")
    client = world.client()
    for alias in range(1, 21):
        client.put(f"topic/{alias}", b"set", topic_alias=alias)
    for alias in range(1, 21):
        client.put("", b"used", topic_alias=alias)
    expected = [f"topic/{alias}" for alias in range(1, 21)]
    received = reader.messages()
    assert [message.topic for message in received] == expected * 2
    assert all("topic_alias" not in message.properties for message in received)


@clause("MQTT-3.3.2-12")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_3_3_2_12_an_alias_can_be_set_anew(world: World, qos: int) -> None:
    reader = world.client("reader")
    reader.subscribe("#")
    client = world.client()
    client.publish("old", qos=qos, topic_alias=1)
    client.publish("new", qos=qos, topic_alias=1)
    client.publish("", qos=qos, topic_alias=1)
    assert [message.topic for message in reader.messages()] == ["old", "new", "new"]


@clause("MQTT-3.3.2-7")
def test_3_3_2_7_an_alias_does_not_outlive_its_connection(world: World) -> None:
    reader = world.client("reader")
    reader.subscribe("#")
    client = world.durable()
    client.put("a", topic_alias=1)
    client.drop()
    client = world.durable()
    client.put("", topic_alias=1)
    client.expect_end(Reason.PROTOCOL_ERROR)
    assert [message.topic for message in reader.messages()] == ["a"]


@clause("MQTT-3.3.2-7")
def test_3_3_2_7_the_brokers_aliases_begin_anew_with_each_connection(world: World) -> None:
    other = world.client("other")
    client = world.durable(topic_alias_maximum=5)
    client.subscribe("a", qos=1)
    other.publish("a", qos=1)
    client.acknowledge(client.messages()[0])
    client.drop()
    client = world.durable(topic_alias_maximum=5)
    other.publish("a", qos=1)
    assert client.messages()[0].topic == "a"


@clause("MQTT-3.3.2-8")
@pytest.mark.parametrize("topic", ["a", ""])
def test_3_3_2_8_alias_0_is_refused(world: World, topic: str) -> None:
    client = world.client()
    client.put(topic, topic_alias=0)
    client.expect_end(Reason.TOPIC_ALIAS_INVALID)


@clause("MQTT-3.3.2-8", "MQTT-3.3.2-11", "MQTT-3.1.2-26")
@pytest.mark.parametrize("maximum", [1, 3])
@pytest.mark.parametrize("qos", [0, 1])
def test_3_3_2_11_the_broker_stays_within_the_clients_maximum(world: World, maximum: int, qos: int) -> None:
    client = world.client(topic_alias_maximum=maximum)
    client.subscribe("#", qos=qos)
    other = world.client("other")
    meaning: dict[int, str] = {}
    for round_ in range(3):
        for number in range(6):
            topic = f"t/{number}"
            other.publish(topic, bytes([round_]), qos=qos)
            message = client.expect(Publish)
            alias = message.properties.get("topic_alias")
            if alias is not None:
                assert 1 <= alias <= maximum
                if message.topic:
                    meaning[alias] = message.topic
            assert (message.topic or meaning[alias or 0]) == topic
            client.acknowledge(message)
    assert meaning, "no alias was used at all"


@clause("MQTT-3.1.2-27")
@pytest.mark.parametrize("asked", [{}, {"topic_alias_maximum": 0}], ids=["absent", "0"])
def test_3_1_2_27_no_alias_is_sent_to_a_client_that_allows_none(world: World, asked: dict[str, Any]) -> None:
    client = world.client(**asked)
    client.subscribe("#")
    other = world.client("other")
    for _ in range(3):
        other.put("a", topic_alias=1)
    assert [(message.topic, message.properties) for message in client.messages()] == [("a", {})] * 3


# --- 3.3.4 actions --------------------------------------------------------------------------------------------------


@clause("MQTT-3.3.4-1", "MQTT311-3.3.4-1", "MQTT-4.3.2-4", "MQTT-4.3.3-8", "MQTT311-4.3.2-2", "MQTT311-4.3.3-2")
@BOTH
def test_3_3_4_1_the_answer_depends_on_the_qos(world: World, version: int) -> None:
    world.client("reader").subscribe("a")
    client = world.client(version=version)
    client.put("a", qos=0)
    client.expect_nothing()
    client.put("a", qos=1, packet_id=7)
    client.expect(Puback, packet_id=7, reason=Reason.SUCCESS)
    client.put("a", qos=2, packet_id=7)
    client.expect(Pubrec, packet_id=7, reason=Reason.SUCCESS)
    client.send(Pubrel(packet_id=7))
    client.expect(Pubcomp, packet_id=7, reason=Reason.SUCCESS)
    client.expect_nothing()


@clause("MQTT-3.3.4-2", "MQTT311-3.3.5-1")
@BOTH
@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0), (1, 2), (1, 0)])
def test_3_3_4_2_overlapping_subscriptions_deliver_with_the_highest_qos(
    world: World, version: int, first: int, second: int
) -> None:
    client = world.client(version=version)
    client.subscribe(Subscription(filter="a/#", qos=first), Subscription(filter="a/+", qos=second))
    world.client("other").publish("a/b", qos=2)
    client.expect(Publish, qos=max(first, second))
    client.expect_nothing()


@clause("MQTT-3.3.4-3", "MQTT-3.3.4-4")
def test_3_3_4_4_one_copy_carries_every_matching_identifier(world: World) -> None:
    client = world.client()
    client.subscribe("a/#", subscription_identifier=[1])
    client.subscribe("+/b", subscription_identifier=[200])
    client.subscribe("a/c", subscription_identifier=[3])
    client.subscribe("a/b")
    other = world.client("other")
    other.put("a/b")
    assert sorted(client.expect(Publish).properties["subscription_identifier"]) == [1, 200]
    other.put("a/c")
    assert sorted(client.expect(Publish).properties["subscription_identifier"]) == [1, 3]
    other.put("x/b")
    client.expect(Publish, subscription_identifier=[200])
    client.expect_nothing()


@clause("MQTT-3.3.4-3")
def test_3_3_4_3_an_identifier_belongs_to_its_subscriber(world: World) -> None:
    one, two, three = (world.client(name) for name in ("one", "two", "three"))
    one.subscribe("a", subscription_identifier=[1])
    two.subscribe("a", subscription_identifier=[2])
    three.subscribe("a")
    world.client("other").put("a")
    one.expect(Publish, subscription_identifier=[1])
    two.expect(Publish, subscription_identifier=[2])
    three.expect(Publish, subscription_identifier=None)


@clause("MQTT-3.3.4-3", "MQTT-3.8.4-3")
def test_3_3_4_3_subscribing_again_replaces_the_identifier(world: World) -> None:
    client = world.client()
    client.subscribe("a", subscription_identifier=[1])
    client.subscribe("a", subscription_identifier=[2])
    client.put("a")
    client.expect(Publish, subscription_identifier=[2])
    client.subscribe("a")
    client.put("a")
    client.expect(Publish, subscription_identifier=None)


@clause("MQTT-3.3.4-6")
@pytest.mark.parametrize("qos", [0, 1])
def test_3_3_4_6_a_subscription_identifier_from_a_client_is_refused(world: World, qos: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client()
    client.put("a", qos=qos, subscription_identifier=[1])
    client.expect_end(Reason.PROTOCOL_ERROR)
    watcher.expect_nothing()


@clause("MQTT311-3.3.5-2", "MQTT-3.4.2-1", "MQTT-3.5.2-1")
@BOTH
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_v311_3_3_5_2_a_publish_that_is_not_allowed(new_world: NewWorld, version: int, qos: int) -> None:
    world = new_world(access=Fence())
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    reason = client.publish("secret", qos=qos, retain=True)
    assert reason is (Reason.NOT_AUTHORIZED if version == 5 and qos else Reason.SUCCESS)
    client.expect_nothing()
    client.publish("open")
    assert [message.topic for message in watcher.messages()] == ["open"]


# --- limits of the receiver -----------------------------------------------------------------------------------------


@clause("MQTT-3.1.2-24", "MQTT-3.1.2-25")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_3_1_2_25_a_message_too_large_counts_as_delivered(world: World, qos: int) -> None:
    client = world.client(maximum_packet_size=100, receive_maximum=1)
    client.subscribe("a", qos=qos)
    other = world.client("other")
    for size in (90, 200, 300, 85, 1_000, 10):
        other.publish("a", bytes(size), qos=qos)
    sizes = []
    while client.inbox:
        for message in client.messages():
            sizes.append(len(message.payload))
            client.acknowledge(message)
    assert sizes == [90, 85, 10]


@clause("MQTT-3.1.2-24")
@pytest.mark.parametrize("qos", [0, 1])
def test_3_1_2_24_the_limit_counts_the_whole_packet(world: World, qos: int) -> None:
    client = world.client(maximum_packet_size=100)
    client.subscribe("a", qos=qos)
    other = world.client("other")
    overhead = 2 + 3 + 2 * (qos > 0) + 1
    other.publish("a", bytes(100 - overhead), qos=qos)
    other.publish("a", bytes(101 - overhead), qos=qos)
    assert [len(message.payload) for message in client.messages()] == [100 - overhead]


@clause("MQTT-3.1.2-25")
def test_3_1_2_25_a_message_too_large_for_one_reaches_the_others(world: World) -> None:
    small, large = world.client("small", maximum_packet_size=50), world.client("large")
    for client in (small, large):
        client.subscribe("a", qos=1)
    assert world.client("other").publish("a", bytes(100), qos=1) is Reason.SUCCESS
    large.expect(Publish)
    small.expect_nothing()


@clause("MQTT-3.1.2-25")
def test_3_1_2_25_a_resent_message_too_large_is_forgotten(world: World) -> None:
    client = world.durable()
    client.subscribe("a", qos=1)
    other = world.client("other")
    other.publish("a", bytes(500), qos=1)
    client.expect(Publish)
    client.drop()
    client = world.durable(maximum_packet_size=100, receive_maximum=1)
    client.expect_nothing()
    other.publish("a", b"small", qos=1)
    client.expect(Publish, payload=b"small")
