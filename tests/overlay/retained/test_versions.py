"""Versions of retained topics, the clock that they are made by, and digests of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.overlay.frames.clock import HybridClock, clock_of
from tieline.overlay.retained.versions import BUCKETS, Versions, broker_in, clock_in, mark_of, version_of

NAMES = {1: "beta", 2: "alpha", 3: "gamma"}


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b/c"]), st.integers(1, 5), st.integers(1, 3)), max_size=20))
def test_the_newest_wins_in_whatever_order_writes_come(writes: list[tuple[bytes, int, int]]) -> None:
    versions = Versions(NAMES)
    newest: dict[bytes, tuple[int, str]] = {}
    for topic, clock, broker in writes:
        if versions.is_newer(version_of(clock, broker), versions.get(topic)):
            versions.put(topic, version_of(clock, broker))
        newest[topic] = max(newest.get(topic, (0, "")), (clock, NAMES[broker]))
    for topic, (clock, name) in newest.items():
        assert (clock_in(versions.get(topic)), NAMES[broker_in(versions.get(topic))]) == (clock, name)
    assert versions.count == len(newest)


@given(st.dictionaries(st.binary(min_size=1, max_size=9), st.tuples(st.integers(1, 1 << 60), st.integers(1, 3))))
def test_digests_are_those_of_what_is_known_and_not_of_how_it_came(known: dict[bytes, tuple[int, int]]) -> None:
    # the same brokers have other numbers elsewhere
    one, other = Versions(NAMES), Versions({7: "beta", 8: "alpha", 9: "gamma"})
    for topic, (clock, broker) in known.items():
        one.put(topic, version_of(clock + 1, broker))
        assert one.digest(BUCKETS - 1) >= 0
        one.put(topic, version_of(clock, broker))
    for topic, (clock, broker) in reversed(known.items()):
        other.put(topic, version_of(clock, broker + 6))
    digests = [one.digest(number) for number in range(BUCKETS)]
    assert digests == [other.digest(number) for number in range(BUCKETS)]
    for topic, (clock, broker) in known.items():
        other.put(topic, version_of(clock + 1, broker + 6))
        assert digests != [other.digest(number) for number in range(BUCKETS)]
        other.remove(topic)
    assert not any(other.digest(number) for number in range(BUCKETS))
    assert len({mark_of(topic) for topic in known}) == len(known)


def test_a_clock_is_never_behind_what_it_has_heard_of() -> None:
    clock = HybridClock(lambda now: 1_700_000_000.0 + now)
    first = clock.tick(5.0)
    assert first == clock_of(1_700_000_005.0)
    assert clock.tick(4.0) == first + 1
    clock.hear(clock_of(1_700_003_600.0))
    assert clock.tick(6.0) > clock_of(1_700_003_600.0)
    assert clock.tick(7_200.0) == clock_of(1_700_007_200.0)
    clock.hear(1 << 63)
    assert clock.read(7_200.0) == clock_of(1_700_007_200.0)
    assert clock.is_far_ahead(clock_of(1_700_010_000.0), 7_200.0, 60.0)
    assert not clock.is_far_ahead(clock_of(1_700_007_230.0), 7_200.0, 60.0)
