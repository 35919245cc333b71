"""Interests by themselves: who wants a topic, which version is news, and when a subscription is granted."""

from __future__ import annotations

import pytest

from tests.kits.interpreted import replaces_methods
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.interests import entries
from tieline.overlay.interests.entries import MOST_BYTES, Entries, Entry, Form, Known, Said, Terms, entry_of, read_said
from tieline.overlay.interests.interests import GATHER_S, SHRINK_S, Interests

ONE = Terms(1)


def _whole(broker: int, version: int, *filters: str) -> Said:
    return Said(broker, Form.WHOLE, version, 0, {Entry(filter): ONE for filter in filters})


def _heard(data: bytes | None) -> Said:
    assert data is not None
    [(_, body)] = Inbox().take(data)
    return read_said(body)


def test_interests_are_found_by_topic_and_replaced_by_newer_versions() -> None:
    interests = Interests(1, 1, {2: Known(5, {Entry("a/+"): ONE, Entry("a/+", "", "v > 1", 9): ONE})})
    assert interests.wanted_by("a/b") == {2}
    assert interests.learn(_whole(3, 1, "#", "a/+"))
    assert interests.wanted_by("a/b") == {2, 3}
    assert interests.learn(_whole(2, 5)) is None
    assert interests.learn(_whole(2, 6, "c"))
    assert interests.wanted_by("a/b") == {3}
    assert interests.wanted_by("c") == {2, 3}
    assert interests.learn(_whole(3, 2))
    assert interests.wanted_by("a/b") == frozenset()
    assert interests.learn(_whole(1, 99, "mine")) is None


def test_a_step_fits_what_it_was_made_for_and_is_asked_for_whole_otherwise() -> None:
    interests = Interests(1, 1, {})
    step = Said(2, Form.DELTA, 7, 6, {Entry("b"): ONE}, frozenset({Entry("a")}))
    assert interests.lacks(step)
    assert interests.learn(step) is None
    interests.learn(_whole(2, 6, "a", "c"))
    assert not interests.lacks(step)
    assert interests.learn(step) == (2, 7, {Entry("b"): ONE}, frozenset({Entry("a")}))
    assert interests.known[2] == Known(7, {Entry("c"): ONE, Entry("b"): ONE})
    assert interests.learn(step) is None
    # something may have come and gone between 3 and 7 of which such a step would not speak
    assert interests.lacks(Said(2, Form.DELTA, 9, 3, {Entry("d"): ONE}))
    assert not interests.lacks(Said(2, Form.DELTA, 6, 3, {Entry("d"): ONE}))


def test_whoever_watches_hears_what_was_known_and_what_changes() -> None:
    interests = Interests(1, 1, {2: Known(5, {Entry("a"): ONE})})
    heard: list[tuple[int, Entries, frozenset[Entry]]] = []
    interests.follow(lambda *change: heard.append(change))
    interests.learn(Said(2, Form.WHOLE, 6, 0, {Entry("a"): Terms(2), Entry("b"): ONE}))
    interests.learn(_whole(2, 7, "b"))
    assert heard == [
        (2, {Entry("a"): ONE}, frozenset()),
        (2, {Entry("a"): Terms(2), Entry("b"): ONE}, frozenset()),
        (2, {}, frozenset({Entry("a")})),
    ]


@replaces_methods
def test_steps_do_not_add_up_to_more_than_a_broker_may_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_ENTRIES", 2)
    interests = Interests(1, 1, {})
    interests.learn(_whole(2, 1, "a", "b"))
    with pytest.raises(BadFrame, match="3 entries"):
        interests.learn(Said(2, Form.DELTA, 2, 1, {Entry("c"): ONE}))
    assert interests.known[2].version == 1


def test_a_new_life_says_nothing_of_its_interest_before_it_knows_it() -> None:
    interests = Interests(1, 4, {})
    assert interests.newer_than({}) == []
    interests.need(Entry("a"), 1, 10.0, 15.0)
    assert interests.newer_than({}) == []
    assert interests.due == 10.0 + GATHER_S
    interests.say(10.02)
    [data] = interests.newer_than({})
    said = _heard(data)
    assert (said.broker, said.form, dict(said.added)) == (1, Form.WHOLE, {Entry("a"): ONE})
    assert interests.newer_than({1: said.version}) == []


def test_a_life_that_wants_nothing_says_so_after_a_while() -> None:
    interests = Interests(1, 4, {})
    interests.begin(10.0)
    assert interests.due == 10.0 + SHRINK_S
    assert interests.say(11.0) is None
    said = _heard(interests.say(12.0))
    assert (said.form, dict(said.added)) == (Form.WHOLE, {})
    interests.begin(20.0)
    assert interests.due is None


def test_growth_is_said_in_steps_and_soon_and_shrinking_late() -> None:
    interests = Interests(1, 1, {})
    interests.need(Entry("a"), 1, 10.0, 15.0)
    first = _heard(interests.say(10.02))
    interests.release(Entry("a"), 1, 11.0)
    interests.need(Entry("b"), 1, 11.5, 16.0)
    second = _heard(interests.say(11.52))
    assert second == Said(1, Form.DELTA, first.version + 1, first.version, {Entry("b"): ONE})
    third = _heard(interests.say(13.0))
    assert third == Said(1, Form.DELTA, first.version + 2, first.version + 1, {}, frozenset({Entry("a")}))
    assert interests.due is None or interests.due > 13.0


def test_a_covered_filter_needs_no_new_version() -> None:
    interests = Interests(1, 1, {})
    interests.need(Entry("a/#"), 1, 10.0, 15.0)
    interests.say(10.02)
    interests.need(Entry("a/b"), 1, 10.1, 15.1)
    assert interests.say(10.12) is None
    assert interests.missing({2}) == {2}
    interests.echoed(2, interests.versions[1])
    granted, late = interests.grant(frozenset({2}), 11.0)
    assert ([one.number for one in granted], late) == ([1, 2], 0)


def test_what_ends_before_it_was_said_is_granted_all_the_same() -> None:
    interests = Interests(1, 1, {})
    interests.need(Entry("x"), 1, 9.0, 14.0)
    interests.say(9.02)
    interests.need(Entry("a"), 1, 10.0, 15.0)
    interests.release(Entry("a"), 1, 10.01)
    said = _heard(interests.say(10.02))
    interests.echoed(2, said.version)
    granted, late = interests.grant(frozenset({2}), 10.1)
    assert ([one.number for one in granted], late) == ([1, 2], 0)


def test_a_broker_that_says_much_in_many_steps_is_still_refused_at_its_bound() -> None:
    interests = Interests(1, 1, {})
    long = "x" * 60_000
    steps = MOST_BYTES // len(long) + 2
    with pytest.raises(BadFrame, match="bytes"):
        for step in range(1, steps):
            entry = entry_of(f"{long}/{step}")
            assert interests.learn(Said(2, Form.DELTA, step, step - 1, {entry: Terms(1)}))
    known = interests.known[2].version
    gone = frozenset(interests.known[2].entries)
    assert interests.learn(Said(2, Form.DELTA, known + 1, known, {}, gone))
    entry = entry_of(long)
    assert interests.learn(Said(2, Form.DELTA, known + 2, known + 1, {entry: Terms(1)}))
