"""Groups with members at other brokers: which broker gets a message."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kits.world import World
from tieline.core.client import Session
from tieline.core.message import Item, Message
from tieline.core.receiver import Grant
from tieline.core.routing.groups import Group
from tieline.overlay.receivers.destination import Destination


class Collected:
    """Notes who was asked for, and knows who is in reach."""

    def __init__(self) -> None:
        self.unreachable: set[int] = set()

    def collect(self, item: object, number: int, now: float, share: object = None) -> None:
        """Nobody offers anything here."""

    def turn_away(self, name: str, item: object, why: object, now: float) -> None:
        """Nor does anybody lose anything."""

    def is_reachable(self, number: int) -> bool:
        return number not in self.unreachable


class Scene:
    """A group with some members here and some at brokers."""

    def __init__(self, here: int, *there: int, is_balanced: bool = False) -> None:
        self.world = World()
        self.group = Group("g", "t")
        self.collected = Collected()
        self.group.spanning.is_balanced = is_balanced
        self.brokers = [Destination(number, f"b{number}", self.collected) for number in range(1, len(there) + 1)]
        for broker, members in zip(self.brokers, there, strict=True):
            self.group.spanning.grants[broker] = Grant(broker, 2)
            self.group.spanning.weigh(broker, members)
        self.clients = [self.world.client(f"c{number}") for number in range(here)]
        for client in self.clients:
            session = client.connection.session
            assert isinstance(session, Session)
            self.group.members[session] = Grant(session, 2)

    def picked(self, times: int, qos: int = 1) -> Counter[str]:
        return Counter(self.pick(qos) for _ in range(times))

    def pick(self, qos: int = 1) -> str:
        chosen = self.group.pick(_message(qos))
        return "nobody" if chosen is None else chosen.receiver.client_id


def _message(qos: int = 1) -> Item:
    return Message(b"t", b"x", qos)


def assert_even(picked: Counter[str]) -> None:
    """Both brokers had their turns; whoever was alone before waits for one."""
    assert set(picked) == {"broker b1", "broker b2"}
    assert abs(picked["broker b1"] - picked["broker b2"]) <= 2


def test_members_here_come_first() -> None:
    assert Scene(2, 1, 5).picked(20) == {"c0": 10, "c1": 10}


def test_brokers_are_picked_by_the_number_of_their_members() -> None:
    assert Scene(0, 1, 3).picked(40) == {"broker b1": 10, "broker b2": 30}


def test_balanced_members_get_as_much_wherever_they_are() -> None:
    assert Scene(2, 1, 3, is_balanced=True).picked(60) == {"c0": 10, "c1": 10, "broker b1": 10, "broker b2": 30}


def test_whoever_is_out_of_reach_is_picked_only_if_nobody_else_can_have_it_and_never_with_qos_0() -> None:
    scene = Scene(0, 1, 1)
    scene.collected.unreachable = {1}
    assert scene.picked(10) == {"broker b2": 10}
    scene.collected.unreachable = {1, 2}
    assert_even(scene.picked(10))
    assert scene.picked(10, qos=0) == {"nobody": 10}


def test_whoever_was_out_of_reach_has_saved_up_nothing() -> None:
    scene = Scene(0, 1, 1)
    scene.collected.unreachable = {1}
    scene.picked(100)
    scene.collected.unreachable = set()
    assert_even(scene.picked(10))


def test_a_broker_to_which_too_much_is_owed_is_passed_over_as_long_as_there_are_others() -> None:
    scene = Scene(0, 1, 1)
    scene.brokers[0].is_full = True
    assert scene.picked(10) == {"broker b2": 10}
    scene.brokers[1].is_full = True
    assert_even(scene.picked(10))


def test_a_broker_that_may_not_read_a_topic_is_not_picked_for_it() -> None:
    scene = Scene(0, 1, 1)
    scene.brokers[0].may_read = lambda topic: topic != b"t"
    assert scene.picked(10) == {"broker b2": 10}
    scene.brokers[1].may_read = lambda topic: False
    assert scene.picked(10) == {"nobody": 10}


def test_a_member_whose_client_is_away_comes_behind_brokers_in_reach_and_before_others() -> None:
    scene = Scene(1, 1)
    scene.clients[0].drop()
    kept = scene.world.durable("kept")
    session = kept.connection.session
    assert isinstance(session, Session)
    scene.group.members.clear()
    scene.group.members[session] = Grant(session, 2)
    kept.drop()
    assert scene.pick() == "broker b1"
    scene.collected.unreachable = {1}
    assert scene.pick() == "kept"


def test_asking_changes_nothing() -> None:
    scene = Scene(0, 1, 1)
    asked = [scene.group.peek(_message(), {}) for _ in range(5)]
    assert len({grant.receiver.client_id for grant in asked if grant is not None}) == 1


def test_a_broker_that_is_handed_a_message_is_none_that_had_it() -> None:
    scene = Scene(0, 1, 1, 1)
    one, two, three = scene.brokers
    chosen = scene.group.pick_elsewhere(_message(), {one, two})
    assert chosen is not None
    assert chosen.receiver is three
    assert scene.group.pick_elsewhere(_message(), {one, two, three}) is None


@pytest.mark.parametrize("is_balanced", [False, True])
def test_who_leaves_is_not_picked(is_balanced: bool) -> None:
    scene = Scene(0, 2, 2, is_balanced=is_balanced)
    scene.picked(7)
    gone = scene.brokers[0]
    del scene.group.spanning.grants[gone]
    scene.group.spanning.weigh(gone, 0)
    assert scene.picked(10) == {"broker b2": 10}
