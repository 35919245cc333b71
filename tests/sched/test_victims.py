from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kits.check_policy import Link
from tieline.sched.levels import DEFAULTS, Full, Rules
from tieline.sched.policies import make
from tieline.sched.policy import Policy


def ruled(full: Full) -> Rules:
    low, normal, important, urgent = (replace(traffic, full=full) for traffic in DEFAULTS)
    return Rules(classes=(low, normal, important, urgent))


def evicted(policy: Policy[int], count: int) -> list[int | None]:
    victims = [policy.evict() for _ in range(count)]
    return [None if victim is None else victim.entry for victim in victims]


def test_the_lowest_level_gives_first_and_assured_messages_are_never_dropped() -> None:
    link = Link(make("strict"))
    link.push(2)
    link.push(0, is_assured=True)
    link.push(1)
    link.push(0)
    link.push(3)
    assert evicted(link.policy, 5) == [4, 3, 1, 5, None]
    assert link.send_all() == [2]


def test_oldest() -> None:
    link = Link(make("fifo", ruled("oldest")))
    for flow in "abab":
        link.push(flow=flow)
    assert evicted(link.policy, 3) == [1, 2, 3]


def test_newest() -> None:
    link = Link(make("fifo", ruled("newest")))
    for flow in "abab":
        link.push(flow=flow)
    assert evicted(link.policy, 3) == [4, 3, 2]


def test_coalesce_keeps_the_last_word_of_every_flow() -> None:
    link = Link(make("fifo", ruled("coalesce")))
    for flow in "abbaac":
        link.push(flow=flow)
    assert evicted(link.policy, 3) == [1, 2, 4]
    assert evicted(link.policy, 2) == [3, 5], "and when only last words are left, the oldest of them"
    assert link.send_all() == [6]


def test_coalesce_counts_a_successor_of_any_level_as_long_as_it_waits() -> None:
    link = Link(make("fifo", ruled("coalesce")))
    link.push(1, flow="other")
    link.push(1, flow="mixed")
    link.push(0, flow="mixed")
    assert evicted(link.policy, 1) == [3], "the lowest level gives, superseded or not"
    assert evicted(link.policy, 1) == [1], "what superseded the second is gone, so the first is simply older"
    link.push(2, flow="mixed")
    link.push(1, flow="late")
    assert evicted(link.policy, 1) == [2]


def test_coalesce_remembers_what_came_back() -> None:
    link = Link(make("heat", ruled("coalesce")))
    link.push(flow="cold")
    hot = link.push(flow="hot", heat=1)
    link.push(flow="hot", heat=1)
    assert link.send() is hot
    link.policy.put_back(hot)
    assert evicted(link.policy, 3) == [2, 1, 3]


def test_no_flood_drops_what_has_a_floor_and_no_message_is_worth_an_urgent_one() -> None:
    link = Link(make("feedback"))
    low = link.push(0)
    for _ in range(10):
        link.push(3)
    assert evicted(link.policy, 1) == [low.entry]
    low = link.push(0)
    bulk = [link.push(1).entry for _ in range(10)]
    assert evicted(link.policy, 9) == bulk[:9]
    assert evicted(link.policy, 2) == [low.entry, bulk[9]], "the last one of each, from below"


def test_who_holds_more_than_its_share_of_the_queue_is_not_spared() -> None:
    link = Link(make("feedback"))
    for _ in range(100):
        link.push(1, size=1_000, flow="bulk")
    held = [link.push(0, size=100).entry for _ in range(20)]
    share = link.policy.share(0)
    given_up = evicted(link.policy, 10)
    kept = len(held) - given_up.index(1)
    assert given_up[: given_up.index(1)] == held[: len(held) - kept]
    assert kept * 100 <= share * (100_000 + kept * 100) < (kept + 1) * 100 + share * 100


@pytest.mark.parametrize("name", ["strict", "heat", "edf"])
def test_where_no_share_is_promised_nobody_is_spared(name: str) -> None:
    link = Link(make(name))
    low = link.push(0)
    link.push(1)
    link.push(1)
    assert evicted(link.policy, 1) == [low.entry]
