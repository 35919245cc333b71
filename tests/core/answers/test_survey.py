"""One look at all sessions, in portions: the same numbers as a look in one go, and a pause before it is too much."""

from __future__ import annotations

from tests.kits.world import World
from tieline.conf.schema import Class, Mqtt, Settings
from tieline.core.answers import survey as module
from tieline.core.answers.survey import Survey, survey
from tieline.sched.levels import LEVELS

CLASSES = Settings(
    mqtt=Mqtt(sys_interval_s=0),
    class_=tuple(Class(name=f"c{level}", filter=f"{level}/#", level=level) for level in range(LEVELS)),
)


def look(world: World) -> tuple[Survey, int]:
    found = Survey()
    return found, sum(1 for _ in survey(world.broker, world.now, found))


def test_nobody() -> None:
    found, pauses = look(World())
    assert (found.sessions, found.connected, found.slowest, pauses) == (0, 0, [], 0)


def test_what_waits_is_counted_by_level_in_both_kinds_of_queues() -> None:
    world = World(CLASSES)
    slow, publisher = world.client("slow"), world.client("p")
    slow.subscribe("#")
    slow.is_reading = False
    sent = {0: 5, 1: 3, 2: 2, 3: 1}
    for level, count in sent.items():
        for number in range(count):
            publisher.publish(f"{level}/{number % 2}", b"x" * 100)
    world.advance(0.5)
    found, _ = look(world)
    assert found.waiting_by_level == [5, 3, 2, 1] and found.waiting == 1 and found.connected == 2
    assert [standing.client for standing in found.slowest] == ["slow"]
    session = world.broker.sessions["slow"]
    assert sum(found.waiting_by_level) == session.queue.messages
    # and once a policy has them
    world.advance(5)
    publisher.publish("1/0", b"x")
    slow.is_reading = True
    world.advance(0.01)
    again, _ = look(world)
    assert sum(again.waiting_by_level) == session.queue.messages


def test_who_is_away_collects_and_is_no_slow_client() -> None:
    world = World(CLASSES)
    away = world.durable("away")
    away.subscribe("#", qos=1)
    away.drop()
    world.client("p").publish("2/x", b"x", qos=1)
    world.advance(3)
    found, _ = look(world)
    assert (found.away, found.waiting, found.sessions) == (1, 0, 2)
    assert found.waiting_by_level[2] == 1 and found.oldest_s[2] == 0.0, "nobody waits for it"


def test_a_queue_that_is_too_long_to_be_looked_through_is_scaled() -> None:
    world = World(CLASSES)
    away = world.durable("away")
    away.subscribe("#", qos=1)
    away.drop()
    publisher = world.client("p")
    most = module.MOST_ENTRIES
    for number in range(most * 2):
        publisher.publish("1/x" if number % 2 else "2/x", b"", qos=1)
    found, _ = look(world)
    assert sum(found.waiting_by_level) == 2 * most
    assert found.waiting_by_level[1] == found.waiting_by_level[2] == most


def test_it_pauses_and_what_ends_meanwhile_does_no_harm() -> None:
    world = World(CLASSES)
    clients = [world.client(f"c{number}") for number in range(2 * module.PAUSE + 10)]
    found = Survey()
    looking = survey(world.broker, world.now, found)
    next(looking)
    for client in clients[module.PAUSE : module.PAUSE + 50]:
        client.drop()
    assert sum(1 for _ in looking) == 1
    assert found.sessions == len(clients) and len(clients) - 50 <= found.connected <= len(clients)


def test_those_behind_most_come_first() -> None:
    world = World(CLASSES)
    publisher = world.client("p")
    for number in range(module.SLOWEST + 5):
        client = world.client(f"c{number:02}")
        client.subscribe(f"1/{number}")
        client.is_reading = False
        for _ in range(number + 1):
            publisher.publish(f"1/{number}", b"x" * 50)
    found, _ = look(world)
    assert [standing.client for standing in found.slowest[:3]] == ["c14", "c13", "c12"]
    assert len(found.slowest) == module.SLOWEST
