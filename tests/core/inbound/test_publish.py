from __future__ import annotations

import pytest

from tests.kits.world import Client, World, payloads
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.wire.packets import Pingreq, Pingresp, Puback, Publish, Pubrec
from tieline.wire.reason import Reason


def full(world: World, messages: int, qos: int = 1) -> tuple[Client, Client]:
    """A subscriber that does not read and whose queue is full, and a 3.1.1 publisher."""
    subscriber, publisher = world.client("s"), world.client("p", version=4)
    subscriber.subscribe("t", qos=qos)
    subscriber.stall()
    for number in range(messages):
        publisher.publish("t", b"%d" % number, qos=qos)
    return subscriber, publisher


# --- a full queue and a publisher that cannot be told -----------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
def test_a_3_1_1_publisher_waits_for_room(qos: int) -> None:
    world = World(queue_messages=4)
    subscriber, publisher = full(world, 4, qos)
    for number in range(4, 7):
        publisher.put("t", b"%d" % number, qos=qos)
    publisher.send(Pingreq())
    publisher.expect_nothing()
    assert publisher.connection.hold is Hold.QUEUE_FULL
    subscriber.resume()
    kind = Puback if qos == 1 else Pubrec
    assert [isinstance(packet, kind) for packet in publisher.take()] == [True, True, True, False]
    received = []
    while messages := subscriber.messages():
        received += payloads(messages)
        for message in messages:
            subscriber.acknowledge(message)
    assert received == [b"%d" % number for number in range(7)], "in order and without a gap"
    assert not world.broker.account.drops


def test_the_hold_has_a_name_in_counters_and_log() -> None:
    world = World(queue_messages=1)
    _, publisher = full(world, 1)
    publisher.put("t", qos=1)
    assert world.broker.account.holds[Hold.QUEUE_FULL] == 1
    told = [event for event in world.broker.account.events if event.kind == "held"]
    assert [(event.client, event.text) for event in told] == [("p", "queue_full")]


def test_a_publisher_waits_only_so_long() -> None:
    world = World(queue_messages=4, pause_max_s=30.0)
    _, publisher = full(world, 4)
    publisher.put("t", qos=1)
    world.advance(29.9)
    publisher.expect_nothing()
    world.advance(0.2)
    publisher.expect_end()
    assert world.broker.account.closed["paused_too_long"] == 1
    told = [event.text for event in world.broker.account.events if event.kind == "closed"]
    assert any("the queue of s stayed full" in text for text in told)


def test_a_paused_publisher_is_not_silent() -> None:
    world = World(queue_messages=4, pause_max_s=30.0)
    subscriber, publisher = world.client("s"), world.client("p", version=4, keep_alive=2)
    subscriber.subscribe("t", qos=1)
    subscriber.stall()
    for _ in range(5):
        publisher.put("t", qos=1)
    publisher.take()
    world.advance(20)
    publisher.expect_nothing()
    publisher.send(Pingreq())
    subscriber.resume()
    publisher.expect(Puback)
    publisher.expect(Pingresp)
    world.advance(2.9)
    publisher.expect_nothing()
    world.advance(0.2)
    publisher.expect_end()
    assert world.broker.account.closed["keep_alive_timeout"] == 1


def test_progress_restarts_the_patience_with_a_paused_publisher() -> None:
    world = World(queue_messages=2, inflight=1, pause_max_s=10.0)
    subscriber, publisher = world.client("s"), world.client("p", version=4)
    subscriber.subscribe("t", qos=1)
    publisher.send(*(Publish(topic="t", payload=b"%d" % n, qos=1, packet_id=n + 1) for n in range(20)))
    received = []
    for _ in range(20):
        world.advance(5)
        (message,) = subscriber.messages()
        received.append(message.payload)
        subscriber.acknowledge(message)
    assert received == [b"%d" % n for n in range(20)]
    assert publisher.is_open


def test_without_progress_the_first_deadline_stands() -> None:
    world = World(queue_messages=2, pause_max_s=10.0)
    one, two = world.client("1"), world.client("2")
    for client in (one, two):
        client.subscribe("t", qos=1)
        client.stall()
    publisher = world.client("p", version=4)
    for _ in range(3):
        publisher.put("t", qos=1)
    world.advance(6)
    one.resume()
    # held again, by the other queue
    assert publisher.connection.hold is Hold.QUEUE_FULL
    world.advance(5)
    assert publisher.closed


def test_the_end_of_the_full_session_lets_the_publisher_go_on() -> None:
    world = World(queue_messages=2)
    subscriber, publisher = full(world, 2)
    publisher.put("t", b"x", qos=1)
    publisher.expect_nothing()
    subscriber.drop()
    publisher.expect(Puback)
    assert publisher.connection.hold is None


def test_room_in_flight_lets_the_publisher_go_on() -> None:
    """What fills the budget may be in flight, not in the queue: its acknowledgement makes room as well."""
    world = World(queue_bytes=20_000, inflight=100)
    subscriber, publisher = world.client("s"), world.client("p", version=4)
    subscriber.subscribe("t", qos=1)
    for _ in range(10):
        publisher.put("t", bytes(4_000), qos=1)
    assert publisher.connection.hold is Hold.QUEUE_FULL
    received = 0
    while messages := subscriber.messages():
        received += len(messages)
        for message in messages:
            subscriber.acknowledge(message)
    assert received == 10
    assert publisher.connection.hold is None


