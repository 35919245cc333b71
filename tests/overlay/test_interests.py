"""Interests by themselves: who wants a topic, which version is news, and when a subscription is granted."""

from __future__ import annotations

from tieline.overlay.frame import Inbox
from tieline.overlay.interests import Interests, read_interest


def test_interests_are_found_by_topic_and_replaced_by_newer_versions() -> None:
    interests = Interests(1, 1, {2: (5, frozenset({"a/+"}))})
    assert interests.wanted_by("a/b") == {2}
    assert interests.learn(3, 1, frozenset({"#", "a/+"}))
    assert interests.wanted_by("a/b") == {2, 3}
    assert not interests.learn(2, 5, frozenset())
    assert interests.learn(2, 6, frozenset({"c"}))
    assert interests.wanted_by("a/b") == {3}
    assert interests.wanted_by("c") == {2, 3}
    assert interests.learn(3, 2, frozenset())
    assert interests.wanted_by("a/b") == frozenset()


def test_a_new_life_says_nothing_of_its_interest_before_it_knows_it() -> None:
    interests = Interests(1, 4, {})
    assert interests.newer_than({}) == []
    interests.need("a", 10.0)
    assert interests.newer_than({}) == []
    interests.say()
    [(_, body)] = [found for data in interests.newer_than({}) for found in Inbox().take(data)]
    broker, version, filters = read_interest(body)
    assert (broker, filters) == (1, frozenset({"a"}))
    assert interests.newer_than({1: version}) == []


def test_a_covered_filter_needs_no_new_version() -> None:
    interests = Interests(1, 1, {})
    interests.need("a/#", 10.0)
    interests.say()
    interests.need("a/b", 10.0)
    assert not interests.is_changed
    assert interests.missing({2}) == {2}
    interests.echoed(2, interests.versions[1])
    granted, late = interests.grant(frozenset({2}), 0.0)
    assert ([one.number for one in granted], late) == ([1, 2], 0)
