"""What a broker keeps is listed whole and once, by what was asked for, and without a trace of the question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kits.picture import picture
from tests.kits.world import World
from tieline.core.answers import listing
from tieline.core.answers.listing import PAUSE, SHOWN_BYTES


def listed(world: World, found: Iterator[Any]) -> list[Any]:
    before = picture(world.broker)
    entries = [each for each in found if each is not None]
    assert picture(world.broker) == before
    return entries


@pytest.fixture(name="world")
def _world() -> World:
    world = World()
    meter = world.durable("meter-1", expiry_s=60)
    meter.subscribe("a/+", qos=1)
    meter.subscribe("$share/group/b/#")
    meter.subscribe("g/1?voltage<207", qos=2)
    other = world.client("archive")
    other.subscribe("a/b")
    other.publish("kept/long", b"x" * (SHOWN_BYTES + 1), qos=1, retain=True)
    other.publish("kept/short", b"\xff", retain=True)
    return world


def test_sessions(world: World) -> None:
    broker = world.broker
    assert [each.standing.client for each in listed(world, listing.sessions(broker, world.now))] == [
        "meter-1",
        "archive",
    ]
    (meter,) = listed(world, listing.sessions(broker, world.now, client="m?ter-*"))
    assert (meter.is_connected, meter.version, meter.subscriptions, meter.expiry_s) == (True, 5, 3, 60)
    assert not listed(world, listing.sessions(broker, world.now, user="alice"))
    assert not listed(world, listing.sessions(broker, world.now, state="away"))
    assert not listed(world, listing.sessions(broker, world.now, state="slow"))


def test_who_is_away_and_what_waits(world: World) -> None:
    meter, archive = world.clients
    meter.drop()
    world.advance(5)
    (gone,) = listed(world, listing.sessions(world.broker, world.now, state="away"))
    assert (gone.is_connected, gone.version, gone.away_s, gone.standing.paused) == (False, 0, 5, "away")
    archive.publish("a/b", b"x", qos=1)
    (slow,) = listed(world, listing.sessions(world.broker, world.now, state="slow"))
    assert slow.standing.client == "meter-1" and slow.standing.queued == 1
    assert [each.is_connected for each in listed(world, listing.subscriptions(world.broker, client="meter-1"))] == [
        False
    ] * 3


def test_subscriptions(world: World) -> None:
    broker = world.broker
    found = listed(world, listing.subscriptions(broker))
    assert [(each.client, each.filter, each.group, each.condition, each.qos) for each in found] == [
        ("meter-1", "a/+", "", "", 1),
        ("meter-1", "b/#", "group", "", 0),
        ("meter-1", "g/1", "", "voltage<207", 2),
        ("archive", "a/b", "", "", 0),
    ]
    assert [each.client for each in listed(world, listing.subscriptions(broker, topic="a/b"))] == ["meter-1", "archive"]
    assert [each.filter for each in listed(world, listing.subscriptions(broker, with_condition=True))] == ["g/1"]
    assert [each.written for each in listed(world, listing.subscriptions(broker, topic="b"))] == ["$share/group/b/#"]


def test_retained_messages(world: World) -> None:
    long, short = listed(world, listing.retained(world.broker, world.now, filter_="kept/#"))
    assert (long.topic, long.payload_bytes, long.payload) == ("kept/long", SHOWN_BYTES + 1, b"x" * SHOWN_BYTES)
    assert (long.qos, long.publisher, long.left_s) == (1, "archive", None)
    assert short.payload == b"\xff"
    assert all(not each.topic.startswith("$") for each in listed(world, listing.retained(world.broker, world.now)))


def test_a_long_list_pauses_and_is_whole_although_sessions_come_and_go() -> None:
    world = World()
    for number in range(2 * PAUSE):
        world.client(f"c{number}")
    found = listing.sessions(world.broker, world.now)
    first = [next(found) for _ in range(PAUSE)]
    assert first[-1] is None, "it pauses"
    world.client("late")
    rest = [*found]
    clients = [each.standing.client for each in (*first, *rest) if each is not None]
    assert clients == [f"c{number}" for number in range(2 * PAUSE)]
