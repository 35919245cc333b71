"""changed() and delta(): what is compared with, and what moves it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.content import (
    FILTER,
    PCC,
    content_world,
    got,
    said,
    send,
    versions,
    volts,
    ways,
)
from tests.kits.world import topics
from tieline.core.account import Drop
from tieline.wire.packets import (
    Publish,
)


@ways
@versions
@pytest.mark.parametrize("qos", [0, 1])
def test_the_reference_is_the_last_delivered_value(qos: int, version: int, way: dict[str, Any]) -> None:
    world = content_world(**way)
    changes, moves = world.client("changes", version=version), world.client("moves", version=version)
    publisher = world.client("p", version=version)
    changes.subscribe(f"{FILTER}?changed(voltage)", qos=1)
    moves.subscribe(f"{FILTER}?delta(voltage)>=5", qos=1)
    # a value that creeps is noticed once it has crept far enough
    send(publisher, *volts(230, 230, 232, 234, 235, 235, 239, 240, 240, 236), qos=qos)
    publisher.take()
    assert got(changes) == volts(230, 232, 234, 235, 239, 240, 236)
    assert got(moves) == volts(230, 235, 240)


@ways
def test_every_topic_has_its_own_reference(way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(mode)")
    packets = [
        Publish(topic=f"microgrid/{number}/pcc", payload=said(mode=mode, at=at))
        for at, (number, mode) in enumerate([(1, "a"), (2, "a"), (1, "a"), (2, "b"), (1, "b"), (2, "b")])
    ]
    publisher.send(*packets)
    assert topics(client.messages()) == ["microgrid/1/pcc", "microgrid/2/pcc", "microgrid/2/pcc", "microgrid/1/pcc"]
    assert world.broker.references.kept == 2


@ways
def test_a_missing_value_is_no_change_and_its_return_is_one(way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage) or phases=9")
    send(publisher, said(voltage=1), said(), said(voltage=1), said(phases=9), said(voltage=1), said(voltage=1))
    assert got(client) == [said(voltage=1), said(phases=9), said(voltage=1)]


@ways
def test_a_condition_beside_changed_keeps_the_reference_where_it_is(way: dict[str, Any]) -> None:
    world = content_world(**way)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage) and voltage<207")
    send(publisher, *volts(1, 300, 1, 2, 300, 2, 1))
    assert got(client) == volts(1, 2, 1)


def test_what_is_lost_because_the_client_is_away_is_no_reference() -> None:
    world = content_world()
    client, publisher = world.durable("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage)", qos=1)
    publisher.publish(PCC, said(voltage=1))
    client.drop()
    publisher.publish(PCC, said(voltage=2))
    client = world.durable("c")
    assert got(client) == []
    publisher.publish(PCC, said(voltage=2))
    assert got(client) == volts(2)
    assert world.broker.account.drops == {Drop.OFFLINE: 1}


def test_what_waits_for_a_client_that_is_away_is_a_reference() -> None:
    world = content_world()
    client, publisher = world.durable("c"), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage)", qos=1)
    client.drop()
    send(publisher, *volts(1, 1, 2, 2), qos=1)
    assert got(world.durable("c")) == volts(1, 2)


def test_what_a_full_queue_drops_is_no_reference() -> None:
    """The newest value is dropped at once, the oldest later; neither was delivered."""
    world = content_world(queue_messages=2)
    client, publisher = world.client("c"), world.client("p")
    client.subscribe("urgent", qos=1)
    client.subscribe(f"{FILTER}?changed(voltage)")
    client.stall()
    publisher.publish("urgent", b"1", qos=1)
    publisher.publish("urgent", b"2", qos=1)
    publisher.publish(PCC, said(voltage=5))
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 1}
    assert world.broker.references.kept == 0
    client.resume()
    assert got(client) == [b"1", b"2"]
    publisher.publish(PCC, said(voltage=5))
    assert got(client) == volts(5)

    client.stall()
    for number in (1, 2):
        publisher.publish(f"microgrid/{number}/pcc", said(voltage=5))
    publisher.publish("urgent", b"3")
    client.resume()
    assert len(got(client)) == 2
    publisher.publish("microgrid/1/pcc", said(voltage=5))
    publisher.publish("microgrid/2/pcc", said(voltage=5))
    assert topics(client.messages()) == ["microgrid/1/pcc"], "the one that was dropped"


def test_what_expires_or_is_too_large_for_the_client_is_no_reference() -> None:
    world = content_world()
    client, publisher = world.client("c", maximum_packet_size=100), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage)", qos=1)
    client.stall()
    publisher.publish(PCC, said(voltage=1), qos=1, message_expiry_interval=5)
    world.advance(10)
    client.resume()
    client.expect_nothing()
    publisher.publish(PCC, said(voltage=1, pad="x" * 100), qos=1)
    client.expect_nothing()
    assert world.broker.account.drops == {Drop.EXPIRED: 1, Drop.TOO_LARGE: 1}
    publisher.publish(PCC, said(voltage=1), qos=1)
    assert got(client) == volts(1)


def test_forgotten_references_are_counted_and_their_next_message_counts_as_changed() -> None:
    world = content_world(content={"change_topics": 2, "change_total": 3})
    one, two, publisher = world.client("1"), world.client("2"), world.client("p")
    memory = world.broker.references

    def say(*sites: int) -> None:
        for site in sites:
            publisher.publish(f"microgrid/{site}/pcc", said(voltage=1))

    one.subscribe(f"{FILTER}?changed(voltage)")
    say(1, 2, 3)
    assert (memory.kept, memory.forgotten_alone, memory.forgotten_together) == (2, 1, 0)
    one.take()
    say(3, 2, 1)
    assert topics(one.messages()) == ["microgrid/1/pcc"]
    two.subscribe("microgrid/+/pcc?changed(voltage)")
    say(5)
    assert memory.kept == 3
    say(6)
    assert memory.kept == 3
    assert memory.forgotten_together > 0
    two.take()
    say(6)
    two.expect_nothing()
    say(5)
    assert len(two.messages()) == 1


def test_a_replaced_subscription_starts_anew() -> None:
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    wish = f"{FILTER}?changed(voltage)"
    client.subscribe(wish)
    publisher.publish(PCC, said(voltage=1))
    publisher.publish(PCC, said(voltage=1))
    assert len(client.messages()) == 1
    client.subscribe(wish)
    assert world.broker.references.kept == 0
    publisher.publish(PCC, said(voltage=1))
    assert len(client.messages()) == 1


def test_references_survive_a_reconnection_and_end_with_the_session() -> None:
    world = content_world()
    client, publisher = world.durable("c", expiry_s=100), world.client("p")
    client.subscribe(f"{FILTER}?changed(voltage)")
    publisher.publish(PCC, said(voltage=1))
    client.take()
    client.drop()
    client = world.durable("c", expiry_s=100)
    publisher.publish(PCC, said(voltage=1))
    client.expect_nothing()
    client.drop()
    world.advance(101)
    assert world.broker.references.kept == 0
