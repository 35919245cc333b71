"""Whatever is merged, told and read back: nothing that somebody wants is ever left out."""

from __future__ import annotations

from functools import reduce
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.match.box import Box
from tieline.overlay.frames.fields import BadFrame, Reader
from tieline.overlay.ring.account import ANYBODY, NOBODY, Accounting, ArcAccount, of_one
from tieline.overlay.ring.events import Event, RingSubscription
from tieline.overlay.ring.merging import Digests, Merging, Rectangles, admitted, fewer_filters
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.summary import EVERYTHING, NOTHING, Summary
from tieline.sim.ring.workload import TYPE, spaces
from tieline.wire.topics import matches

SPACES = spaces(4)
TOPICS = ("a", "a/b", "a/b/c", "x/y", "$sys/a")
FILTERS = ("#", "+/#", "a/#", "a/b", "+", "a/+/c", "x/y", "$sys/#", "+/b")
sides = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


@st.composite
def subscriptions(draw: st.DrawFn) -> RingSubscription:
    """A filter, or a box behind one."""
    filter = draw(st.sampled_from(FILTERS))
    if draw(st.booleans()):
        return RingSubscription(filter)
    (a, b), (c, d) = draw(sides), draw(sides)
    return RingSubscription(filter, draw(st.sampled_from((TYPE, "other"))), Box((a, c), (b, d)))


events = st.builds(
    Event,
    topic=st.sampled_from(TOPICS),
    payload=st.just(b""),
    type=st.sampled_from((TYPE, "other", "")),
    point=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
mergings = st.sampled_from((Digests(SPACES, 100), Digests(SPACES, 10_000), Rectangles(SPACES)))


@given(
    mergings, st.lists(subscriptions(), max_size=8), st.lists(subscriptions(), max_size=8), st.lists(events, max_size=6)
)
def test_a_sum_wants_what_its_parts_want(
    merging: Merging, one: list[RingSubscription], other: list[RingSubscription], published: list[Event]
) -> None:
    first, second = merging.of(one), merging.of(other)
    both = merging.joined(first, second)
    back = Summary.read(Reader(both.encode()))
    assert back == both
    for event in published:
        for summary, asked in ((first, one), (both, one + other), (back, one + other)):
            assert summary.wants(event) or not any(subscription.may_want(event) for subscription in asked)
        if first.covers(second):
            assert first.wants(event) or not second.wants(event)
    assert both.covers(NOTHING)
    assert EVERYTHING.covers(both)


@given(st.sets(st.sampled_from(FILTERS)), st.integers(0, 30))
def test_fewer_filters_match_no_less(filters: set[str], budget: int) -> None:
    fewer = fewer_filters(filters, budget)
    for topic in TOPICS:
        if any(matches(filter, topic) for filter in filters):
            assert any(matches(filter, topic) for filter in fewer)


@given(
    st.lists(st.lists(subscriptions(), min_size=1, max_size=3), max_size=5),
    st.integers(0, 400),
    st.lists(events, max_size=5),
)
def test_an_account_wants_what_its_brokers_want(
    brokers: list[list[RingSubscription]], budget: int, published: list[Event]
) -> None:
    merging = Digests(SPACES, 100)
    accounting = Accounting(merging, budget)
    parts = [of_one(Peer(number, f"b{number}"), merging.of(asked)) for number, asked in enumerate(brokers)]
    whole = reduce(accounting.joined, parts, NOBODY)
    for part in parts:
        assert whole.covers(part)
        for event in published:
            assert whole.wants(event) or not part.wants(event)
    few = whole.among(lambda identifier: identifier < 2)
    if whole.members is not None:
        assert few == ArcAccount({peer: summary for peer, summary in whole.members.items() if peer.identifier < 2})
    assert NOBODY.is_empty
    assert ANYBODY.covers(whole)


def test_a_type_that_is_declared_otherwise_is_everything() -> None:
    ours, theirs = Digests(SPACES, 10), Digests(spaces(5), 10)
    random = Random(1)
    boxes = [Box((x := random.random() / 2, x), (x + 0.4, x + 0.4)) for _ in range(3)]
    told = theirs.of([RingSubscription("#", TYPE, box) for box in boxes])
    assert admitted(told, SPACES).is_everything
    assert admitted(Summary((), {"unknown": next(iter(told.types.values()))}), SPACES).is_everything
    fine = ours.of([RingSubscription("#", TYPE, box) for box in boxes])
    assert admitted(fine, SPACES) is fine


@pytest.mark.parametrize("data", [b"", b"\x02\x00\x00", b"\x00\x01\x02#a\x00", b"\x00\x00\x01\x01a\x00\x01X"])
def test_bytes_that_are_no_summary_are_refused(data: bytes) -> None:
    with pytest.raises(BadFrame):
        Summary.read(Reader(data))
