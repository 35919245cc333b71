from __future__ import annotations

from typing import Any

import pytest

from tests.kits.world import Client, World, payloads
from tieline.core.account import Drop
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel


def pair(world: World, qos: int = 2, **properties: Any) -> tuple[Client, Client]:
    """A subscriber that does not read, and a publisher."""
    subscriber, publisher = world.client("s", **properties), world.client("p")
    subscriber.subscribe("#", qos=qos)
    subscriber.stall()
    return subscriber, publisher


# --- late binding -----------------------------------------------------------------------------------------------------


def test_packet_ids_are_bound_when_a_message_is_written() -> None:
    world = World()
    subscriber, publisher = pair(world)
    for number in range(3):
        publisher.publish("t", b"%d" % number, qos=1)
    session = subscriber.connection.session
    assert session is not None
    assert session.inflight == {}
    subscriber.resume()
    assert [message.packet_id for message in subscriber.messages()] == [1, 2, 3]
    assert list(session.inflight) == [1, 2, 3]


def test_aliases_are_bound_when_a_message_is_written() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=0, topic_alias_maximum=2)
    for topic in ("a", "b", "c", "a", "b", "c"):
        publisher.publish(topic)
    assert subscriber.connection.alias_out == {}
    subscriber.resume()
    seen = [(message.topic, message.properties.get("topic_alias")) for message in subscriber.messages()]
    assert seen == [("a", 1), ("b", 2), ("c", None), ("", 1), ("", 2), ("c", None)]


def test_a_message_that_is_too_large_sets_no_alias() -> None:
    world = World()
    subscriber, publisher = pair(world, qos=0, topic_alias_maximum=5, maximum_packet_size=64)
    publisher.publish("a", bytes(100))
    publisher.publish("a", b"small")
    subscriber.resume()
    (message,) = subscriber.messages()
    assert (message.topic, message.properties["topic_alias"]) == ("a", 1)
    assert world.broker.account.drops == {Drop.TOO_LARGE: 1}


def test_what_is_left_of_the_expiry_is_bound_when_a_message_is_written() -> None:
    world = World()
    subscriber, publisher = pair(world)
    publisher.publish("t", b"x", qos=1, message_expiry_interval=100)
    world.advance(40)
    subscriber.resume()
    (message,) = subscriber.messages()
    assert message.properties["message_expiry_interval"] == 60


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_whose_time_is_over_is_not_sent(qos: int) -> None:
    world = World()
    subscriber, publisher = pair(world)
    publisher.publish("t", b"short", qos=qos, message_expiry_interval=10)
    publisher.publish("t", b"long", qos=qos, message_expiry_interval=100)
    world.advance(10)
    subscriber.resume()
    assert payloads(subscriber.messages()) == [b"long"]
    assert world.broker.account.drops == {Drop.EXPIRED: 1}
    assert subscriber.connection.session is not None
    assert subscriber.connection.session.dropped == 1


def test_an_unacknowledged_message_is_sent_again_after_its_time() -> None:
    world = World()
    client, publisher = world.durable("d"), world.client("p")
    client.subscribe("t", qos=1)
    publisher.publish("t", b"x", qos=1, message_expiry_interval=10)
    assert len(client.messages()) == 1
    client.drop()
    world.advance(20)
    again = world.durable("d")
    again.expect(Publish, dup=True, message_expiry_interval=0)


# --- the window -------------------------------------------------------------------------------------------------------


def test_a_full_window_holds_qos_1_and_2_back_and_lets_qos_0_pass() -> None:
    world = World()
    subscriber, publisher = world.client("s", receive_maximum=2), world.client("p")
    subscriber.subscribe("#", qos=2)
    for number, qos in enumerate((1, 2, 1, 0, 2, 0, 1)):
        publisher.publish("t", b"%d" % number, qos=qos)
    sent = subscriber.messages()
    assert payloads(sent) == [b"0", b"1", b"3", b"5"]
    subscriber.send(Puback(packet_id=sent[0].packet_id))
    assert payloads(subscriber.messages()) == [b"2"]
    subscriber.send(Pubrec(packet_id=sent[1].packet_id))
    subscriber.expect(Pubrel)
    subscriber.expect_nothing()
    subscriber.send(Pubcomp(packet_id=sent[1].packet_id))
    assert payloads(subscriber.messages()) == [b"4"]


