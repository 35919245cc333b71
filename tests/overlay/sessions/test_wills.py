"""A will whose delay ends while its broker is down: published after the restart, unless its client came back elsewhere.

In virtual time; :mod:`tests.robust.test_joined_wills` kills real brokers.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.kits.moves_world import Client, MovesWorld
from tieline.wire.packets import Will

DELAY_S = 10
#: How long the broker is down: the delay is over long before.
DOWN_S = 20.0


@pytest.fixture
def world() -> MovesWorld:
    world = MovesWorld(Random(1))
    for number in (1, 2, 3):
        world.start(number)
    world.join(1, 2, 0.01, 125_000.0)
    world.join(2, 3, 0.01, 125_000.0)
    world.clock.run_for(2.0)
    return world


def listening(world: MovesWorld) -> Client:
    listener = world.client("listener")
    listener.wants = {"gone": 1}
    listener.connect(world.home(3))
    world.clock.run_for(2.0)
    return listener


def leave_a_will(world: MovesWorld, expiry_s: int) -> Client:
    """A client of the first broker goes without a word, and then the broker dies."""
    client = world.client("s", expiry_s=expiry_s)
    client.will = Will(topic="gone", payload=b"s", qos=1, properties={"will_delay_interval": DELAY_S})
    client.connect(world.home(1))
    world.clock.run_for(1.0)
    assert client.is_in
    client.leave()
    world.clock.run_for(1.0)
    world.crash(1, DOWN_S)
    return client


@pytest.mark.parametrize("expiry_s", [3_600, DELAY_S], ids=["session stays", "session ends with the delay"])
def test_nobody_came_back(world: MovesWorld, expiry_s: int) -> None:
    listener = listening(world)
    leave_a_will(world, expiry_s)
    world.clock.run_for(DOWN_S - 1.0)
    assert listener.got == []
    world.clock.run_for(20.0)
    assert [payload for payload, *_ in listener.got] == [b"s"]


@pytest.mark.parametrize("expiry_s", [3_600, DELAY_S], ids=["session stays", "session ends with the delay"])
def test_its_client_came_back_elsewhere_in_time(world: MovesWorld, expiry_s: int) -> None:
    listener = listening(world)
    client = leave_a_will(world, expiry_s)
    client.connect(world.home(2))
    world.clock.run_for(DELAY_S - 2.0)
    assert client.is_in and client.sessions[-1] is False, "nobody could fetch its session"
    world.clock.run_for(DOWN_S + 20.0)
    assert client.is_in
    assert listener.got == []
    core = world.home(1).core
    assert core is not None and "s" not in core.sessions
