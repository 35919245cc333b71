from __future__ import annotations

import pytest

from tests.kits.world import World, payloads
from tieline.core.account import Drop
from tieline.wire.packets import Will


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
