from __future__ import annotations

import pytest

from tests.kits.world import World, payloads
from tieline.core.account import Drop
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel
from tieline.wire.reason import Reason


@pytest.mark.parametrize("version", [4, 5])
def test_both_sides_may_use_the_same_packet_id_at_once(version: int) -> None:
    world = World()
    client, other = world.client("c", version=version), world.client("o", version=version)
    client.subscribe("down", qos=2)
    other.subscribe("up", qos=2)
    other.publish("down", b"ours", qos=2)
    ours = client.expect(Publish, payload=b"ours", packet_id=1)
    client.put("up", b"theirs", qos=2, packet_id=1)
    client.expect(Pubrec, packet_id=1)
    # each exchange goes on by itself
    client.send(Pubrec(packet_id=ours.packet_id))
    client.expect(Pubrel, packet_id=1)
    client.send(Pubrel(packet_id=1))
    client.expect(Pubcomp, packet_id=1)
    client.send(Pubcomp(packet_id=1))
    client.expect_nothing()
    session = client.connection.session
    assert session is not None
    assert session.inflight == {}
    assert not len(session.inbound)
    assert payloads(other.messages()) == [b"theirs"]


@pytest.mark.parametrize("version", [4, 5])
def test_a_repeated_qos_2_message_is_delivered_once(version: int) -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p", version=version)
    subscriber.subscribe("#")
    for dup in (False, True, True):
        publisher.put("t", b"x", qos=2, packet_id=5, dup=dup)
        publisher.expect(Pubrec, packet_id=5)
    assert len(subscriber.messages()) == 1
    publisher.send(Pubrel(packet_id=5))
    publisher.expect(Pubcomp, packet_id=5)
    publisher.put("t", b"y", qos=2, packet_id=5)
    assert payloads(subscriber.messages()) == [b"y"], "the id is free again"


def test_a_release_of_nothing_is_answered() -> None:
    world = World()
    for version, reason in ((4, Reason.SUCCESS), (5, Reason.PACKET_IDENTIFIER_NOT_FOUND)):
        client = world.client("c", version=version)
        client.send(Pubrel(packet_id=77))
        client.expect(Pubcomp, packet_id=77, reason=reason)


def test_a_receipt_of_nothing_is_answered() -> None:
    world = World()
    for version, reason in ((4, Reason.SUCCESS), (5, Reason.PACKET_IDENTIFIER_NOT_FOUND)):
        client = world.client("c", version=version)
        client.send(Pubrec(packet_id=77))
        client.expect(Pubrel, packet_id=77, reason=reason)


def test_an_acknowledgement_of_nothing_is_harmless() -> None:
    world = World()
    client = world.client("c", receive_maximum=3)
    for _ in range(10):
        client.send(Puback(packet_id=77), Pubcomp(packet_id=77))
    client.expect_nothing()
    assert client.connection.quota == client.connection.window == 3


def test_the_quota_never_grows_beyond_the_window() -> None:
    world = World()
    subscriber, publisher = world.client("s", receive_maximum=2), world.client("p")
    subscriber.subscribe("#", qos=1)
    for _ in range(3):
        publisher.publish("t", qos=1)
    for message in subscriber.messages():
        subscriber.send(Puback(packet_id=message.packet_id), Puback(packet_id=message.packet_id))
    assert subscriber.connection.quota == 1


@pytest.mark.parametrize("version", [4, 5])
def test_pubrels_are_repeated_in_the_order_of_the_pubrecs(version: int) -> None:
    world = World()
    client, publisher = world.durable("d", version=version), world.client("p")
    client.subscribe("#", qos=2)
    for number in range(4):
        publisher.publish("t", b"%d" % number, qos=2)
    for packet_id in (3, 1, 4):
        client.send(Pubrec(packet_id=packet_id))
    client.drop()
    again = world.durable("d", version=version)
    again.expect(Publish, packet_id=2, dup=True)
    assert [packet.packet_id for packet in again.take() if isinstance(packet, Pubrel)] == [3, 1, 4]


def test_a_message_the_client_rejects_is_named_and_its_place_is_free() -> None:
    world = World()
    subscriber, publisher = world.client("s", receive_maximum=1), world.client("p")
    subscriber.subscribe("#", qos=2)
    for qos in (1, 2, 1):
        publisher.publish("t", b"x", qos=qos)
    first = subscriber.expect(Publish, qos=1)
    subscriber.send(Puback(packet_id=first.packet_id, reason=Reason.QUOTA_EXCEEDED))
    second = subscriber.expect(Publish, qos=2)
    subscriber.send(Pubrec(packet_id=second.packet_id, reason=Reason.QUOTA_EXCEEDED))
    subscriber.expect(Publish, qos=1)
    assert world.broker.account.drops == {Drop.REJECTED: 2}


@pytest.mark.parametrize(
    ("qos", "answer"),
    [(2, Puback(packet_id=1)), (1, Pubrec(packet_id=1)), (2, Pubcomp(packet_id=1))],
)
def test_the_wrong_answer_ends_the_connection(qos: int, answer: Puback | Pubrec | Pubcomp) -> None:
    world = World()
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#", qos=2)
    publisher.publish("t", qos=qos)
    subscriber.expect(Publish, packet_id=1)
    subscriber.send(answer)
    subscriber.expect_end(Reason.PROTOCOL_ERROR)


def test_receive_maximum_is_enforced() -> None:
    world = World(receive_maximum=3)
    publisher = world.client("p")
    for packet_id in (1, 2, 3):
        publisher.put("t", qos=2, packet_id=packet_id)
        publisher.expect(Pubrec)
    publisher.put("t", qos=2, packet_id=4)
    publisher.expect_end(Reason.RECEIVE_MAXIMUM_EXCEEDED)


def test_the_number_of_ids_a_3_1_1_client_can_hold_is_bounded_by_their_number() -> None:
    world = World()
    publisher = world.client("p", version=4)
    packets = [Publish(topic="t", payload=b"", qos=2, packet_id=number) for number in range(1, 65_536)]
    for start in range(0, len(packets), 5_000):
        publisher.send(*packets[start : start + 5_000])
        publisher.take()
    session = publisher.connection.session
    assert session is not None
    assert len(session.inbound) == 65_535
