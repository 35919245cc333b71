from __future__ import annotations

from functools import partial

import pytest

from tests.kits.check_policy import Link, check_policy
from tieline.sched.levels import Rules
from tieline.sched.policies import make, names
from tieline.sched.policy import Policy, WindowState


def test_every_policy_is_known_by_its_name() -> None:
    assert names() == ["edf", "feedback", "fifo", "heat", "strict", "taxonomy"]
    assert [make(name).name for name in names()] == names()
    assert [name for name in names() if make(name).has_floor] == ["edf", "feedback"]


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", names())
def test_it_keeps_what_every_policy_owes(name: str) -> None:
    check_policy(partial(make, name))


# -- an urgent message and its predecessors


def test_an_urgent_message_takes_its_predecessors_along_and_leaves_other_flows_alone() -> None:
    link = Link(make("strict"))
    link.push(0, flow="other")
    link.push(0, flow="mixed")
    link.push(1, flow="mixed")
    link.push(2, flow="third")
    link.push(3, flow="mixed")
    link.push(0, flow="mixed")
    assert link.send_all() == [2, 3, 5, 4, 1, 6]


def test_it_takes_as_many_along_as_it_may_and_one_that_is_out_of_reach_waits_and_is_counted() -> None:
    link = Link(make("strict", Rules(inheritance=2)))
    for _ in range(3):
        link.push(0, flow="mixed")
    link.push(3, flow="mixed")
    assert link.policy.capped == 1
    link.push(1, flow="other")
    link.push(1, flow="other")
    # after the first two others the head leaves in its turn, and then the urgent one is within reach
    assert link.send_all() == [5, 6, 1, 2, 3, 4]


def test_within_reach_nothing_is_counted() -> None:
    link = Link(make("strict", Rules(inheritance=2)))
    link.push(0, flow="mixed")
    link.push(0, flow="mixed")
    link.push(3, flow="mixed")
    link.push(1, flow="other")
    assert link.policy.capped == 0
    assert link.send_all() == [1, 2, 3, 4]


def test_without_inheritance_an_urgent_message_waits_for_its_flow() -> None:
    link = Link(make("strict", Rules(inheritance=0)))
    link.push(0, flow="mixed")
    link.push(3, flow="mixed")
    link.push(1, flow="other")
    assert link.policy.capped == 1
    assert link.send_all() == [3, 1, 2]


def test_a_flow_sinks_again_when_what_lifted_it_is_dropped() -> None:
    link = Link(make("strict", Rules()))
    link.push(0, flow="mixed", is_assured=True)
    link.push(3, flow="mixed")
    link.push(1, flow="other", is_assured=True)
    evicted = link.policy.evict()
    assert evicted is not None and evicted.entry == 2
    assert link.policy.pop(link.now, WindowState.URGENT_ONLY) is None
    assert link.send_all() == [3, 1]


# -- the in-flight window


@pytest.mark.parametrize("name", names())
def test_the_window_stops_only_what_it_must(name: str) -> None:
    link = Link(make(name))
    link.push(1, is_assured=True)
    link.push(3, is_assured=True)
    link.push(0)
    assert link.send(WindowState.CLOSED).entry == 3
    assert link.policy.pop(link.now, WindowState.CLOSED) is None
    assert link.send(WindowState.URGENT_ONLY).entry == 2
    assert link.policy.pop(link.now, WindowState.URGENT_ONLY) is None
    assert link.send().entry == 1


@pytest.mark.parametrize("name", names())
def test_a_message_that_stands_behind_one_dropped_does_not_slip_through_a_closed_window(name: str) -> None:
    link = Link(make(name))
    link.push(1, flow="mixed")
    link.push(1, flow="mixed", is_assured=True)
    assert link.policy.evict() is not None
    assert link.policy.pop(link.now, WindowState.CLOSED) is None
    assert link.send().entry == 2


# -- what could not be sent


@pytest.mark.parametrize("name", names())
def test_what_is_put_back_goes_next_in_its_flow(name: str) -> None:
    link = Link(make(name))
    link.push(1, flow="a", messages=5, size=500)
    link.push(1, flow="a")
    first = link.send()
    assert len(link.policy) == 1
    first.messages, first.size = 3, 300
    link.policy.put_back(first)
    assert len(link.policy) == 4
    assert link.send_all() == [1, 2]


def test_what_was_put_back_is_still_older_than_what_came_later() -> None:
    link = Link(make("heat"))
    link.push(1, flow="cold")
    hot = link.push(1, flow="hot", heat=1)
    link.push(1, flow="cool")
    assert link.send() is hot
    link.policy.put_back(hot)
    evicted = [link.policy.evict() for _ in range(3)]
    assert [waiting and waiting.entry for waiting in evicted] == [1, 2, 3]


def test_a_policy_says_what_it_holds() -> None:
    policy: Policy[int] = make("fifo")
    link = Link(policy)
    link.push(0, flow="a")
    link.push(2, flow="a", messages=4)
    assert repr(policy) == "<Fifo 5 waiting in 1 flows>"
    assert [policy.waits(level) for level in range(4)] == [True, False, True, False]
    oldest = policy.oldest(2)
    assert oldest is not None and oldest.entry == 1, "the flow is served at level 2, and this is its head"
    assert policy.oldest(0) is None
