"""Chapters 4.6 and 4.9: order of messages and flow control."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World, payloads
from tieline.core.ports import Fact
from tieline.wire.packets import Packet, Pingreq, Pingresp, Puback, Pubcomp, Publish, Pubrec, Pubrel, Suback
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])
NUMBERS = [str(number).encode() for number in range(40)]


@clause("MQTT-4.6.0-5", "MQTT-4.6.0-6", "MQTT311-4.6.0-5", "MQTT311-4.6.0-6")
@BOTH
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_4_6_0_5_messages_of_one_client_keep_their_order(
    new_world: NewWorld, version: int, published: int, granted: int
) -> None:
    world = new_world(inflight=7)
    client = world.client(version=version)
    client.subscribe("a/#", qos=granted)
    other = world.client("other", version=version)
    for number in NUMBERS:
        other.publish("a/b", number, qos=published)
    received: list[bytes] = []
    while client.inbox:
        for message in client.messages():
            received.append(message.payload)
            client.acknowledge(message)
    assert received == NUMBERS


@clause("MQTT-4.6.0-5", "MQTT311-4.6.0-6")
@BOTH
def test_4_6_0_5_order_holds_per_topic_and_qos_in_a_mixed_stream(new_world: NewWorld, version: int) -> None:
    world = new_world(inflight=3)
    client = world.client(version=version)
    client.subscribe("#", qos=2)
    other = world.client("other", version=version)
    sent: dict[tuple[str, int], list[bytes]] = {}
    for index, number in enumerate(NUMBERS * 3):
        topic, qos = "abc"[index % 3], index * 7 // 5 % 3
        other.publish(topic, number, qos=qos)
        sent.setdefault((topic, qos), []).append(number)
    received: dict[tuple[str, int], list[bytes]] = {}
    while client.inbox:
        for message in client.messages():
            received.setdefault((message.topic, message.qos), []).append(message.payload)
            client.acknowledge(message)
    assert received == sent


@clause("MQTT-4.6.0-5", "MQTT-4.4.0-1", "MQTT311-4.6.0-1", "MQTT311-4.6.0-6")
@BOTH
@pytest.mark.parametrize("qos", [1, 2])
def test_4_6_0_5_what_is_sent_again_keeps_its_first_order(new_world: NewWorld, version: int, qos: int) -> None:
    world = new_world(inflight=10)
    client = world.durable(version=version)
    client.subscribe("a", qos=qos)
    session = client.connection.session
    assert session is not None
    session.last_id = 65_530  # identifiers wrap, so their order is not the order of sending
    other = world.client("other")
    for number in NUMBERS[:15]:
        other.publish("a", number, qos=qos)
    first = client.messages()
    assert payloads(first) == NUMBERS[:10]
    client.acknowledge(first[4])
    assert payloads(client.messages()) == NUMBERS[10:11]
    client.drop()
    client = world.durable(version=version)
    again = client.messages()
    assert payloads(again) == NUMBERS[:4] + NUMBERS[5:11]
    assert all(message.dup for message in again)
    for message in again:
        client.acknowledge(message)
    assert payloads(client.messages()) == NUMBERS[11:15]


@clause("MQTT311-4.6.0-2", "MQTT-4.6.0-2")
@BOTH
def test_v311_4_6_0_2_pubacks_follow_the_order_of_the_publishes(world: World, version: int) -> None:
    client = world.client(version=version)
    identifiers = [9, 3, 65_535, 1, 4]
    client.send(*(raw.publish(version, "a", flags=0x2, packet_id=number) for number in identifiers))
    assert [client.expect(Puback).packet_id for _ in identifiers] == identifiers


@clause("MQTT311-4.6.0-3", "MQTT-4.6.0-3")
@BOTH
def test_v311_4_6_0_3_pubrecs_follow_the_order_of_the_publishes(world: World, version: int) -> None:
    client = world.client(version=version)
    identifiers = [9, 3, 65_535, 1, 4]
    client.send(*(raw.publish(version, "a", flags=0x4, packet_id=number) for number in identifiers))
    assert [client.expect(Pubrec).packet_id for _ in identifiers] == identifiers
    client.send(*(Pubrel(packet_id=number) for number in reversed(identifiers)))
    assert [client.expect(Pubcomp).packet_id for _ in identifiers] == identifiers[::-1]


@clause("MQTT311-4.6.0-4", "MQTT-4.6.0-4")
@BOTH
def test_v311_4_6_0_4_pubrels_follow_the_order_of_the_pubrecs(world: World, version: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=2)
    other = world.client("other")
    for number in NUMBERS[:6]:
        other.publish("a", number, qos=2)
    identifiers = [message.packet_id for message in client.messages()]
    shuffled = [identifiers[index] for index in (3, 0, 5, 1)]
    client.send(*(Pubrec(packet_id=number) for number in shuffled))
    assert [client.expect(Pubrel).packet_id for _ in shuffled] == shuffled
    client.drop()
    client = world.durable(version=version)
    again = client.take()
    assert [packet.packet_id for packet in again if isinstance(packet, Pubrel)] == shuffled
    assert payloads([packet for packet in again if isinstance(packet, Publish)]) == [NUMBERS[2], NUMBERS[4]]


# --- 4.9 flow control -----------------------------------------------------------------------------------------------


@clause("MQTT-3.3.4-9", "MQTT-4.9.0-1", "MQTT-4.9.0-2")
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("maximum", [1, 2, 5])
def test_4_9_0_2_the_broker_stays_within_the_receive_maximum(world: World, qos: int, maximum: int) -> None:
    client = world.client(receive_maximum=maximum)
    client.subscribe("a", qos=qos)
    other = world.client("other")
    for number in NUMBERS:
        other.publish("a", number, qos=qos)
    open_: list[Publish] = client.messages()
    received = payloads(open_)
    assert len(open_) == maximum
    while open_:
        client.acknowledge(open_.pop(0))
        fresh = client.messages()
        assert len(open_) + len(fresh) <= maximum
        open_ += fresh
        received += payloads(fresh)
    assert received == NUMBERS


@clause("MQTT-4.9.0-2", "MQTT-4.9.0-3")
def test_4_9_0_2_pubrec_alone_does_not_free_a_place(world: World) -> None:
    client = world.client(receive_maximum=1)
    client.subscribe("a", qos=2)
    other = world.client("other")
    other.publish("a", b"one", qos=2)
    other.publish("a", b"two", qos=2)
    first = client.expect(Publish, payload=b"one")
    client.send(Pubrec(packet_id=first.packet_id))
    client.expect(Pubrel)
    client.expect_nothing()
    client.send(Pubcomp(packet_id=first.packet_id))
    client.expect(Publish, payload=b"two")


@clause("MQTT-4.9.0-2")
def test_4_9_0_2_a_second_acknowledgement_does_not_raise_the_quota(world: World) -> None:
    client = world.client(receive_maximum=2)
    client.subscribe("a", qos=1)
    other = world.client("other")
    for number in NUMBERS[:8]:
        other.publish("a", number, qos=1)
    first, _ = client.messages()
    client.send(*(Puback(packet_id=first.packet_id) for _ in range(4)))
    assert len(client.messages()) == 1


@clause("MQTT-4.9.0-1", "MQTT-4.9.0-2")
def test_4_9_0_1_a_new_connection_begins_with_a_full_quota(world: World) -> None:
    client = world.durable(receive_maximum=3)
    client.subscribe("a", qos=1)
    other = world.client("other")
    for number in NUMBERS[:8]:
        other.publish("a", number, qos=1)
    assert payloads(client.messages()) == NUMBERS[:3]
    client.drop()
    client = world.durable(receive_maximum=2)
    assert payloads(client.messages()) == NUMBERS[:2]
    client.drop()
    client = world.durable(receive_maximum=5)
    messages = client.messages()
    assert payloads(messages) == NUMBERS[:5]
    assert [message.dup for message in messages] == [True] * 3 + [False] * 2


@clause("MQTT-3.3.4-10", "MQTT-4.9.0-3", "MQTT-3.3.4-8")
def test_4_9_0_3_without_quota_everything_else_goes_on(world: World) -> None:
    client = world.client(receive_maximum=1)
    client.subscribe("a", qos=1)
    client.subscribe("b", qos=0)
    other = world.client("other")
    other.publish("a", b"one", qos=1)
    other.publish("a", b"two", qos=1)
    client.expect(Publish, payload=b"one")
    steps: list[tuple[Packet | bytes, type[Packet]]] = [
        (Pingreq(), Pingresp),
        (raw.subscribe(5, raw.text("c"), b"\0", packet_id=50), Suback),
        (raw.publish(5, "x", flags=0x2, packet_id=51), Puback),
        (raw.publish(5, "x", flags=0x4, packet_id=52), Pubrec),
        (Pubrel(packet_id=52), Pubcomp),
    ]
    for packet, answer in steps:
        client.send(packet)
        client.expect(answer)
    other.publish("b", b"QoS 0 needs no quota")
    client.expect(Publish, qos=0)
    client.expect_nothing()


@clause("MQTT-3.3.4-9")
def test_3_3_4_9_without_a_receive_maximum_there_is_still_a_window(new_world: NewWorld) -> None:
    world = new_world(inflight=4)
    client = world.client(version=4)
    client.subscribe("a", qos=1)
    other = world.client("other")
    for number in NUMBERS:
        assert other.publish("a", number, qos=1) is Reason.SUCCESS
    assert payloads(client.messages()) == NUMBERS[:4]


@clause("MQTT-4.9.0-3", "MQTT-3.3.4-7")
@pytest.mark.parametrize("qos", [1, 2])
def test_4_9_0_3_completed_exchanges_free_the_clients_quota(new_world: NewWorld, qos: int) -> None:
    client = new_world(receive_maximum=2).client()
    for _ in range(10):
        assert client.publish("a", qos=qos) is Reason.NO_MATCHING_SUBSCRIBERS
    client.expect_nothing()


class Slow:
    """A store that makes nothing permanent before the test says so."""

    is_volatile = False
    is_behind = False

    def __init__(self) -> None:
        self.submitted = 0
        self.committed = 0

    def submit(self, facts: Sequence[Fact], log: Sequence[object] = (), events: Sequence[object] = ()) -> int:
        self.submitted += 1
        return self.submitted


def commit(world: World, store: Slow) -> None:
    store.committed = store.submitted
    world.broker.committed(store.committed)
    world.settle()


@clause("MQTT-4.3.2-4", "MQTT-4.3.3-8", "MQTT-4.6.0-2", "MQTT-4.6.0-3", "MQTT311-4.3.2-2", "MQTT311-4.6.0-2")
@BOTH
@pytest.mark.parametrize("qos", [1, 2])
def test_4_3_2_4_a_message_is_acknowledged_once_it_is_safe(new_world: NewWorld, version: int, qos: int) -> None:
    store = Slow()
    world = new_world(store=store)
    reader = world.durable("reader", version=version)
    commit(world, store)
    reader.note_connack()
    reader.send(raw.subscribe(version, raw.text("a"), bytes([qos])))
    client = world.client(version=version)
    commit(world, store)
    reader.expect(Suback)
    for packet_id in (5, 9, 7):
        client.put("a", qos=qos, packet_id=packet_id)
    client.expect_nothing()
    commit(world, store)
    assert [packet.packet_id for packet in client.take()] == [5, 9, 7]  # type: ignore[union-attr]


@clause("MQTT-3.3.4-7", "MQTT-4.9.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_3_3_4_7_messages_that_are_not_safe_yet_count(new_world: NewWorld, qos: int) -> None:
    store = Slow()
    world = new_world(store=store, receive_maximum=3)
    reader = world.durable("reader")
    commit(world, store)
    reader.send(raw.subscribe(5, raw.text("a"), b"\x02"))
    commit(world, store)
    client = world.client()
    commit(world, store)
    for packet_id in (1, 2, 3):
        client.put("a", qos=qos, packet_id=packet_id)
    client.expect_nothing()
    client.put("a", qos=qos, packet_id=4)
    client.expect_end(Reason.RECEIVE_MAXIMUM_EXCEEDED)
