"""The clock leaps or goes back: nobody is lost by it, and nothing is done twice."""

from __future__ import annotations

import pytest

from tests.kits.invariants import check
from tests.kits.world import World
from tieline.wire.packets import Pingreq, Pingresp, Publish, Will
from tieline.wire.reason import Reason

_YEAR_S = 365 * 86_400.0


def test_a_leap_ends_what_is_over_and_each_will_is_published_once() -> None:
    world = World()
    watcher = world.client("watcher")
    watcher.subscribe("wills/#", qos=1)
    for number in range(50):
        will = Will(topic=f"wills/{number}", payload=b"gone", qos=1)
        world.client(f"c{number}", keep_alive=60, will=will, session_expiry_interval=3_600)
    world.now += _YEAR_S
    for _ in range(3):
        world.broker.tick(world.now)
        world.settle()
    wills = [message.topic for message in watcher.messages()]
    assert sorted(wills) == sorted(f"wills/{number}" for number in range(50))
    assert world.broker.account.closed["keep_alive_timeout"] == 50
    check(world.broker)
    # those whose sessions begin to wait with the leap still have their time
    assert len(world.broker.sessions) == 51
    world.advance(3_601)
    assert list(world.broker.sessions) == ["watcher"]


def test_what_waits_expires_by_a_leap_and_has_a_name() -> None:
    world = World()
    back = world.durable("away")
    back.subscribe("t", qos=1)
    back.drop()
    publisher = world.client("p")
    publisher.publish("t", b"old", qos=1, message_expiry_interval=10)
    publisher.publish("t", b"kept", qos=1)
    world.now += 60.0
    again = world.durable("away")
    assert [message.payload for message in again.messages()] == [b"kept"]
    assert sum(world.broker.account.drops.values()) == 1


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_clock_that_goes_back_stops_no_message(qos: int) -> None:
    world = World()
    subscriber, publisher = world.client("s", keep_alive=10), world.client("p", keep_alive=10)
    subscriber.subscribe("t", qos=qos)
    for step_s in (0.0, -3_600.0, -1.0, 5.0, -_YEAR_S):
        world.now += step_s
        assert publisher.publish("t", b"x", qos=qos) is Reason.SUCCESS
        (message,) = [packet for packet in subscriber.take() if isinstance(packet, Publish)]
        subscriber.acknowledge(message)
        subscriber.take()
        world.broker.tick(world.now)
        check(world.broker)
    for client in (subscriber, publisher):
        client.send(Pingreq())
        client.expect(Pingresp)
