"""Chapter 3.3.1.3: retained messages."""

from __future__ import annotations

import pytest

from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import Client, World, payloads, topics
from tieline.wire.packets import Publish, Subscription

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


def retained(world: World, filter_: str = "a", version: int = 5, qos: int = 2) -> list[Publish]:
    """What a new subscriber gets at once."""
    client = world.client("reader", version=version)
    client.subscribe(filter_, qos=qos)
    return client.messages()


@pytest.fixture
def publisher(world: World) -> Client:
    return world.client("publisher")


@clause("MQTT-3.3.1-5", "MQTT311-3.3.1-5", "MQTT311-3.3.1-6", "MQTT311-3.3.1-8", "MQTT-3.3.1-9")
@BOTH
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_3_3_1_5_the_last_retained_message_is_kept_with_its_qos(world: World, version: int, qos: int) -> None:
    publisher = world.client("publisher", version=version)
    publisher.publish("a", b"first", qos=qos, retain=True)
    publisher.publish("a", b"second", qos=qos, retain=True)
    (message,) = retained(world, version=version)
    assert (message.topic, message.payload, message.qos, message.retain) == ("a", b"second", qos, True)


@clause("MQTT311-3.3.1-7", "MQTT-3.3.1-5")
@BOTH
def test_v311_3_3_1_7_a_retained_qos_0_message_displaces_the_old_one(world: World, version: int) -> None:
    publisher = world.client("publisher", version=version)
    publisher.publish("a", b"old", qos=2, retain=True)
    publisher.publish("a", b"new", qos=0, retain=True)
    assert payloads(retained(world, version=version)) in ([b"new"], [])


@clause("MQTT311-3.3.1-6", "MQTT-3.3.1-9")
@BOTH
def test_v311_3_3_1_6_every_matching_topic_sends_its_message(world: World, version: int, publisher: Client) -> None:
    for topic in ("a", "a/b", "a/b/c", "a/c", "b", "$x/a", "a/"):
        publisher.publish(topic, topic.encode(), retain=True)
    assert sorted(topics(retained(world, "a/+", version))) == ["a/", "a/b", "a/c"]
    assert sorted(topics(retained(world, "a/#", version))) == ["a", "a/", "a/b", "a/b/c", "a/c"]
    assert sorted(topics(retained(world, "+", version))) == ["a", "b"]
    assert sorted(topics(retained(world, "#", version))) == ["a", "a/", "a/b", "a/b/c", "a/c", "b"]
    assert sorted(topics(retained(world, "$x/#", version))) == ["$x/a"]


@clause("MQTT-3.3.1-6", "MQTT311-3.3.1-10")
@BOTH
def test_3_3_1_6_an_empty_retained_message_is_delivered_and_clears_the_topic(world: World, version: int) -> None:
    publisher = world.client("publisher", version=version)
    reader = world.client("live", version=version)
    reader.subscribe("a")
    publisher.publish("a", b"kept", retain=True)
    reader.expect(Publish, payload=b"kept")
    publisher.publish("a", b"", retain=True)
    reader.expect(Publish, payload=b"", retain=False)
    assert retained(world, version=version) == []


@clause("MQTT-3.3.1-7", "MQTT311-3.3.1-11")
@BOTH
def test_3_3_1_7_an_empty_message_is_not_kept(world: World, version: int) -> None:
    world.client("publisher", version=version).publish("a", b"", qos=1, retain=True)
    assert retained(world, version=version) == []


@clause("MQTT-3.3.1-8", "MQTT311-3.3.1-12")
@BOTH
@pytest.mark.parametrize("payload", [b"other", b""])
def test_3_3_1_8_without_the_flag_the_store_is_left_alone(world: World, version: int, payload: bytes) -> None:
    publisher = world.client("publisher", version=version)
    publisher.publish("b", payload)
    assert retained(world, "b", version) == []
    publisher.publish("a", b"kept", retain=True)
    publisher.publish("a", payload)
    assert payloads(retained(world, version=version)) == [b"kept"]


@clause("MQTT-3.3.1-9", "MQTT-3.8.4-4", "MQTT311-3.8.4-3")
@BOTH
def test_3_3_1_9_retain_handling_0_sends_them_with_every_subscribe(
    world: World, version: int, publisher: Client
) -> None:
    publisher.publish("a", b"kept", retain=True)
    client = world.client(version=version)
    for _ in range(3):
        client.subscribe("a", retain_handling=0)
        client.expect(Publish, payload=b"kept", retain=True)
        client.expect_nothing()


