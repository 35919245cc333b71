"""A session that had much is over at once, and let go in portions that count for whoever caused them."""

from __future__ import annotations

import pytest

from tests.core.crashing import Scene
from tests.core.turns import ONE_STEP, Turns
from tests.kits.world import Client, World, payloads
from tieline.core.account import Drop
from tieline.core.holdings import Kind
from tieline.core.work import WORK_PER_TURN
from tieline.wire.reason import Reason

MANY = 4_000


def _lose(client: Client) -> None:
    """The connection is gone; nothing else happens in this turn."""
    client.world.broker.closed(client.connection, client.world.now)


def _subscribe_to_many(client: Client, prefix: str = "f") -> None:
    for start in range(0, MANY, 500):
        client.subscribe(*(f"{prefix}/{number}/+" for number in range(start, start + 500)), qos=1)


def test_subscriptions_are_cancelled_in_portions() -> None:
    world = World()
    other = world.client("other")
    other.subscribe("f/+/x")
    leaving = world.client("leaving")
    _subscribe_to_many(leaving)
    owner = world.broker.holdings.owner(None)
    kept, sessions = owner.kept[Kind.SUBSCRIPTIONS], owner.sessions
    turns = Turns(world)
    _lose(leaving)
    assert "leaving" not in world.broker.sessions
    assert world.broker.routes.count == MANY + 1
    rounds = 0
    while world.broker.routes.count > 1:
        rounds += 1
        turns.turn()
        # whoever caused it has it on its account until nothing is left
        if world.broker.routes.count > 1:
            assert (owner.kept[Kind.SUBSCRIPTIONS], owner.sessions) == (kept, sessions)
    turns.turn()
    assert rounds > 2
    assert max(turns.work) < WORK_PER_TURN + ONE_STEP
    assert owner.sessions == sessions - 1
    assert owner.kept[Kind.SUBSCRIPTIONS] < kept / 1_000
    world.client("p").publish("f/1/x", b"still there")
    assert payloads(other.messages()) == [b"still there"]


def test_nothing_is_queued_for_a_session_that_is_over_and_nobody_is_refused_for_it() -> None:
    world = World(absent="refuse", queue_messages=MANY)
    leaving = world.durable("leaving", expiry_s=5)
    leaving.subscribe("t", qos=1)
    leaving.drop()
    publisher = world.client("p")
    for _ in range(MANY):
        assert publisher.publish("t", qos=1) is Reason.SUCCESS
    assert publisher.publish("t", qos=1) is Reason.QUOTA_EXCEEDED
    turns = Turns(world)
    world.now += 5
    turns.turn()
    assert "leaving" not in world.broker.sessions
    assert world.broker.routes.count == 1, "it has not begun"
    before = world.broker.queued_bytes
    assert publisher.publish("t", qos=1) in (Reason.SUCCESS, Reason.NO_MATCHING_SUBSCRIBERS)
    assert world.broker.queued_bytes <= before
    world.settle()
    assert world.broker.queued_bytes == 0
    assert world.broker.account.drops[Drop.SESSION_ENDED] == MANY
    assert publisher.publish("t", qos=1) is Reason.NO_MATCHING_SUBSCRIBERS


def test_a_client_that_comes_back_has_a_new_session_while_the_old_one_is_let_go() -> None:
    world = World()
    first = world.client("c")
    _subscribe_to_many(first)
    turns = Turns(world)
    _lose(first)
    again = world.client("c")
    assert not again.connack.session_present
    again.subscribe("f/7/+")
    world.client("p").publish("f/7/x", b"once")
    assert payloads(again.messages()) == [b"once"]
    world.settle()
    assert world.broker.routes.count == 1
    assert turns.broker.sessions["c"].connection is again.connection


def test_a_group_does_not_choose_a_member_that_is_over() -> None:
    world = World()
    leaving, staying = world.client("leaving"), world.client("staying")
    for member in (leaving, staying):
        member.subscribe("$share/g/t", qos=1)
    _subscribe_to_many(leaving)
    _lose(leaving)
    conn = world.client("p")
    for number in range(6):
        conn.publish("t", b"%d" % number, qos=1)
    world.settle()
    assert payloads(staying.messages()) == [b"%d" % number for number in range(6)]


def test_what_waited_for_a_group_goes_to_others_also_in_portions() -> None:
    world = World()
    leaving = world.client("leaving")
    leaving.subscribe("$share/g/t", qos=0)
    leaving.stall()
    publisher = world.client("p")
    for number in range(MANY):
        publisher.put("t", b"%d" % number)
    staying = world.client("staying")
    staying.subscribe("$share/g/t", qos=0)
    waiting = world.broker.sessions["leaving"].queue.messages
    assert waiting > 1_000
    _lose(leaving)
    world.settle()
    assert payloads(staying.messages()) == [b"%d" % number for number in range(MANY - waiting, MANY)]


@pytest.mark.parametrize("share", ["", "$share/g/"])
def test_nothing_of_a_group_is_lost_when_the_broker_dies_while_a_kept_session_ends(share: str) -> None:
    scene = Scene()
    leaving = scene.kept("leaving")
    scene.subscribe(leaving, f"{share}t", 1)
    leaving.drop()
    publisher = scene.clean("p")
    for number in range(600):
        publisher.put("t", b"%d" % number, qos=1)
    scene.settle()
    staying = scene.kept("staying")
    scene.subscribe(staying, "$share/g/t", 1)
    staying.drop()
    scene.settle()
    # it begins anew, so the old session ends; the broker dies as soon as that is permanent
    scene.world.client("leaving", clean_start=True)
    scene.persist()
    scene.restart()
    assert len(scene.world.broker.sessions["staying"].queue) == (600 if share else 0)


def test_very_many_sessions_that_expire_at_once_take_turns() -> None:
    world = World()
    for number in range(600):
        world.durable(f"c{number}", expiry_s=60).drop()
    turns = Turns(world)
    world.now += 60
    turns.turn()
    left = len(world.broker.sessions)
    assert 0 < left < 600
    back = world.durable(f"c{599}")
    assert back.connack.session_present, "its end was due, and had not come yet"
    world.settle()
    assert list(world.broker.sessions) == ["c599"]
    assert max(turns.work) < WORK_PER_TURN + ONE_STEP