def test_a_publisher_that_leaves_while_it_waits_leaves_nothing() -> None:
    world = World(queue_messages=2)
    subscriber, publisher = full(world, 2)
    publisher.put("t", b"never accepted", qos=1)
    publisher.drop()
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"0", b"1"]
    session = subscriber.connection.session
    assert session is not None
    assert not session.is_awaited
    assert not world.broker.holds._waiting


def test_a_thousand_waiting_publishers_are_released_together() -> None:
    world = World(queue_messages=2)
    subscriber, first = full(world, 2)
    publishers = [world.client(f"p{number}", version=4) for number in range(200)]
    for publisher in publishers:
        publisher.put("t", qos=1)
        assert publisher.connection.hold is Hold.QUEUE_FULL
    subscriber.resume()
    for _ in range(200):
        for message in subscriber.messages():
            subscriber.acknowledge(message)
    assert all(publisher.connection.hold is None for publisher in publishers)
    assert first.is_open


def test_qos_0_never_waits() -> None:
    world = World(queue_messages=2)
    _, publisher = full(world, 2)
    for _ in range(10):
        publisher.put("t", qos=0)
    assert publisher.connection.hold is None
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 10}


# --- MQTT 5 can be told -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
def test_an_mqtt_5_publisher_is_told_whose_queue_is_full(qos: int) -> None:
    world = World(queue_messages=1)
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("t", qos=2)
    subscriber.stall()
    publisher.publish("t", qos=qos)
    publisher.put("t", qos=qos)
    kind: type[Puback | Pubrec] = Puback if qos == 1 else Pubrec
    answer = publisher.expect(kind, reason=Reason.QUOTA_EXCEEDED)
    assert "the queue of s is full" in answer.properties["reason_string"]
    session = publisher.connection.session
    assert session is not None
    assert not len(session.inbound)


def test_one_s_own_messages_do_not_count_against_a_subscription_that_excludes_them() -> None:
    world = World(queue_messages=1)
    client, other = world.client("c"), world.client("o")
    client.subscribe("t", qos=1, no_local=True)
    client.stall()
    other.publish("t", qos=1)
    client.put("t", qos=1)
    assert world.broker.account.drops.get(Drop.REFUSED, 0) == 0


# --- aliases ----------------------------------------------------------------------------------------------------------


def test_an_alias_stands_for_its_topic_until_it_is_set_anew() -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    publisher.put("a", b"1", topic_alias=1)
    publisher.put("", b"2", topic_alias=1)
    publisher.put("b", b"3", topic_alias=1)
    publisher.put("", b"4", topic_alias=1)
    assert [(m.topic, m.payload) for m in subscriber.messages()] == [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"4")]


@pytest.mark.parametrize("alias", [0, 5, 65_535])
def test_an_alias_out_of_range_ends_the_connection(alias: int) -> None:
    world = World(topic_alias_maximum=4)
    publisher = world.client("p")
    publisher.put("a", topic_alias=alias)
    publisher.expect_end(Reason.TOPIC_ALIAS_INVALID)


def test_aliases_end_with_the_connection() -> None:
    world = World()
    publisher = world.durable("p")
    publisher.put("a", topic_alias=1)
    publisher.drop()
    again = world.durable("p")
    again.put("", topic_alias=1)
    again.expect_end(Reason.PROTOCOL_ERROR)


def test_waiting_publishers_go_on_one_after_the_other() -> None:
    world = World(queue_messages=4, inflight=1)
    subscriber, first = world.client("s"), world.client("p", version=4)
    subscriber.subscribe("t", qos=1)
    for _ in range(5):
        first.publish("t", qos=1)
    publishers = [world.client(f"p{number}", version=4) for number in range(300)]
    for publisher in publishers:
        publisher.send(*(Publish(topic="t", payload=b"x", qos=1, packet_id=n + 1) for n in range(3)))
    held = world.broker.account.holds[Hold.QUEUE_FULL]
    assert held == 300
    for _ in range(4):
        (message,) = subscriber.messages()
        subscriber.acknowledge(message)
    assert world.broker.account.holds[Hold.QUEUE_FULL] - held < 30, "there was room for a few, not for all"
    received = 0
    while messages := subscriber.messages():
        received += len(messages)
        for message in messages:
            subscriber.acknowledge(message)
    assert received == 5 + 900 - 4
    assert all(publisher.connection.hold is None for publisher in publishers)


def test_publishers_that_leave_while_they_wait_do_not_pile_up() -> None:
    world = World(queue_messages=2)
    subscriber, _ = full(world, 2)
    session = subscriber.connection.session
    assert session is not None
    for number in range(100):
        publisher = world.client(f"p{number}", version=4)
        publisher.put("t", qos=1)
        publisher.drop()
    assert not world.broker.holds._waiting
    assert not session.is_awaited
