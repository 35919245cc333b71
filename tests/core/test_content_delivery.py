"""Conditions beside the rest of MQTT: overlapping subscriptions, retained messages, wills, QoS 1 and 2."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.coherence import check_routes
from tests.core.content import (
    FILTER,
    PCC,
    content_settings,
    content_world,
    got,
    said,
    volts,
    ways,
    with_mqtt,
)
from tests.kits.world import World, payloads, topics
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.wire.packets import (
    Publish,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Will,
)
from tieline.wire.reason import Reason


@ways
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_overlapping_subscriptions_are_one_copy_with_all_that_match(qos: int, way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207", qos=2, subscription_identifier=[1])
    client.subscribe(f"{FILTER}?voltage<100", qos=1, subscription_identifier=[2])
    client.subscribe("#", qos=0, subscription_identifier=[3])
    client.subscribe("$where/phases=3/microgrid/#", qos=1, subscription_identifier=[4])
    for payload, identifiers, granted in [
        (said(voltage=50), [1, 2, 3], 2),
        (said(voltage=150), [1, 3], 2),
        (said(voltage=300), [3], 0),
        (said(voltage=300, phases=3), [3, 4], 1),
        (b"no JSON", [3], 0),
    ]:
        publisher.publish(PCC, payload, qos=qos)
        message = client.expect(Publish, payload=payload, qos=min(qos, granted))
        assert sorted(message.properties["subscription_identifier"]) == identifiers
        client.acknowledge(message)
        client.expect_nothing()
    check_routes(world.broker)


def test_messages_of_one_topic_keep_their_order_behind_one_that_is_asked_about() -> None:
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207")
    client.subscribe("site/#")
    for topic in ("site/1", "site/2"):
        publisher.publish(topic, b"0")
        client.expect(Publish, topic=topic)
    low, lower = said(voltage=150), said(voltage=50)
    together = [(PCC, lower), ("site/1", b"1"), (PCC, low), ("site/1", b"2"), ("site/2", b"3")]
    publisher.send(*(Publish(topic=topic, payload=payload) for topic, payload in together))
    assert got(client) == [lower, b"1", low, b"2", b"3"]


def test_no_local_counts_for_those_that_match() -> None:
    world = content_world()
    client, other = world.client("c"), world.client("o")
    client.subscribe(f"{FILTER}?voltage<207", no_local=True, subscription_identifier=[1])
    client.subscribe(f"{FILTER}?phases=3", subscription_identifier=[2])
    for _ in range(2):
        client.publish(PCC, said(voltage=1))
        client.expect_nothing()
        client.publish(PCC, said(voltage=1, phases=3))
        client.expect(Publish, subscription_identifier=[2])
        other.publish(PCC, said(voltage=1))
        client.expect(Publish, subscription_identifier=[1])


def test_a_reference_moves_with_own_messages_where_they_are_delivered() -> None:
    world = content_world()
    client = world.client("c")
    client.subscribe("#", no_local=True)
    client.subscribe(f"{FILTER}?changed(voltage)")
    for voltage in (1, 1, 2, 2):
        client.publish(PCC, said(voltage=voltage))
    assert payloads(client.messages()) == volts(1, 2)
    client.unsubscribe(f"{FILTER}?changed(voltage)")
    client.subscribe(f"{FILTER}?changed(voltage)", no_local=True)
    client.publish(PCC, said(voltage=3))
    client.expect_nothing()
    assert world.broker.references.kept == 0


def test_retain_as_published() -> None:
    world = content_world()
    keeping, plain, publisher = world.client("k"), world.client("n"), world.client("p")
    keeping.subscribe(f"{FILTER}?voltage<207", retain_as_published=True)
    plain.subscribe(f"{FILTER}?voltage<207")
    publisher.publish(PCC, said(voltage=1), retain=True)
    keeping.expect(Publish, retain=True)
    plain.expect(Publish, retain=False)


@pytest.mark.parametrize("qos", [0, 1])
def test_retained_messages_are_filtered_too(qos: int) -> None:
    world = content_world()
    publisher = world.client("p")
    for number, voltage in enumerate((200, 210, 190)):
        publisher.publish(f"microgrid/{number}/pcc", said(voltage=voltage), qos, retain=True)
    publisher.publish("microgrid/3/pcc", b"no JSON", qos, retain=True)
    client = world.client("c")
    client.subscribe(f"{FILTER}?voltage<207", qos=1, subscription_identifier=[9])
    messages = client.messages()
    assert topics(messages) == ["microgrid/0/pcc", "microgrid/2/pcc"]
    assert all(message.retain and message.properties["subscription_identifier"] == [9] for message in messages)
    assert (world.broker.account.examinations, world.broker.account.unreadable) == (4, 1)


def test_retained_messages_of_times_and_of_undeclared_attributes() -> None:
    world = content_world()
    publisher, client = world.client("p"), world.client("c")
    publisher.publish(PCC, said(at="1970-01-01T00:00:11Z", x=1), retain=True)
    for condition, is_wanted in [
        ("at>'1970-01-01T00:00:10Z'", True),
        ("at>'1970-01-01T00:00:11Z'", False),
        ("x=1", True),
        ("x=2", False),
        ("changed(x)", True),
    ]:
        client.subscribe(f"{PCC}?{condition}")
        assert len(client.messages()) == is_wanted, condition


def test_retain_handling_with_conditions() -> None:
    world = content_world()
    publisher, client = world.client("p"), world.client("c")
    publisher.publish(PCC, said(voltage=200), retain=True)
    wish = f"{FILTER}?voltage<207"
    client.subscribe(wish, retain_handling=2)
    client.expect_nothing()
    client.subscribe(wish, retain_handling=1)
    client.expect_nothing()
    client.subscribe(wish, retain_handling=0)
    assert len(client.messages()) == 1
    client.unsubscribe(wish)
    client.subscribe(wish, retain_handling=1)
    assert len(client.messages()) == 1
    client.subscribe(f"{FILTER}?voltage<206", retain_handling=1)
    assert len(client.messages()) == 1, "another spelling is another subscription"


def test_a_retained_message_that_was_delivered_is_a_reference() -> None:
    world = content_world()
    publisher, client = world.client("p"), world.client("c")
    publisher.publish(PCC, said(voltage=200), retain=True)
    client.subscribe(f"{FILTER}?delta(voltage)>5")
    client.expect(Publish, payload=said(voltage=200))
    for voltage in (204, 206, 211, 212):
        publisher.publish(PCC, said(voltage=voltage))
    assert payloads(client.messages()) == volts(206, 212)


def test_a_long_search_among_retained_messages_is_cut_into_portions() -> None:
    world = content_world()
    publisher, client = world.client("p"), world.client("c")
    publisher.send(
        *(
            Publish(topic=f"microgrid/{number}/pcc", payload=said(voltage=number), retain=True)
            for number in range(5_000)
        )
    )
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=f"{FILTER}?voltage>=4998"),)))
    assert world.broker.account.examinations <= 1_000
    session = client.connection.session
    assert session is not None
    assert session.is_replaying
    client.resume()
    client.expect(Suback)
    assert payloads(client.messages()) == volts(4_998, 4_999)
    assert not session.is_replaying


def test_wills_are_asked_about() -> None:
    world = content_world()
    low, high = world.client("low"), world.client("high")
    low.subscribe(f"{FILTER}?voltage<207", qos=1)
    high.subscribe(f"{FILTER}?voltage>207", qos=1)
    for _ in range(2):
        dying = world.client("dying", will=Will(topic=PCC, payload=said(voltage=0), qos=1))
        dying.drop()
        assert got(low) == volts(0)
        high.expect_nothing()


def test_system_topics_are_numbers_that_can_be_asked_about() -> None:
    world = World(with_mqtt(content_settings(), sys_interval_s=10))
    few, many = world.client("few"), world.client("many")
    topic = "$SYS/broker/clients/connected"
    few.subscribe(f"{topic}?value<2", retain_handling=2)
    many.subscribe(f"{topic}?value>=2", retain_handling=2)
    world.advance(10)
    assert topics(many.messages()) == [topic]
    few.expect_nothing()
    many.disconnect()
    world.advance(10)
    assert payloads(few.messages()) == [b"1"]


def test_system_topics_report_conditions() -> None:
    world = World(with_mqtt(content_settings(change_topics=1), sys_interval_s=10))
    client, watcher = world.client("c"), world.client("w")
    client.subscribe(f"{FILTER}?changed(voltage)", f"{FILTER}?voltage<5")
    client.publish(PCC, said(voltage=1))
    client.publish("microgrid/8/pcc", said(voltage=1))
    client.publish(PCC, b"no JSON")
    watcher.subscribe("$SYS/broker/tieline/content/#", retain_handling=2)
    world.advance(10)
    found = {message.topic.removeprefix("$SYS/broker/tieline/content/"): message for message in watcher.messages()}
    assert {name: int(message.payload) for name, message in found.items()} == {
        "subscriptions": 2,
        "sifted": 3,
        "unreadable": 1,
        "references": 1,
        "forgotten/topics": 1,
    }, "what is 0 and stays 0 is not said again"


@ways
@pytest.mark.parametrize("qos", [1, 2])
def test_the_publisher_is_told_when_no_condition_holds_where_that_is_wanted(qos: int, way: dict[str, Any]) -> None:
    world = World(with_mqtt(content_settings(), tell_unwanted="content"), **way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207", qos=2)
    assert publisher.publish(PCC, said(voltage=1), qos=qos) is Reason.SUCCESS
    assert publisher.publish(PCC, said(voltage=300), qos=qos) is Reason.NO_MATCHING_SUBSCRIBERS
    assert publisher.publish(PCC, b"no JSON", qos=qos) is Reason.NO_MATCHING_SUBSCRIBERS
    assert len([packet for packet in client.take() if isinstance(packet, Publish)]) == 1


@ways
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("told", ["topic", "never"])
def test_acknowledgements_do_not_tell_what_others_wait_for(qos: int, told: str, way: dict[str, Any]) -> None:
    """Otherwise a publisher finds a threshold by bisection, message by message."""
    world = World(with_mqtt(content_settings(), tell_unwanted=told), **way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207", qos=2)
    payloads = [*volts(0, 206, 207, 1e9), b"no JSON", b""]
    assert {publisher.publish(PCC, payload, qos=qos) for payload in payloads} == {Reason.SUCCESS}
    assert len([packet for packet in client.take() if isinstance(packet, Publish)]) == 2
    unheard = Reason.NO_MATCHING_SUBSCRIBERS if told == "topic" else Reason.SUCCESS
    assert publisher.publish("elsewhere", b"x", qos=qos) is unheard


@ways
def test_qos_2_is_one_exchange(way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?voltage<207", qos=2)
    packet = publisher.put(PCC, said(voltage=1), 2)
    publisher.send(Publish(topic=PCC, payload=said(voltage=1), qos=2, dup=True, packet_id=packet.packet_id))
    publisher.send(Pubrel(packet_id=packet.packet_id))
    (message,) = client.messages()
    client.acknowledge(message)
    client.expect_nothing()


@ways
def test_only_a_receiver_that_wants_the_message_can_be_too_full_for_it(way: dict[str, Any]) -> None:
    world = content_world(queue_messages=2, **way)
    slow, fast, publisher = world.client("slow"), world.client("fast"), world.client("p")
    slow.subscribe(f"{FILTER}?voltage<207", qos=1)
    fast.subscribe(f"{FILTER}?voltage>207", qos=1)
    slow.stall()
    answers = [publisher.publish(PCC, payload, qos=1) for payload in volts(1, 300, 2, 300, 3, 300)]
    assert answers == [Reason.SUCCESS] * 4 + [Reason.QUOTA_EXCEEDED, Reason.SUCCESS]
    assert got(fast) == volts(300, 300, 300)
    slow.resume()
    assert got(slow) == volts(1, 2)
    assert world.broker.account.drops == {Drop.REFUSED: 1}


def test_a_refused_message_is_no_reference() -> None:
    world = content_world(queue_messages=1)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage)", qos=1)
    client.stall()
    assert publisher.publish(PCC, said(voltage=1), qos=1) is Reason.SUCCESS
    assert publisher.publish(PCC, said(voltage=2), qos=1) is Reason.QUOTA_EXCEEDED
    client.resume()
    assert got(client) == volts(1)
    assert publisher.publish(PCC, said(voltage=1), qos=1) is Reason.SUCCESS
    assert got(client) == []
    assert publisher.publish(PCC, said(voltage=2), qos=1) is Reason.SUCCESS
    assert got(client) == volts(2)


def test_a_3_1_1_publisher_that_has_to_wait_is_asked_about_again() -> None:
    world = content_world(queue_messages=1)
    client, publisher = world.client("c"), world.client("p", version=4)
    client.subscribe(f"{FILTER}?changed(voltage)", qos=1)
    client.stall()
    for voltage in (1, 2, 2):
        publisher.put(PCC, said(voltage=voltage), qos=1)
    assert publisher.connection.hold is Hold.QUEUE_FULL
    client.resume()
    assert got(client) == volts(1, 2)
    assert len(publisher.take()) == 3, "every message was acknowledged"
