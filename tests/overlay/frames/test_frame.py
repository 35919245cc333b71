"""Frames come back as they were written, in whatever pieces they arrive; other bytes are refused, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.frames.frame import (
    LARGEST,
    Data,
    Kind,
    Notice,
    Planned,
    Topic,
    frame,
    is_assured,
    lane_of,
    numbered,
    place,
    read_numbered,
    tag_of,
)
from tieline.overlay.frames.hello import VERSIONS, Hello, Refused, put_names, read_hello, read_names
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.interests.entries import read_said
from tieline.overlay.membership import LinkState, read_link_state

BROKERS = st.integers(1, 255)
NUMBERS = st.integers(0, 1 << 40)
DATA = st.builds(
    Data,
    lane=st.builds(lane_of, st.integers(0, 3), st.booleans(), st.integers(0, 7)),
    origin=BROKERS,
    tag=st.integers(0, 65_535),
    destinations=st.dictionaries(BROKERS, NUMBERS, max_size=5),
    payloads=st.lists(st.binary(max_size=50), min_size=1, max_size=5).map(tuple),
    born=st.just(100.0),
    path=st.builds(bytes, st.lists(st.integers(1, 255), max_size=8)),
    attempt=st.integers(0, 9),
)


def _fields(data: Data) -> list[object]:
    fields = [data.lane, data.origin, data.tag, data.destinations, data.payloads, data.path, data.attempt]
    return [*fields, data.planned, data.expires]


@given(DATA, st.builds(Planned, NUMBERS, NUMBERS), st.booleans())
def test_copies_and_what_comes_back_go_by_the_same_plan(data: Data, planned: Planned, expires: bool) -> None:
    data.planned, data.expires = planned, expires
    [(kind, body)] = Inbox().take(b"".join(numbered(1, data, 100.0)))
    again = read_numbered(kind, body, 100.0)[1]
    assert isinstance(again, Data)
    assert _fields(again) == _fields(data)
    assert data.to(data.destinations, b"").planned == data.as_void().planned == planned


@given(DATA, NUMBERS)
def test_data_comes_back_as_it_was_and_older(data: Data, number: int) -> None:
    [(kind, body)] = Inbox().take(b"".join(numbered(number, data, 100.25)))
    again = read_numbered(kind, body, 500.0)
    assert isinstance(again[1], Data)
    assert again[0] == number and _fields(again[1]) == _fields(data)
    assert again[1].born == pytest.approx(499.75)


@given(DATA, st.binary(min_size=256, max_size=256))
def test_brokers_are_those_that_the_sender_has_named(data: Data, ours: bytes) -> None:
    [(kind, body)] = Inbox().take(b"".join(numbered(1, data, 100.0)))
    named = [data.origin, *data.destinations, *data.path]
    if not all(ours[number] for number in named):
        with pytest.raises(BadFrame, match=r"not named|was named"):
            read_numbered(kind, body, 100.0, ours)
        return
    _, again = read_numbered(kind, body, 100.0, ours)
    assert isinstance(again, Data)
    assert (again.origin, again.path) == (ours[data.origin], bytes(ours[number] for number in data.path))
    assert again.destinations == {ours[number]: where for number, where in data.destinations.items()}


def test_one_message_for_one_destination_costs_less_than_two_dozen_bytes() -> None:
    to = {9: place(1000, tag_of(1 << 60))}
    data = Data(lane_of(1, True, 3), 7, tag_of(1 << 63), to, (bytes(94),), born=0.0, path=b"\x07")
    assert sum(map(len, numbered(1000, data, 0.05))) - 94 < 24


def test_a_void_has_the_numbers_and_no_payloads() -> None:
    data = Data(lane_of(0, False, 0), 1, 1, {2: 5, 3: 9}, (b"a", b"b"), born=0.0)
    [(kind, body)] = Inbox().take(b"".join(numbered(1, data.as_void(), 0.0)))
    _, void = read_numbered(kind, body, 0.0)
    assert isinstance(void, Data)
    assert (kind, void.payloads, void.count, void.destinations) == (Kind.VOID, (), 2, {2: 5, 3: 9})


@given(st.lists(DATA, max_size=3), st.integers(1, 7))
def test_pieces_make_no_difference(items: list[Data], size: int) -> None:
    data = b"".join(piece for number, item in enumerate(items) for piece in numbered(number, item, 100.0))
    inbox = Inbox()
    pieces = [found for start in range(0, len(data), size) for found in inbox.take(data[start : start + size])]
    assert pieces == list(Inbox().take(data))


@examples(300)
@given(st.sampled_from([Kind.DATA, Kind.VOID, Kind.NOTICE]), st.binary(max_size=60))
def test_any_body_is_read_or_refused(kind: Kind, body: bytes) -> None:
    for read in (lambda: read_numbered(kind, body, 0.0), lambda: read_hello(body), lambda: read_said(body)):
        try:
            read()
        except (BadFrame, Refused):
            continue


def test_hello_notice_link_state_and_interest_come_back() -> None:
    hello = Hello("north", (1 << 64) - 1, 7, 1 << 40, 1 << 28, {1: "north", 2: "süd"}, {1: 5, 2: 1 << 30})
    [(_, body)] = Inbox().take(hello.bytes)
    assert read_hello(body) == hello
    [(kind, body)] = Inbox().take(b"".join(numbered(4, Notice(Topic.ECHO, 1, 2, b"xyz", b"\x01"), 0.0)))
    number, notice = read_numbered(kind, body, 0.0)
    assert isinstance(notice, Notice)
    assert (number, notice.topic, notice.source, notice.target) == (4, Topic.ECHO, 1, 2)
    assert (notice.body, notice.path) == (b"xyz", b"\x01")
    state = LinkState(4, 2, 9, 1 << 63, {1: 1, 200: 10})
    [(_, body)] = Inbox().take(state.bytes)
    assert read_link_state(body) == state


def test_what_is_refused() -> None:
    with pytest.raises(BadFrame, match="more than"):
        list(Inbox().take(put(Kind.DATA, LARGEST + 1)))
    with pytest.raises(BadFrame, match="99"):
        list(Inbox().take(put(99, 0)))
    with pytest.raises(Refused, match="version"):
        read_hello(put(VERSIONS[1] + 1, VERSIONS[1] + 9))
    with pytest.raises(BadFrame, match="no broker"):
        read_names(Reader(put(1, 256, 1) + b"a"))
    for name in ("", "two words", "x" * 256, "\n"):
        with pytest.raises(BadFrame, match="no name"):
            read_names(Reader(put_names({1: name})))
    with pytest.raises(BadFrame, match="never given up"):
        read_numbered(Kind.VOID, put(1, lane_of(1, True, 0), 1, 1, 0, 0, 0, 1, 2, 1, 3), 0.0)
    assert frame(Kind.PING) == b"\x03\x00"


def test_lanes_tell_level_and_assurance() -> None:
    assert {is_assured(lane_of(level, True, 5)) for level in range(4)} == {True}
    assert len({lane_of(level, sure, 5) for level in range(4) for sure in (False, True)}) == 8
