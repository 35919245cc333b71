"""Long frames in pieces: whatever they are, they are put together as they were, and nonsense ends the connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.overlay.test_node import Pair
from tieline.overlay.frames.fields import BadFrame, put
from tieline.overlay.frames.frame import Data, Kind, Notice, Numbered, Topic, frame, lane_of, numbered, read_numbered
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.frames.segments import Cut, Gathering, LongInterests, Segment
from tieline.overlay.interests.entries import entry_of

_PLACES = {2: 5 << 16 | 9, 3: 1 << 16}


def _data(level: int, *sizes: int, void: int = 0) -> Data:
    payloads = tuple(bytes([size % 256]) * size for size in sizes)
    return Data(lane_of(level, not void, 2), 1, 7, _PLACES, payloads, born=0.0, path=b"\x01", void=void)


def _pieces(item: Numbered, most: int, now: float = 0.0) -> list[Segment]:
    cut, found = Cut(item), list[Segment]()
    while not found or not found[-1].is_last:
        found.append(cut.next(item.level, most, now))
    assert cut.left == 0
    return found


def _sent(pieces: list[Segment], number: int) -> list[tuple[Kind, bytes]]:
    return list(Inbox().take(b"".join(piece.frame(number) for piece in pieces)))


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=5), st.integers(1, 2_000), st.integers(1, 1 << 40))
def test_pieces_make_the_same_frame_as_it_would_have_been_whole(sizes: list[int], most: int, number: int) -> None:
    for item in (_data(2, *sizes), _data(1, void=40), Notice(Topic.END_ACK, 1, 2, bytes(sizes[0]), b"\x01")):
        gathering = Gathering(1 << 20)
        *before, last = _sent(_pieces(item, most), number)
        for kind, body in before:
            assert kind is Kind.SEGMENT
            assert len(body) <= most + 1
            gathering.add(body, 0.0)
        assert last[0] is Kind.LAST
        kind, body, since = gathering.finish(last[1], 0.0)
        assert [(kind, body)] == list(Inbox().take(b"".join(numbered(number, item, 0.0))))
        assert gathering.held == 0
        assert since == 0.0


def test_pieces_of_two_levels_come_in_turns() -> None:
    gathering, found = Gathering(1 << 20), []
    low, high = _sent(_pieces(_data(0, 900), 300), 8), _sent(_pieces(_data(3, 800), 300), 7)
    for one, other in zip(low, high, strict=True):
        for kind, body in (other, one):
            if kind is Kind.SEGMENT:
                gathering.add(body, 0.0)
            else:
                found.append(read_numbered(*gathering.finish(body, 0.0)))
    assert [(number, item.level, item.size) for number, item in found] == [
        (7, 3, _data(3, 800).size),
        (8, 0, _data(0, 900).size),
    ]


def test_the_time_that_pieces_take_makes_a_message_older() -> None:
    pieces = _sent(_pieces(_data(1, 900), 300, now=3.0), 1)
    gathering = Gathering(1 << 20)
    for second, (_, body) in enumerate(pieces[:-1]):
        gathering.add(body, 100.0 + second)
    _, item = read_numbered(*gathering.finish(pieces[-1][1], 110.0))
    assert isinstance(item, Data)
    assert item.born == 97.0


def test_what_begins_anew_takes_the_place_of_what_had_begun() -> None:
    gathering = Gathering(1 << 20)
    gathering.add(_sent(_pieces(_data(1, 5_000), 300), 1)[0][1], 0.0)
    assert gathering.held == 300
    *before, last = _sent(_pieces(_data(1, 700), 300), 1)
    for _, body in before:
        gathering.add(body, 0.0)
    assert read_numbered(*gathering.finish(last[1], 0.0))[1].size == _data(1, 700).size


@pytest.mark.parametrize(("slot", "text"), [(10, "slot 10"), (2, "did not begin"), (200, "slot 200")])
def test_a_piece_that_can_be_none_is_refused(slot: int, text: str) -> None:
    with pytest.raises(BadFrame, match=text):
        Gathering(1 << 20).add(put(slot) + bytes(10), 0.0)


def test_what_is_too_long_is_refused_before_it_is_whole() -> None:
    gathering = Gathering(1_000)
    gathering.add(put(3) + bytes(900), 0.0)
    with pytest.raises(BadFrame, match="more than 1000 bytes"):
        gathering.add(put(2) + bytes(200), 0.0)


def test_only_what_has_a_number_comes_in_pieces() -> None:
    gathering = Gathering(1_000)
    gathering.add(put(3) + bytes([Kind.HELLO]) + bytes(10), 0.0)
    with pytest.raises(BadFrame, match="kind 1 in pieces"):
        gathering.finish(put(1, 2) + b"x", 0.0)
    with pytest.raises(BadFrame, match="kind 0 in pieces"):
        gathering.finish(put(1, 5), 0.0)


def test_what_a_broker_wants_goes_in_pieces_where_room_is_short_and_data_go_between_them() -> None:
    pair = Pair()
    pair.connect()
    pair.run(0.1)
    pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    pair.run(0.2)
    wants = [(entry_of(f"site/{number}/+"), 0, True) for number in range(800)]
    pair.nodes[1].change(wants, pair.now)
    pair.now += 0.1
    pair.timers[1].fire(pair.now)
    pair.publish(b"between them")
    pair.settle()
    sizes, before, came = [], 0, -1
    while data := pair.nodes[1].fill(pair.handle, 2_000, pair.now):
        sizes.append(len(data))
        kinds = [kind for kind, _ in Inbox().take(data)]
        before += Kind.SEGMENT in kinds
        if Kind.DATA in kinds:
            came = before
        pair.nodes[2].receive(pair.handle, data, pair.now)
    assert max(sizes) < 2_000 + 2 * 1_400
    assert 0 <= came <= 2 < before
    # what is told in one piece is learnt in portions
    pair.run(0.5)
    known = pair.nodes[2].interests.known[pair.nodes[2].number_of("b1")]
    assert len(known.entries) == 800
    assert not pair.nodes[2].counts.bad_frames


def test_an_interest_in_pieces_has_no_link_number_and_nothing_else_goes_without() -> None:
    long = LongInterests()
    long.add(frame(Kind.INTEREST, bytes(3_000)))
    long.add(frame(Kind.INTEREST, b"next"))
    pieces = [*Inbox().take(b"".join(long.next(1_400) for _ in range(4)))]
    assert [kind for kind, _ in pieces] == [Kind.SEGMENT, Kind.SEGMENT, Kind.REST, Kind.REST]
    assert len(long) == 0
    gathering = Gathering(100)
    for _, body in pieces[:2]:
        gathering.add(body, 0.0)
    assert gathering.interest(pieces[2][1], 0.0) == bytes(3_000)
    assert gathering.interest(pieces[3][1], 0.0) == b"next"
    with pytest.raises(BadFrame, match="with a link number"):
        gathering.finish(put(1) + pieces[3][1], 0.0)
    with pytest.raises(BadFrame, match="no INTEREST"):
        gathering.interest(put(3) + b"x", 0.0)
