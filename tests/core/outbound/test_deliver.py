from __future__ import annotations

import pytest

from tests.kits.world import Client, World, payloads
from tieline.core.account import Drop
from tieline.wire.packets import Publish
from tieline.wire.reason import Reason


def stalled(world: World, client_id: str = "s", qos: int = 0, version: int = 5) -> Client:
    client = world.client(client_id, version=version)
    client.subscribe("#", qos=qos)
    client.stall()
    return client


def numbers(client: Client) -> list[int]:
    return [int(payload) for payload in payloads(client.messages())]


@pytest.mark.parametrize("cache", [0, 100])
@pytest.mark.parametrize("version", [4, 5])
def test_a_full_queue_drops_the_oldest_qos_0_messages(cache: int, version: int) -> None:
    world = World(queue_messages=10, route_cache=cache)
    subscriber, publisher = stalled(world, version=version), world.client("p", version=version)
    for number in range(25):
        publisher.publish("t", b"%02d" % number)
    subscriber.resume()
    assert numbers(subscriber) == list(range(15, 25))
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 15}


@pytest.mark.parametrize("version", [4, 5])
def test_a_burst_above_the_bound_is_cut_not_lost(version: int) -> None:
    world = World(queue_messages=100)
    subscriber, publisher = world.client("s", version=version), world.client("p", version=version)
    subscriber.subscribe("#")
    publisher.publish("t", b"0000")
    subscriber.take()
    publisher.send(*(Publish(topic="t", payload=b"%04d" % number) for number in range(1_000)))
    assert numbers(subscriber) == list(range(900, 1_000))
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 900}


def test_a_burst_is_cut_by_bytes_too() -> None:
    world = World(queue_bytes=1_000)
    subscriber, publisher = world.client("s", version=4), world.client("p", version=4)
    subscriber.subscribe("#")
    publisher.publish("t", b"0000")
    subscriber.take()
    publisher.send(*(Publish(topic="t", payload=b"%04d" % number) for number in range(1_000)))
    received = numbers(subscriber)
    assert received
    assert received == list(range(1_000 - len(received), 1_000))


@pytest.mark.parametrize("full", ["refuse", "oldest"])
def test_qos_0_gives_way_to_qos_1(full: str) -> None:
    world = World(queue_messages=10, full=full)
    subscriber, publisher = stalled(world, qos=1), world.client("p")
    for number in range(5):
        publisher.publish("t", b"%d" % number, qos=0)
        publisher.publish("t", b"1%d" % number, qos=1)
    for number in range(20, 25):
        publisher.publish("t", b"%d" % number, qos=0)
    subscriber.resume()
    received = numbers(subscriber)
    assert [number for number in received if 10 <= number < 20] == [10, 11, 12, 13, 14]
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 5}


def test_where_the_oldest_may_go_it_goes() -> None:
    world = World(queue_messages=5, full="oldest")
    subscriber, publisher = stalled(world, qos=1), world.client("p")
    answers = [publisher.publish("t", b"%d" % number, qos=1) for number in range(12)]
    assert set(answers) == {Reason.SUCCESS}
    subscriber.resume()
    assert numbers(subscriber) == [7, 8, 9, 10, 11]
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 7}


def test_where_nothing_may_go_the_publisher_is_told() -> None:
    world = World(queue_messages=5)
    subscriber, publisher = stalled(world, qos=1), world.client("p")
    answers = [publisher.publish("t", b"%d" % number, qos=1) for number in range(8)]
    assert answers == [Reason.SUCCESS] * 5 + [Reason.QUOTA_EXCEEDED] * 3
    subscriber.resume()
    assert numbers(subscriber) == [0, 1, 2, 3, 4], "what was acknowledged is delivered"
    assert world.broker.account.drops == {Drop.REFUSED: 3}


def test_a_refused_message_reaches_nobody() -> None:
    world = World(queue_messages=2)
    slow, quick, publisher = stalled(world, "slow", qos=1), world.client("quick"), world.client("p")
    quick.subscribe("#", qos=1)
    for number in range(3):
        publisher.publish("t", b"%d" % number, qos=1)
    assert numbers(quick) == [0, 1], "it may be sent again, and then would arrive twice"
    slow.resume()
    assert numbers(slow) == [0, 1]


def test_a_subscriber_that_is_slow_does_not_cost_the_others_qos_0_messages() -> None:
    world = World(queue_messages=5)
    slow, quick, publisher = stalled(world, "slow"), world.client("quick"), world.client("p")
    quick.subscribe("#")
    for number in range(50):
        publisher.publish("t", b"%d" % number)
    assert numbers(quick) == list(range(50))
    slow.resume()
    assert len(slow.messages()) == 5


def test_all_queues_together_are_bounded() -> None:
    world = World(queue_bytes_total=200_000, queue_bytes="none", queue_messages="none")
    slow = [stalled(world, f"slow{number}") for number in range(5)]
    quick, publisher = world.client("quick"), world.client("p")
    quick.subscribe("#")
    for number in range(100):
        publisher.publish("t", b"%d" % number + bytes(10_000))
    assert world.broker.queued_bytes < 200_000 + 5 * 70_000
    assert world.broker.account.drops.keys() == {Drop.MEMORY_FULL}
    assert len(quick.messages()) == 100, "whoever keeps up is served all the same"
    for client in slow:
        client.resume()
        assert client.messages()
    assert world.broker.queued_bytes == 0


def test_qos_0_for_a_client_that_is_away_is_named() -> None:
    world = World()
    client, publisher = world.durable("d"), world.client("p")
    client.subscribe("t", qos=0)
    client.subscribe("u", qos=1)
    client.drop()
    publisher.publish("t", qos=1)
    publisher.publish("u", qos=0)
    publisher.publish("u", qos=1)
    assert world.broker.account.drops == {Drop.OFFLINE: 2}
    assert len(world.durable("d").messages()) == 1


def test_what_is_queued_is_shared_not_copied() -> None:
    world = World()
    clients = [stalled(world, f"s{number}") for number in range(10)]
    world.client("p").publish("t", bytes(1_000), qos=1)
    items = {id(client.connection.session.queue.entries[0][0]) for client in clients if client.connection.session}
    assert len(items) == 1