def test_order_is_kept_for_each_qos_however_the_window_moves() -> None:
    world = World()
    subscriber, publisher = world.client("s", receive_maximum=3), world.client("p")
    subscriber.subscribe("#", qos=2)
    for number in range(60):
        publisher.publish("t", b"%d" % number, qos=number % 3)
    got: dict[int, list[int]] = {0: [], 1: [], 2: []}
    while messages := subscriber.messages():
        for message in messages:
            got[message.qos].append(int(message.payload))
        for message in messages:
            subscriber.acknowledge(message)
    assert got == {qos: [number for number in range(60) if number % 3 == qos] for qos in (0, 1, 2)}


def test_the_window_is_the_smaller_of_ours_and_theirs() -> None:
    for inflight, receive_maximum, expected in ((3, 10, 3), (10, 3, 3)):
        world = World(inflight=inflight)
        subscriber, publisher = world.client("s", receive_maximum=receive_maximum), world.client("p")
        subscriber.subscribe("#", qos=1)
        for _ in range(20):
            publisher.publish("t", qos=1)
        assert len(subscriber.messages()) == expected


def test_ids_run_round_and_skip_those_in_use() -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#", qos=1)
    publisher.publish("t", b"first", qos=1)
    (first,) = subscriber.messages()
    assert first.packet_id == 1
    session = subscriber.connection.session
    assert session is not None
    session.last_id = 65_534
    for _ in range(3):
        publisher.publish("t", b"x", qos=1)
    assert [message.packet_id for message in subscriber.messages()] == [65_535, 2, 3], "1 is still in use"


# --- a write ----------------------------------------------------------------------------------------------------------


def test_a_write_is_about_as_long_as_it_may_be() -> None:
    world = World()
    subscriber, publisher = pair(world)
    for _ in range(200):
        publisher.publish("t", bytes(100), qos=1)
        publisher.publish("t", bytes(100))
    sizes = []
    while data := b"".join(world.broker.fill(subscriber.connection, 1_000, world.now)):
        sizes.append(len(data))
    assert max(sizes) < 1_200
    assert min(sizes[:-1]) >= 1_000


def test_answers_go_before_messages() -> None:
    world = World()
    client = world.client("c")
    client.subscribe("t")
    client.stall()
    client.put("t", b"mine", qos=1, packet_id=3)
    client.resume()
    client.expect(Puback, packet_id=3)
    client.expect(Publish, payload=b"mine")


def test_nothing_is_written_twice() -> None:
    world = World()
    subscriber, publisher = pair(world)
    publisher.publish("t", b"x", qos=1)
    assert world.broker.fill(subscriber.connection, 1_000, world.now)
    assert world.broker.fill(subscriber.connection, 1_000, world.now) == []


def test_bytes_out_are_the_bytes_that_went_out() -> None:
    world = World()
    before = world.broker.account.bytes_out
    subscriber, publisher = world.client("s"), world.client("p", version=4)
    subscriber.subscribe("#", qos=2)
    for qos in (0, 1, 2, 0, 0):
        publisher.publish("t", b"x" * 50, qos=qos)
    assert world.broker.account.bytes_out - before == len(subscriber.raw) + len(publisher.raw)
    assert world.broker.account.publishes_out == 5


