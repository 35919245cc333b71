from __future__ import annotations

import pytest

from tests.kits.lines import counting
from tests.kits.world import Client, World, payloads, topics
from tieline.core.account import Drop
from tieline.core.message import Message
from tieline.core.outbound.replay import PORTION
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Publish, Suback, Subscribe, Subscription, Unsuback, Unsubscribe

MANY = 5_000


def fill(world: World, count: int = MANY, qos: int = 1) -> None:
    publisher = world.client("filler")
    for start in range(0, count, 500):
        numbers = range(start, min(count, start + 500))
        publisher.send(
            *(
                Publish(
                    topic=f"r/{number}",
                    payload=b"%d" % number,
                    qos=qos,
                    retain=True,
                    packet_id=number + 1 if qos else 0,
                )
                for number in numbers
            )
        )
    assert len(world.broker.retained) == count
    publisher.disconnect()


def answer_all(client: Client) -> list[Publish]:
    """Read and acknowledge until nothing comes any more."""
    found: list[Publish] = []
    while messages := client.messages():
        found += messages
        for message in messages:
            client.acknowledge(message)
    return found


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_large_set_arrives_whole_and_once(qos: int) -> None:
    world = World()
    fill(world)
    client = world.client("c")
    client.subscribe("r/#", qos=qos)
    messages = answer_all(client)
    assert [int(message.payload) for message in messages] == list(range(MANY))
    assert all(message.retain and message.qos == min(qos, 1) for message in messages)
    assert not world.broker.account.drops


def test_only_a_portion_waits_in_the_queue() -> None:
    world = World()
    fill(world, qos=0)
    client = world.client("c")
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    session = client.connection.session
    assert session is not None
    assert len(session.queue) == PORTION
    assert session.is_replaying
    client.resume()
    client.expect(Suback)
    assert len(client.messages()) == MANY
    assert not session.is_replaying


def test_other_clients_are_served_in_between() -> None:
    """One SUBSCRIBE costs a portion, not the whole set, before somebody else has their turn."""
    world = World()
    fill(world, qos=0)
    client, other = world.client("c"), world.client("o")
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    broker = world.broker
    written = broker.fill(client.connection, 4_096, world.now)
    assert len(written) < 65_536
    assert other.publish("x", qos=1) is not None


def test_subscribing_again_restarts_the_replay_instead_of_adding_one() -> None:
    world = World()
    fill(world, 3_000, qos=0)
    client = world.client("c")
    client.stall()
    for packet_id in range(1, 5):
        wishes = tuple(Subscription(filter="#") for _ in range(1_000))
        client.send(Subscribe(packet_id=packet_id, subscriptions=wishes))
    session = client.connection.session
    assert session is not None
    assert len(world.broker.replays._walks[session]) <= 1
    assert len(session.queue) <= 4 * PORTION


def test_unsubscribing_ends_the_replay() -> None:
    world = World()
    fill(world, qos=0)
    client = world.client("c")
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    client.send(Unsubscribe(packet_id=2, filters=("#",)))
    client.resume()
    client.find(Suback)
    client.find(Unsuback)
    assert len(client.messages()) <= PORTION, "[MQTT-3.10.4-2]"


def test_a_durable_session_gets_the_rest_after_a_reconnection() -> None:
    world = World(inflight=10)
    fill(world)
    client = world.durable("d")
    client.subscribe("r/#", qos=1)
    first = client.messages()
    assert 0 < len(first) < MANY
    for message in first:
        client.acknowledge(message)
    got = {message.payload for message in first}
    client.drop()
    again = world.durable("d")
    got |= {message.payload for message in answer_all(again)}
    assert len(got) == MANY
    assert not world.broker.account.drops


@pytest.mark.parametrize("qos", [0, 1])
def test_a_full_queue_delays_the_replay_and_loses_nothing(qos: int) -> None:
    world = World(queue_messages=5)
    fill(world, 20, qos=0)
    publisher, client = world.client("p"), world.client("c")
    client.subscribe("live", qos=qos)
    client.stall()
    for number in range(5):
        publisher.publish("live", b"live %d" % number, qos)
    client.send(Subscribe(packet_id=9, subscriptions=(Subscription(filter="r/#"),)))
    client.resume()
    client.find(Suback)
    messages = answer_all(client)
    assert [message.payload for message in messages if message.topic == "live"] == [b"live %d" % n for n in range(5)]
    assert len([message for message in messages if message.retain]) == 20
    assert not world.broker.account.drops


def test_messages_of_unequal_size_fit_as_they_come() -> None:
    world = World(queue_bytes=20_000)
    publisher = world.client("p")
    for number in range(40):
        publisher.publish(f"r/{number}", bytes(10 if number % 2 else 9_000), retain=True)
    client = world.client("c")
    client.subscribe("r/#")
    assert len(client.messages()) == 40
    assert not world.broker.account.drops


def test_a_message_that_never_fits_is_named_and_does_not_stop_the_others() -> None:
    world = World(queue_bytes=20_000)
    publisher = world.client("p")
    for number in range(5):
        publisher.publish(f"r/{number}", bytes(30_000 if number == 2 else 10), retain=True)
    client = world.client("c")
    client.subscribe("r/#")
    assert topics(client.messages()) == ["r/0", "r/1", "r/3", "r/4"]
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 1}


def test_what_expired_meanwhile_is_not_sent() -> None:
    world = World()
    fill(world, PORTION, qos=0)
    publisher = world.client("p")
    publisher.publish("s/short", b"short", retain=True, message_expiry_interval=5)
    publisher.publish("s/long", b"long", retain=True, message_expiry_interval=50)
    client = world.client("c")
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    world.advance(10)
    client.resume()
    client.expect(Suback)
    received = payloads(client.messages())
    assert b"short" not in received
    assert b"long" in received


def test_a_value_that_changes_during_the_replay_is_the_new_one() -> None:
    world = World()
    fill(world, 3_000, qos=0)
    publisher, client = world.client("p"), world.client("c")
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="#"),)))
    publisher.publish("r/2999", b"new", retain=True)
    client.resume()
    client.expect(Suback)
    last = [message.payload for message in client.messages() if message.topic == "r/2999"]
    assert set(last) == {b"new"}


def test_a_search_in_vain_is_cut_into_portions() -> None:
    """A filter that matches little is a walk through everything: nobody waits for its end."""
    broker = World().broker
    for number in range(20_000):
        assert broker.retained.put(f"r/{number}", Message(b"r/%d" % number, b"x"), 0.0)
    conn = broker.open(0.0)
    broker.receive(conn, encode(Connect(version=5, client_id="c"), 5), 0.0)
    wishes = tuple(Subscription(filter=f"+/+/{number}") for number in range(6))
    with counting() as lines:
        broker.receive(conn, encode(Subscribe(packet_id=1, subscriptions=wishes), 5), 0.0)
    longest, turns, total = lines.count, 0, 0
    while conn.session is not None and conn.session.is_replaying:
        with counting() as lines:
            broker.fill(conn, 65_536, 0.0)
            broker.tick(0.0)
        longest, turns, total = max(longest, lines.count), turns + 1, total + lines.count
        assert turns < 100_000
    assert longest < 80_000
    assert total > 800_000, "or the example shows nothing"
