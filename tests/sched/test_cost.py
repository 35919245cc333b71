"""What an operation costs, counted: comparisons of keys in heaps, and lines of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import log2
from types import FrameType
from typing import Any, Final, get_args

import pytest

import tieline.sched.feedback
import tieline.sched.orders  # noqa: F401 - both register their policies
from tests.kits.check_policy import Link
from tieline.sched.levels import DEFAULTS, Full, Rules
from tieline.sched.policy import Policy, make, names
from tieline.sched.ranking import SLACK, Ranking

FLOWS: Final = 20_000


class Counted(int):
    """A number that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int.__eq__(self, other) is True

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int.__lt__(self, other)

    def __neg__(self) -> Counted:
        return Counted(int.__neg__(self))

    __hash__ = int.__hash__


class Lines:
    """How many lines of Python ran."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        self.count += event == "line"
        return self.trace


@contextmanager
def counting() -> Iterator[Lines]:
    lines = Lines()
    before = sys.gettrace()
    sys.settrace(lines.trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


def places(policy: Policy[int]) -> int:
    """Places in all rankings; none may hold more than twice what stands in it, and a little."""
    rankings: list[Ranking[Any]] = [*policy._by_key, *policy._by_age, *policy._victims._rankings]
    for ranking in rankings:
        assert len(ranking._heap) <= 2 * ranking.valid + SLACK
    return sum(len(ranking._heap) for ranking in rankings)


def ruled(full: Full) -> Rules:
    low, normal, important, urgent = (replace(traffic, full=full) for traffic in DEFAULTS)
    return Rules(classes=(low, normal, important, urgent))


def crowded(name: str, rules: Rules | None = None, flows: int = FLOWS) -> Link:
    """Many flows with one message each, of all levels and heats."""
    link = Link(make(name, rules))
    link.arrived = Counted(0)
    for number in range(flows):
        link.arrived = Counted(link.arrived)
        link.push(number * 7 % 4, heat=number * 13 % 1009, flow=number, is_assured=number % 3 == 0)
    return link


@pytest.mark.parametrize("name", names())
def test_a_pop_among_many_flows_looks_at_few(name: str) -> None:
    link = crowded(name)
    for _ in range(50):
        link.send()  # what the arrivals left to be done
    Counted.comparisons = 0
    with counting() as lines:
        for _ in range(200):
            link.policy.pop(link.now)
    # in four or five rankings; a heap of n compares twice on each of log2(n) storeys
    assert Counted.comparisons / 200 < 5 * 2 * 2 * log2(FLOWS)
    assert lines.count / 200 < 250


@pytest.mark.parametrize("name", names())
def test_an_arrival_among_many_flows_looks_at_few(name: str) -> None:
    link = crowded(name)
    Counted.comparisons = 0
    with counting() as lines:
        for number in range(200):
            link.push(number % 4, heat=number * 13 % 1009, flow=number)
    assert Counted.comparisons / 200 < 5 * 2 * 2 * log2(FLOWS)
    assert lines.count / 200 < 150


@pytest.mark.parametrize("full", get_args(Full))
@pytest.mark.parametrize("is_one_flow", [False, True])
def test_a_victim_under_lasting_overload_is_found_without_a_search(full: Full, is_one_flow: bool) -> None:
    waiting = 4_000
    link = Link(make("strict", ruled(full)))
    for number in range(waiting):
        link.push(1, flow="one" if is_one_flow else number % (waiting // 2))
    rounds = 1_000
    with counting() as lines:
        for number in range(rounds):
            link.push(1, flow="one" if is_one_flow else number % (waiting // 2))
            assert link.policy.evict() is not None
    assert lines.count / rounds < 250
    places(link.policy)
    assert len(link.policy) == waiting


def test_a_mixed_flow_is_not_searched_for_its_level() -> None:
    link = Link(make("strict"))
    for number in range(2_000):
        link.push(number % 4, flow="mixed")
    with counting() as lines:
        for number in range(500):
            link.push(number % 4, flow="mixed")
            link.policy.pop(link.now)
            link.policy.evict()
    assert lines.count / 500 < 400


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("full", get_args(Full))
def test_nothing_is_kept_of_what_has_left(name: str, full: Full) -> None:
    link = Link(make(name, ruled(full)))
    link.push(0, flow="cold", is_assured=True)
    link.push(0, flow="cool")
    for number in range(2_000):
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
