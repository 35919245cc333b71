"""What an operation costs, counted: comparisons of keys in heaps, and lines of Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import log2
from typing import Any, Final, get_args

import pytest

from tests.kits.check_policy import Link
from tests.kits.lines import counting
from tieline.sched.levels import DEFAULTS, Full, Rules
from tieline.sched.policies import make, names
from tieline.sched.policy import Policy
from tieline.sched.waiting import SLACK, Ranking

FEW: Final = 400
MANY: Final = 20_000
ROUNDS: Final = 100


class Counted(int):
    """A number that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int.__eq__(self, other) is True

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int.__lt__(self, other)

    def __add__(self, other: int) -> Counted:
        return Counted(int.__add__(self, other))

    def __neg__(self) -> Counted:
        return Counted(int.__neg__(self))

    __hash__ = int.__hash__


def places(policy: Policy[int]) -> int:
    """Places in all rankings; none may hold more than twice what stands in it, and a little."""
    rankings: list[Ranking[Any]] = [*policy._by_key, *policy._by_age, *policy._victims._rankings]
    for ranking in rankings:
        assert len(ranking._heap) <= 2 * ranking.valid + SLACK
    return sum(len(ranking._heap) for ranking in rankings)


def ruled(full: Full) -> Rules:
    low, normal, important, urgent = (replace(traffic, full=full) for traffic in DEFAULTS)
    return Rules(classes=(low, normal, important, urgent))


def crowded(name: str, flows: int) -> Link:
    """Many flows with one message each, of all levels and heats."""
    link = Link(make(name))
    link.arrived = Counted(0)
    for number in range(flows):
        link.push(number * 7 % 4, heat=Counted(number * 13 % 1009), flow=number, is_assured=number % 3 == 0)
    return link


def cost(action: Callable[[int], object]) -> tuple[float, float]:
    """Comparisons and lines that an action takes, on average."""
    Counted.comparisons = 0
    with counting() as lines:
        for number in range(ROUNDS):
            action(number)
    return Counted.comparisons / ROUNDS, lines.count / ROUNDS


@pytest.mark.parametrize("name", names())
def test_among_many_flows_an_operation_looks_at_few(name: str) -> None:
    few, many = crowded(name, FEW), crowded(name, MANY)

    def push(link: Link, number: int) -> None:
        link.push(number % 4, heat=Counted(number * 13 % 1009), flow=("new", number))

    for action in (push, lambda link, _: link.send(), lambda link, _: link.policy.evict()):
        _, lines_few = cost(partial(action, few))
        comparisons, lines = cost(partial(action, many))
        # a move takes a place in two or three heaps, each of which compares a few times on each of log2(n) storeys
        assert comparisons < 15 * log2(MANY)
        assert lines < 1.5 * lines_few


@pytest.mark.parametrize("full", get_args(Full))
@pytest.mark.parametrize("is_one_flow", [False, True])
def test_a_victim_under_lasting_overload_is_found_without_a_search(full: Full, is_one_flow: bool) -> None:
    waiting = 2_000
    link = Link(make("strict", ruled(full)))
    for number in range(waiting):
        link.push(1, flow="one" if is_one_flow else number % (waiting // 2))

    def overflow(number: int) -> None:
        link.push(1, flow="one" if is_one_flow else number % (waiting // 2))
        assert link.policy.evict() is not None

    _, lines = cost(overflow)
    assert lines < 250
    places(link.policy)
    assert len(link.policy) == waiting


def test_a_mixed_flow_is_not_searched_for_its_level() -> None:
    link = Link(make("strict"))
    for number in range(2_000):
        link.push(number % 4, flow="mixed")

    def turn(number: int) -> None:
        link.push(number % 4, flow="mixed")
        link.send()
        link.policy.evict()

    _, lines = cost(turn)
    assert lines < 400


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("full", get_args(Full))
def test_nothing_is_kept_of_what_has_left(name: str, full: Full) -> None:
    link = Link(make(name, ruled(full)))
    link.push(0, flow="cold", is_assured=True)
    link.push(0, flow="cool")
    for number in range(1_000):
        link.push(1, flow="hot", heat=2)
        link.push(1, flow="hot", heat=2)
        link.push(3 if number % 2 else 0, flow="cool")  # lifts the flow, or makes it longer
        back = link.policy.pop(link.now)
        assert back is not None
        link.policy.put_back(back)
        while len(link.policy) > 5:
            assert (link.policy.evict() if number % 3 else link.policy.pop(link.now)) is not None
        if not number % 100:
            assert places(link.policy) < 20 * SLACK
            assert sum(len(flow.entries) for flow in link.policy._flows.values()) == 5
    link.send_all()
    assert not link.policy._flows
    assert places(link.policy) <= 20 * SLACK
