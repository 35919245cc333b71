"""Both ends of a stream: whatever order and however often numbers come, each is taken once and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.overlay.carrier.durable import Begun, Ends, Named, Owed, Owing, Renewed, Settled, Taken, Wanted
from tieline.overlay.carrier.streams import (
    HELD_BYTES,
    HELD_BYTES_TOTAL,
    SHORTEST,
    WINDOW,
    HeldBytes,
    Incoming,
    Outgoing,
    batches,
)
from tieline.overlay.counts import Counts
from tieline.overlay.interests.entries import Entry, Known, Terms


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=40))
def test_numbers_are_taken_once_and_in_order(arrivals: list[tuple[int, int]]) -> None:
    stream = Incoming(0, Counts())
    got: list[bytes] = []
    came: set[int] = set()
    for first, count in arrivals:
        numbers = range(first, first + count)
        came.update(numbers)
        got += stream.add(first, tuple(bytes((number,)) for number in numbers), 0.0)
        stream.check()
    expected = next(number for number in range(1, 20) if number not in came) - 1
    assert got == [bytes((number,)) for number in range(1, expected + 1)]
    assert stream.position == expected


@given(st.lists(st.tuples(st.integers(0, 3 * WINDOW), st.integers(1, 64)), min_size=1, max_size=12))
def test_qos_0_goes_on_behind_whatever_was_lost(batches_: list[tuple[int, int]]) -> None:
    """More than a window had been lost with a link, and nothing of that lane was ever taken again."""
    stream, number = Incoming(0, Counts()), 0
    stream.begin(7, 1)
    got: list[bytes] = []
    sent: list[bytes] = []
    for lost, count in batches_:
        first = number + lost + 1
        payloads = tuple(b"%d" % each for each in range(first, first + count))
        stream.begin(7, first)
        got += stream.leap(first, count, 1.0)
        got += stream.add(first, payloads, 1.0)
        stream.check()
        sent += payloads
        number = first + count - 1
    while stream.held:
        got += stream.skip(2.0)
    assert got == sent
    assert stream.position == number


def test_what_is_sent_again_goes_by_the_strategy_until_it_has_failed_twice_and_after_a_minute_again() -> None:
    """Messages of one stream that take two ways leave holes: once, that made it ignore the plan for ever."""
    stream = Outgoing(Owing())
    for _ in range(9):
        stream.attempt += 1
        stream.moved_on(1.0)
    assert not stream.mark & SHORTEST
    marks = {stream.mark}
    stream.failed(2.0)
    stream.moved_on(3.0)
    assert not stream.mark & SHORTEST
    stream.failed(4.0)
    assert stream.mark & SHORTEST
    stream.attempt += 1
    marks.add(stream.mark)
    assert len(marks) == 2, "copies of another attempt are told apart"
    stream.moved_on(63.9)
    assert stream.mark & SHORTEST
    stream.moved_on(64.0)
    assert not stream.mark & SHORTEST


def test_what_is_missing_is_named_and_can_be_skipped() -> None:
    counts = Counts()
    stream = Incoming(0, counts)
    assert stream.add(3, (b"c",), 1.0) == []
    assert stream.add(6, (b"f",), 2.0) == []
    assert stream.hole_since == 1.0
    assert stream.holes(8) == [(1, 2), (4, 2)]
    assert stream.holes(1) == [(1, 2)]
    assert stream.skip(3.0) == [b"c"]
    assert stream.add(4, (None, None), 3.5) == [b"f"]
    assert (counts.skipped, counts.resequenced, stream.held) == (2, 2, {})


def test_a_message_too_far_ahead_is_left_to_its_origin() -> None:
    counts = Counts()
    stream = Incoming(5, counts)
    assert stream.add(6 + WINDOW, (b"x",), 0.0) == []
    assert (counts.beyond_window, stream.held) == (1, {})


def test_numbers_of_qos_0_begin_anew_with_each_life_of_their_origin() -> None:
    stream = Incoming(0, Counts())
    stream.begin(1, 500)
    assert stream.add(500, (b"a",), 0.0) == [b"a"]
    stream.begin(2, 1)
    assert stream.add(1, (b"b",), 0.0) == [b"b"]


def test_an_origin_sends_within_the_window_and_again_after_a_rewind() -> None:
    owing = Owing()
    owing.add(tuple(str(number).encode() for number in range(WINDOW + 10)))
    stream = Outgoing(owing)
    assert len(list(stream.unsent())) == WINDOW
    stream.sent = 20
    assert list(stream.missing(15, 10, ())) == [(15, (b"14", b"15", b"16", b"17", b"18", b"19"))]
    # but for what the origin itself still has
    assert list(stream.missing(15, 10, {14, 16, 17, 20})) == [(15, (b"14",)), (18, (b"17", b"18"))]
    assert list(stream.missing(15, 3, {15, 16, 17})) == []
    assert owing.settle(18) and not owing.settle(18)
    assert list(stream.missing(15, 5, ())) == [(19, (b"18",))]
    stream.rewind()
    stream.check()
    assert (stream.sent, next(stream.unsent())) == (18, b"18")


def test_a_frame_holds_no_more_than_it_should() -> None:
    assert list(map(len, batches([b"x"] * 130))) == [64, 64, 2]
    assert list(map(len, batches([bytes(60_000), bytes(5_000), bytes(9_000_000), b"x"]))) == [2, 1, 1]
    assert list(batches([])) == []


def test_facts_add_up_to_what_the_next_life_begins_with() -> None:
    ends = Ends()
    ends.apply(
        [Begun(3, 77), Named(2, "b"), Owed(8, (b"a", b"b"), {2: 1, 4: 1}), Owed(8, (b"c",), {2: 3}), Settled(2, 8, 2)]
    )
    one, two, three = Entry("a/#"), Entry("b"), Entry("c")
    ends.apply([Taken(5, 77, 9, 7), Wanted(4, 12, {one: Terms(1), two: Terms(0)}, frozenset())])
    ends.apply([Wanted(4, 13, {two: Terms(2), three: Terms(1)}, frozenset({one}))])
    assert (ends.life, ends.incarnation, ends.names) == (3, 77, {2: "b"})
    assert (ends.owing[2, 8].unsettled, ends.owing[4, 8].unsettled) == ({3: b"c"}, {1: b"a", 2: b"b"})
    assert ends.positions == {(5, 77, 9): 7}
    assert ends.interests == {4: Known(13, {two: Terms(2), three: Terms(1)})}


def test_streams_with_a_broker_that_has_begun_anew_begin_with_one_and_go_on_with_one_that_has_not() -> None:
    ends = Ends()
    ends.apply([Renewed(2, 11, 1), Owed(8, (b"a", b"b", b"c"), {2: 1, 4: 1}), Settled(2, 8, 2), Taken(2, 11, 9, 7)])
    ends.apply([Renewed(2, 12, 5)])
    owing = ends.owing[2, 8]
    assert (owing.base, owing.unsettled, ends.owing[4, 8].base) == (2, {3: b"c"}, 0)
    assert (ends.incarnations, ends.lives) == ({2: (11, 12)}, {2: 5})
    ends.apply([Settled(2, 8, 3), Renewed(2, 11, 6)])
    assert (owing.base, ends.incarnations, ends.positions) == (0, {2: (12, 11)}, {(2, 11, 9): 7})
    ends.apply([Renewed(2, 100 + number, 7 + number) for number in range(7)])
    assert ends.positions == {(2, 11, 9): 7}
    ends.apply([Renewed(2, 200, 20)])
    assert (ends.positions, len(owing.bases)) == ({}, 8)


def test_an_origin_sends_what_is_not_settled_to_a_destination_that_has_begun_anew() -> None:
    owing = Owing()
    owing.renew((11,))
    owing.add((b"a", b"b", b"c"))
    stream = Outgoing(owing)
    stream.sent = 3
    owing.settle(2)
    owing.add((b"d",))  # not committed yet
    stream.renew((11, 12))
    stream.check()
    assert (stream.sent, stream.committed, owing.last, owing.base) == (2, 3, 4, 2)
    assert list(stream.unsent()) == [b"c"]


def test_a_hole_in_front_of_as_much_as_is_kept_can_be_filled() -> None:
    """What was missing was left to its origin too, because so much waited for it: the stream stood still for ever."""
    stream = Incoming(0, Counts())
    large = bytes(HELD_BYTES // 8)
    for number in range(2, 30):
        stream.add(number, (large,), 1.0)
    assert len(stream.held) == 9
    assert len(stream.add(1, (b"first", large), 2.0)) == 10
    assert stream.position == 10


def test_all_streams_together_keep_no_more_than_their_bound() -> None:
    held, large = HeldBytes(), bytes(HELD_BYTES)
    streams = [Incoming(0, Counts(), held) for _ in range(30)]
    for stream in streams:
        stream.add(2, (large,), 1.0)
    assert held.bytes == HELD_BYTES_TOTAL + HELD_BYTES
    for stream in streams:
        stream.forget_early()
    assert held.bytes == 0
