"""Chapter 3.1: will messages."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import Client, World
from tieline.wire.packets import Disconnect, Publish, Will
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


def watcher_of(world: World, *filters: str) -> Client:
    watcher = world.client("watcher")
    watcher.subscribe(*(filters or ("will",)), qos=2, retain_as_published=True)
    return watcher


def will(**fields: object) -> Will:
    return Will(topic="will", payload=b"gone", **fields)  # type: ignore[arg-type]


def lose(world: World, client: Client, how: str) -> None:
    """End a connection in one of the ways that are not a normal DISCONNECT."""
    if how == "network":
        client.drop()
    elif how == "keep-alive":
        world.advance(15.5)
    elif how == "malformed":
        client.send(raw.packet(0xF5))
    elif how == "take-over":
        world.client(version=client.version)


@clause("MQTT-3.1.2-7", "MQTT-3.1.2-8", "MQTT311-3.1.2-8")
@BOTH
@pytest.mark.parametrize("how", ["network", "keep-alive", "malformed", "take-over"])
def test_3_1_2_8_the_will_is_published_when_the_connection_is_lost(world: World, version: int, how: str) -> None:
    watcher = watcher_of(world)
    client = world.client(version=version, keep_alive=10, will=will(qos=1))
    watcher.expect_nothing()
    lose(world, client, how)
    watcher.expect(Publish, topic="will", payload=b"gone", qos=1, retain=False)
    watcher.expect_nothing()


@clause("MQTT-3.1.2-8", "MQTT311-3.1.2-8")
@BOTH
def test_3_1_2_8_a_stopping_server_publishes_the_wills_first(world: World, version: int) -> None:
    watcher = watcher_of(world)
    world.client(version=version, will=will())
    world.durable("away", will=will(properties={"will_delay_interval": 100})).drop()
    world.stop()
    watcher.expect(Publish, payload=b"gone")
    watcher.expect(Publish, payload=b"gone")
    watcher.expect_end(Reason.SERVER_SHUTTING_DOWN)


@clause("MQTT-3.1.2-8")
@pytest.mark.parametrize(
    "reason", [Reason.DISCONNECT_WITH_WILL_MESSAGE, Reason.UNSPECIFIED_ERROR, Reason.QUOTA_EXCEEDED], ids=hex
)
def test_3_1_2_8_a_disconnect_that_is_not_normal_publishes_it(world: World, reason: Reason) -> None:
    watcher = watcher_of(world)
    client = world.client(will=will())
    client.disconnect(reason)
    watcher.expect(Publish, payload=b"gone")


@clause("MQTT-3.1.2-10", "MQTT-3.14.4-3", "MQTT311-3.1.2-10", "MQTT311-3.14.4-3", "MQTT-3.1.2-8")
@BOTH
def test_3_14_4_3_a_normal_disconnect_discards_the_will(world: World, version: int) -> None:
    watcher = watcher_of(world)
    client = world.durable(version=version, will=will())
    client.send(Disconnect())
    assert client.closed
    world.advance(10_000)
    watcher.expect_nothing()


@clause("MQTT-3.1.2-10", "MQTT311-3.1.2-10")
@BOTH
def test_3_1_2_10_a_will_is_published_once(world: World, version: int) -> None:
    watcher = watcher_of(world)
    world.durable(version=version, will=will()).drop()
    watcher.expect(Publish, payload=b"gone")
    world.durable(version=version).drop()
    world.advance(10_000)
    watcher.expect_nothing()


@clause("MQTT311-3.1.2-12")
@BOTH
def test_v311_3_1_2_12_without_a_will_nothing_is_published(world: World, version: int) -> None:
    watcher = watcher_of(world, "#")
    world.client(version=version).drop()
    watcher.expect_nothing()


@clause("MQTT-3.1.2-12", "MQTT311-3.1.2-14")
@BOTH
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_3_1_2_12_a_will_is_published_with_its_qos(world: World, version: int, qos: int) -> None:
    watcher = watcher_of(world)
    world.client(version=version, will=will(qos=qos)).drop()
    watcher.expect(Publish, qos=qos)


@clause("MQTT-3.1.2-14", "MQTT-3.1.2-15", "MQTT311-3.1.2-16", "MQTT311-3.1.2-17")
@BOTH
@pytest.mark.parametrize("retain", [False, True])
def test_3_1_2_15_a_will_is_retained_if_it_says_so(world: World, version: int, retain: bool) -> None:
    watcher = watcher_of(world)
    world.client(version=version, will=will(retain=retain)).drop()
    watcher.expect(Publish, payload=b"gone", retain=retain)
    later = world.client("later")
    later.subscribe("will")
    assert len(later.messages()) == int(retain)


@clause("MQTT-3.1.2-8")
def test_3_1_2_8_the_will_waits_for_its_delay(world: World) -> None:
    watcher = watcher_of(world)
    client = world.durable(will=will(properties={"will_delay_interval": 10}))
    client.drop()
    world.advance(9.9)
    watcher.expect_nothing()
    world.advance(0.2)
    watcher.expect(Publish, payload=b"gone", will_delay_interval=None)
    world.advance(10_000)
    watcher.expect_nothing()


@clause("MQTT-3.1.2-8")
@pytest.mark.parametrize("how", ["expiry", "clean start", "no expiry"])
def test_3_1_2_8_the_will_does_not_outwait_its_session(world: World, how: str) -> None:
    watcher = watcher_of(world)
    expiry_s = {"expiry": 5, "clean start": 1_000, "no expiry": 0}[how]
    client = world.durable(expiry_s=expiry_s, will=will(properties={"will_delay_interval": 100}))
    client.drop()
    if how == "expiry":
        watcher.expect_nothing()
        world.advance(5.1)
    elif how == "clean start":
        watcher.expect_nothing()
        world.client(clean_start=True)
    watcher.expect(Publish, payload=b"gone")
    world.advance(10_000)
    watcher.expect_nothing()


@clause("MQTT-3.1.3-9")
@pytest.mark.parametrize("how", ["after a loss", "take-over"])
def test_3_1_3_9_a_reconnect_within_the_delay_cancels_the_will(world: World, how: str) -> None:
    watcher = watcher_of(world)
    client = world.durable(will=will(properties={"will_delay_interval": 10}))
    if how == "after a loss":
        client.drop()
        world.advance(9)
    again = world.durable()
    assert again.connack.session_present
    world.advance(10_000)
    watcher.expect_nothing()


@clause("MQTT-3.1.2-7")
def test_3_1_2_7_each_connection_brings_its_own_will(world: World) -> None:
    watcher = watcher_of(world)
    world.durable(will=will(properties={"will_delay_interval": 10})).drop()
    world.durable(will=Will(topic="will", payload=b"second")).drop()
    watcher.expect(Publish, payload=b"second")
    world.advance(10_000)
    watcher.expect_nothing()


@clause("MQTT-3.1.3-9", "MQTT-3.1.2-7")
def test_3_1_3_9_the_delay_of_an_old_will_does_not_release_the_new_one(world: World) -> None:
    watcher = watcher_of(world)
    world.durable(will=will(properties={"will_delay_interval": 10})).drop()
    client = world.durable(will=Will(topic="will", payload=b"second"))
    world.advance(1_000)
    watcher.expect_nothing()
    client.drop()
    watcher.expect(Publish, payload=b"second")
    watcher.expect_nothing()


@clause("MQTT-3.1.3-10", "MQTT-3.1.2-9")
def test_3_1_3_10_properties_of_the_will_are_passed_on_in_order(world: World) -> None:
    pairs = [("b", "1"), ("a", "2"), ("b", "1"), ("", "")]
    watcher = watcher_of(world)
    properties = {
        "will_delay_interval": 0,
        "payload_format_indicator": 1,
        "content_type": "text/plain",
        "response_topic": "answer",
        "correlation_data": b"\0\1",
        "user_property": pairs,
    }
    world.client(will=will(properties=properties)).drop()
    watcher.expect(
        Publish,
        user_property=pairs,
        payload_format_indicator=1,
        content_type="text/plain",
        response_topic="answer",
        correlation_data=b"\0\1",
        will_delay_interval=None,
    )


@clause("MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_3_3_2_5_the_expiry_of_a_will_begins_when_it_is_published(world: World) -> None:
    watcher = world.durable("watcher")
    watcher.subscribe("will", qos=1)
    properties = {"will_delay_interval": 100, "message_expiry_interval": 10}
    world.durable(will=will(qos=1, properties=properties)).drop()
    world.advance(101)
    watcher.expect(Publish, message_expiry_interval=10)


@clause("MQTT-3.1.4-1", "MQTT311-3.1.4-1", "MQTT-3.3.2-2")
@BOTH
@pytest.mark.parametrize("topic", ["a/+", "#", ""])
def test_3_1_4_1_a_will_for_no_topic_name_is_refused(world: World, version: int, topic: str) -> None:
    watcher = watcher_of(world, "#")
    before_will = (b"\0",) if version == 5 else ()
    client = world.open(version)
    client.send(raw.connect(version, raw.text("a"), *before_will, raw.text(topic), raw.text("x"), flags=0x06))
    assert client.closed
    assert all(reason >= 0x80 for reason in client.told())
    watcher.expect_nothing()


@clause("MQTT-3.1.2-8", "MQTT-3.14.4-2")
def test_3_1_2_8_the_will_is_published_when_the_server_ends_the_connection(new_world: NewWorld) -> None:
    world = new_world(receive_maximum=1)
    watcher = watcher_of(world)
    client = world.client(will=will())
    client.send(raw.publish(5, "a", flags=0x4, packet_id=1), raw.publish(5, "a", flags=0x4, packet_id=2))
    assert client.closed
    watcher.expect(Publish, payload=b"gone")


@clause("MQTT-3.3.2-14", "MQTT-4.7.3-1")
@pytest.mark.parametrize("topic", ["", "+", "answer/#"])
def test_3_3_2_14_a_will_whose_answers_have_no_topic_name_is_refused(world: World, topic: str) -> None:
    client = world.client(will=will(properties={"response_topic": topic}))
    client.expect_refusal(Reason.PROTOCOL_ERROR)
