"""What a peer may: filters in common against brute force, parcels without what may not pass, who speaks for whom."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.core.message import Bundle, Message, Origin, publish_bytes
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data, Notice, Topic, lane_of
from tieline.overlay.frames.parcel import Run, Writing, only_allowed, read_parcel, write_run
from tieline.overlay.interests.entries import Entry
from tieline.overlay.may import Fence, May, Right, common
from tieline.overlay.membership import LinkState

_TOPICS = ["/".join(levels) for depth in (1, 2, 3, 4) for levels in product(("a", "b", ""), repeat=depth)]
_TOPICS = [topic for topic in (*_TOPICS, "$a", "$a/b", "$b/a/b") if topic]
_FILTERS = st.builds(
    lambda levels, tail: "/".join((*levels, *tail)),
    st.lists(st.sampled_from(("a", "b", "+", "", "$a")), min_size=1, max_size=3),
    st.sampled_from(((), ("#",))),
).filter(bool)


def _matches(filter_: str, topic: str) -> bool:
    if topic[0] == "$" and filter_[:1] in ("+", "#"):
        return False
    ours, theirs = filter_.split("/"), topic.split("/")
    for depth, level in enumerate(ours):
        if level == "#":
            return True
        if depth == len(theirs) or level not in ("+", theirs[depth]):
            return False
    return len(ours) == len(theirs)


def _matches_parent(filter_: str, topic: str) -> bool:
    """With the level above # [MQTT 4.7.1.2]."""
    return _matches(filter_, topic) or (filter_.endswith("/#") and _matches(filter_[:-2], topic))


@given(st.one_of(_FILTERS, st.just("#")), st.one_of(_FILTERS, st.just("#")))
@examples(400)
def test_two_filters_have_in_common_what_one_filter_says(one: str, other: str) -> None:
    both = common(one, other)
    wanted = [topic for topic in _TOPICS if _matches_parent(one, topic) and _matches_parent(other, topic)]
    assert [topic for topic in _TOPICS if both is not None and _matches_parent(both, topic)] == wanted
    assert [topic for topic in _TOPICS if Right((one,)).has(topic.encode())] == [
        topic for topic in _TOPICS if _matches_parent(one, topic)
    ]


def test_an_entry_is_narrowed_with_its_condition_and_once() -> None:
    may = May(("read grid/#", "all grid/+/x", "write cmd/+"))
    entry = Entry("#", "", "v < 1", 7)
    assert may.read.narrow(entry) == (Entry("grid/#", "", "v < 1", 7), Entry("grid/+/x", "", "v < 1", 7))
    assert may.read.narrow(Entry("cmd/1")) == ()
    assert may.write.filters == ("grid/+/x", "cmd/+")
    assert Right(("a/b", "a/+")).narrow(Entry("a/b")) == (Entry("a/b"),)


_MESSAGES = st.lists(
    st.tuples(st.sampled_from((b"a", b"b", b"c/d")), st.binary(max_size=5), st.booleans(), st.booleans()),
    min_size=1,
    max_size=8,
)


@given(_MESSAGES, st.frozensets(st.sampled_from((b"a", b"b", b"c/d"))))
@examples(200)
def test_a_parcel_keeps_what_may_pass_as_it_was(
    said: list[tuple[bytes, bytes, bool, bool]], allowed: frozenset[bytes]
) -> None:
    origin = Origin("me")
    messages = [
        Message(topic, payload, 1, False, b"\x01\x01" if is_long else b"", 60.0 if is_brief else None, origin, 2, 50.0)
        for topic, payload, is_long, is_brief in said
    ]
    writing = Writing(messages[0])
    for message in messages:
        writing.add(message, 50.0)
    parcel = writing.done()
    kept, removed = only_allowed(parcel, allowed.__contains__)
    left = [message for message in messages if message.topic in allowed]
    assert removed.total() == len(messages) - len(left)
    assert (kept is parcel) == (not removed)
    assert bool(kept) == bool(left)
    if left:
        got = read_parcel(kept, Origin, 50.0)
        assert isinstance(got, list)
        assert [(each.topic, each.payload, each.properties, each.expires) for each in got] == [
            (each.topic, each.payload, each.properties, each.expires) for each in left
        ]


def test_a_run_keeps_the_packets_that_may_pass() -> None:
    packets = [publish_bytes(0x30, topic, 0, None, b"1") for topic in (b"a", b"b", b"a", b"c")]
    run = write_run(Bundle(b"".join(packets), 4, 10, 4, Origin("me"), 1, 0.0, 0))
    kept, removed = only_allowed(run, lambda topic: topic == b"a")
    got = read_parcel(kept, Origin, 0.0)
    assert isinstance(got, Run)
    assert got.packets == packets[0] + packets[2]
    assert removed == {b"b": 1, b"c": 1}
    assert only_allowed(run, lambda topic: False)[0] == b""
    assert only_allowed(run, lambda topic: True)[0] is run


@given(st.binary(max_size=40))
@examples(200)
def test_what_cannot_be_understood_does_not_pass(parcel: bytes) -> None:
    kept, removed = only_allowed(parcel, lambda topic: False)
    assert kept in (b"", parcel)
    assert kept == b"" or not removed


@pytest.fixture
def fence() -> Fence:
    return Fence(2, May(("read r/#", "write w/#")), Counts(), lambda topic, messages, level: None)


def test_a_peer_with_rights_speaks_for_itself_alone(fence: Fence) -> None:
    assert fence.states(LinkState(3, 1, 1, 1, {1: 1}), 1) is None
    own = fence.states(LinkState(2, 1, 1, 1, {1: 1, 3: 1}), 1)
    assert own is not None
    assert own.neighbours == {1: 1}
    assert fence.comes(Notice(Topic.ECHO, 3, 1, b"", b"\x02")) is None
    assert fence.comes(Notice(Topic.ECHO, 2, 1, b"", b"\x02")) is not None
    # nothing is carried through it, so it has no link that others have to wait for
    assert fence.comes(Notice(Topic.CREDIT, 2, 1, b"", b"\x02")) is None


def test_the_places_of_what_may_not_pass_are_empty(fence: Fence) -> None:
    parcels = []
    for topic in (b"r/1", b"secret", b"r/2"):
        writing = Writing(message := Message(topic, b"", 1, origin=Origin("x")))
        writing.add(message, 0.0)
        parcels.append(writing.done())
    data = Data(lane_of(1, True, 0), 1, 0, {2: 1}, tuple(parcels), born=0.0)
    passed = fence.leaves(data)
    assert isinstance(passed, Data)
    assert passed.payloads == (parcels[0], b"", parcels[2])
    assert (passed.count, data.payloads) == (3, tuple(parcels))
