from __future__ import annotations

import pytest

from tests.core.turns import ONE_STEP, Turns, picky_client
from tests.kits.world import World, payloads
from tieline.core.account import Drop
from tieline.core.holdings import Kind
from tieline.core.work import WORK_PER_TURN
from tieline.wire.packets import Publish, Will


def test_a_will_is_published_once_whatever_ends_the_connection() -> None:
    world = World()
    watcher = world.client("w")
    watcher.subscribe("will/#")
    will = Will(topic="will/t", payload=b"gone")
    for end in ("drop", "garbage", "keep-alive", "take-over"):
        client = world.client("c", will=will, keep_alive=10 if end == "keep-alive" else 0)
        if end == "drop":
            client.drop()
        elif end == "garbage":
            client.send(b"\xff\xff\xff\xff\xff\xff")
        elif end == "keep-alive":
            world.advance(16)
        else:
            world.client("c").disconnect()
        assert payloads(watcher.messages()) == [b"gone"], end


@pytest.mark.parametrize("full", ["refuse", "oldest"])
def test_a_thousand_wills_at_once_are_bounded_like_any_messages(full: str) -> None:
    world = World(queue_messages=100, full=full)
    watcher = world.client("w")
    watcher.subscribe("will", qos=1)
    watcher.stall()
    clients = [world.client(f"c{n}", will=Will(topic="will", payload=b"%d" % n, qos=1)) for n in range(300)]
    for client in clients:
        client.drop()
    watcher.resume()
    assert len(watcher.messages()) == 100
    assert world.broker.account.drops == {Drop.QUEUE_FULL: 200}


def test_a_will_that_may_not_wait_longer_than_its_session() -> None:
    world = World()
    watcher = world.client("w")
    watcher.subscribe("t")
    will = Will(topic="t", payload=b"x", properties={"will_delay_interval": 1_000})
    world.durable("c", expiry_s=20, will=will).drop()
    world.advance(19)
    watcher.expect_nothing()
    world.advance(1)
    assert payloads(watcher.messages()) == [b"x"]


def test_wills_for_many_conditions_are_published_in_portions_and_in_order() -> None:
    world = World()
    picky = picky_client(world, 600)
    wills = [Will(topic="w/x", payload=b'{"z": %d}' % number) for number in range(3)]
    clients = [world.client(f"c{number}", will=will) for number, will in enumerate(wills)]
    turns = Turns(world)
    for client in clients:
        world.broker.closed(client.connection, world.now)
    turns.turn()
    assert not picky.messages()
    assert world.broker.holdings.kept[Kind.WILLS] > 0, "what is under way still counts"
    for _ in range(100):
        turns.turn()
    assert payloads(picky.messages()) == [will.payload for will in wills]
    assert max(turns.work) < WORK_PER_TURN + 4 * ONE_STEP
    assert world.broker.holdings.kept[Kind.WILLS] == 0


def test_wills_under_way_are_published_before_the_broker_ends() -> None:
    world = World()
    picky = picky_client(world, 600)
    client = world.client("c", will=Will(topic="w/x", payload=b'{"z": 1}'))
    world.broker.closed(client.connection, world.now)
    world.stop()
    picky.expect(Publish, payload=b'{"z": 1}')


def test_a_will_whose_client_comes_back_in_the_moment_it_is_due_stays() -> None:
    world = World()
    watcher = world.client("w")
    watcher.subscribe("t")
    names = [f"c{number}" for number in range(900)]
    for name in names:
        will = Will(topic="t" if name == names[-1] else "u", payload=b"old", properties={"will_delay_interval": 5})
        world.durable(name, expiry_s=50, will=will).drop()
    world.broker.work.due(lambda _: world.broker.work.did(WORK_PER_TURN + 1), world.now + 5)
    world.now += 5
    world.broker.tick(world.now)
    world.durable(names[-1], will=Will(topic="t", payload=b"new"))
    world.settle()
    watcher.expect_nothing()