@clause("MQTT-3.3.1-10")
def test_3_3_1_10_retain_handling_1_sends_them_with_a_new_subscription_only(world: World, publisher: Client) -> None:
    publisher.publish("a", b"kept", retain=True)
    client = world.client()
    client.subscribe("a", retain_handling=1)
    client.expect(Publish, payload=b"kept", retain=True)
    client.subscribe("a", retain_handling=1, qos=1)
    client.expect_nothing()
    client.unsubscribe("a")
    client.subscribe("a", retain_handling=1)
    client.expect(Publish, payload=b"kept", retain=True)


@clause("MQTT-3.3.1-10")
def test_3_3_1_10_a_resumed_subscription_is_not_new(world: World, publisher: Client) -> None:
    publisher.publish("a", b"kept", retain=True)
    client = world.durable()
    client.subscribe("a", retain_handling=2)
    client.drop()
    client = world.durable()
    client.subscribe("a", retain_handling=1)
    client.expect_nothing()


@clause("MQTT-3.3.1-11")
def test_3_3_1_11_retain_handling_2_sends_none(world: World, publisher: Client) -> None:
    publisher.publish("a", b"kept", retain=True)
    client = world.client()
    client.subscribe("a", retain_handling=2)
    client.expect_nothing()
    publisher.publish("a", b"live")
    client.expect(Publish, payload=b"live")


@clause("MQTT-3.3.1-12", "MQTT311-3.3.1-9")
@BOTH
def test_3_3_1_12_an_existing_subscription_gets_the_flag_cleared(world: World, version: int, publisher: Client) -> None:
    client = world.client(version=version)
    client.subscribe("a", retain_as_published=False)
    for retain in (True, False):
        publisher.publish("a", retain=retain)
        client.expect(Publish, retain=False)


@clause("MQTT-3.3.1-13")
def test_3_3_1_13_retain_as_published_keeps_the_flag(world: World, publisher: Client) -> None:
    client = world.client()
    client.subscribe("a", retain_as_published=True)
    for retain in (True, False):
        publisher.publish("a", retain=retain)
        client.expect(Publish, retain=retain)


@clause("MQTT-3.3.1-13")
def test_3_3_1_13_one_wish_among_overlapping_subscriptions_is_enough(world: World, publisher: Client) -> None:
    client = world.client()
    client.subscribe(
        Subscription(filter="a", retain_as_published=False), Subscription(filter="#", retain_as_published=True)
    )
    publisher.publish("a", retain=True)
    client.expect(Publish, retain=True)
    client.expect_nothing()


@clause("MQTT311-3.3.1-8", "MQTT-3.3.1-9")
@BOTH
@pytest.mark.parametrize("retain_as_published", [False, True])
def test_v311_3_3_1_8_what_comes_from_the_store_has_the_flag(
    world: World, version: int, publisher: Client, retain_as_published: bool
) -> None:
    publisher.publish("a", retain=True)
    client = world.client(version=version)
    client.subscribe("a", retain_as_published=retain_as_published)
    client.expect(Publish, retain=True)


@clause("MQTT-3.3.1-9", "MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_3_3_2_5_a_retained_message_expires_in_the_store(world: World, publisher: Client) -> None:
    publisher.publish("a", b"kept", retain=True, message_expiry_interval=10)
    world.advance(4)
    (message,) = retained(world)
    assert message.properties["message_expiry_interval"] == 6
    world.advance(6.1)
    assert retained(world) == []


@clause("MQTT-3.3.1-9", "MQTT-3.3.4-3")
def test_3_3_4_3_what_comes_from_the_store_carries_the_identifier(world: World, publisher: Client) -> None:
    publisher.publish("a", retain=True)
    client = world.client()
    client.subscribe("a", subscription_identifier=[7])
    client.expect(Publish, subscription_identifier=[7])


@clause("MQTT-3.3.1-9")
def test_3_3_1_9_a_shared_subscription_gets_none(world: World, publisher: Client) -> None:
    publisher.publish("a", retain=True)
    client = world.client()
    client.subscribe("$share/group/a")
    client.expect_nothing()


@clause("MQTT-3.3.1-9", "MQTT311-3.3.1-6")
@BOTH
def test_3_3_1_9_many_retained_messages_respect_the_window(new_world: NewWorld, version: int) -> None:
    world = new_world(inflight=5)
    publisher = world.client("publisher")
    for number in range(40):
        publisher.publish(f"a/{number}", retain=True, qos=1)
    client = world.client(version=version)
    client.subscribe("a/#", qos=1)
    received: list[Publish] = []
    while client.inbox:
        batch = client.messages()
        assert len(batch) <= 5
        received += batch
        for message in batch:
            client.acknowledge(message)
    assert len(received) == len(set(topics(received))) == 40