# --- what is too large ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [4, 5])
def test_what_the_client_cannot_take_is_discarded_as_if_it_had_been_sent(qos: int, version: int) -> None:
    world = World()
    subscriber, publisher = world.client("s", maximum_packet_size=40), world.client("p", version=version)
    subscriber.subscribe("#", qos=2)
    head = 2 + 3 + 1 + (2 if qos else 0)
    publisher.publish("t", bytes(40 - head), qos=qos)
    publisher.publish("t", bytes(40 - head + 1), qos=qos)
    publisher.publish("t", b"after", qos=qos)
    assert [len(message.payload) for message in subscriber.messages()] == [40 - head, 5]
    assert world.broker.account.drops == {Drop.TOO_LARGE: 1}
    session = subscriber.connection.session
    assert session is not None
    assert len(session.inflight) == (2 if qos else 0)


def test_a_resend_that_no_longer_fits_is_given_up() -> None:
    world = World()
    client, publisher = world.durable("d"), world.client("p")
    client.subscribe("t", qos=1)
    publisher.publish("t", bytes(100), qos=1)
    publisher.publish("t", b"small", qos=1)
    client.drop()
    again = world.durable("d", maximum_packet_size=50)
    again.expect(Publish, payload=b"small", dup=True)
    again.expect_nothing()
    assert world.broker.account.drops == {Drop.TOO_LARGE: 1}


# --- memory -----------------------------------------------------------------------------------------------------------


def test_bytes_in_flight_are_accounted_for() -> None:
    world = World(queue_bytes=100_000, inflight=1_000)
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#", qos=1)
    refused = sum(publisher.publish("t", bytes(10_000), qos=1) >= 0x80 for _ in range(50))
    assert refused >= 40, "a client that reads and never acknowledges holds no more than its queue may"
    assert world.broker.queued_bytes <= 110_000
    for message in subscriber.messages():
        subscriber.acknowledge(message)
    assert world.broker.queued_bytes == 0
    assert publisher.publish("t", bytes(10_000), qos=1) < 0x80


def test_a_qos_2_message_leaves_the_account_with_pubrec() -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#", qos=2)
    publisher.publish("t", bytes(10_000), qos=2)
    (message,) = subscriber.messages()
    assert world.broker.queued_bytes > 10_000
    subscriber.send(Pubrec(packet_id=message.packet_id))
    assert world.broker.queued_bytes == 0
    subscriber.send(Pubcomp(packet_id=message.packet_id))
    assert world.broker.queued_bytes == 0


def test_what_is_acknowledged_before_its_turn_is_not_sent_again() -> None:
    world = World(inflight=2)
    client, publisher = world.durable("d"), world.client("p")
    client.subscribe("t", qos=1)
    for number in range(2):
        publisher.publish("t", b"%d" % number, qos=1)
    client.drop()
    again = world.durable("d", receive_maximum=1)
    again.expect(Publish, packet_id=1, dup=True)
    again.send(Puback(packet_id=2))
    again.expect_nothing()
    again.send(Puback(packet_id=1))
    again.expect_nothing()
    assert world.broker.queued_bytes == 0


def test_when_every_packet_id_is_in_use_messages_wait_and_no_id_is_used_twice() -> None:
    world = World(inflight=65_535, queue_bytes="none")
    subscriber, publisher = world.client("s", receive_maximum=65_535), world.client("p", version=4)
    subscriber.subscribe("t", qos=1)
    for start in range(0, 65_540, 5_000):
        numbers = range(start, min(start + 5_000, 65_540))
        publisher.send(*(Publish(topic="t", payload=b"%d" % n, qos=1, packet_id=n % 65_535 + 1) for n in numbers))
    sent = subscriber.messages()
    assert len({message.packet_id for message in sent}) == len(sent) == 65_535
    assert len(world.broker.sessions["s"].queue) == 5
    subscriber.send(*(Puback(packet_id=sent[n].packet_id) for n in (3, 1, 4)))
    freed = {sent[n].packet_id for n in (1, 3, 4)}
    more = [packet for packet in subscriber.take() if isinstance(packet, Publish)]
    assert [message.payload for message in more] == [b"65535", b"65536", b"65537"]
    assert {message.packet_id for message in more} == freed
