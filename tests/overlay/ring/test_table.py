"""Arcs of any fingers hold everybody once, and messages come back from their bytes as they were."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.ring.account import Accounting, ArcAccount
from tieline.overlay.ring.events import Event, Sent
from tieline.overlay.ring.identifiers import AROUND, way
from tieline.overlay.ring.merging import Digests
from tieline.overlay.ring.messages import (
    Answer,
    ArcWanted,
    Behind,
    Data,
    Find,
    Found,
    Leaving,
    Member,
    Peer,
    Probe,
    Role,
    Settled,
    Watch,
    decode,
    encode,
    is_publication,
)  # fmt: skip
from tieline.overlay.ring.summary import EVERYTHING, NOTHING, Summary
from tieline.overlay.ring.table import Finger, Table
from tieline.sim.ring.workload import spaces

places = st.integers(0, AROUND - 1)


def _table(here: int, fingers: set[int]) -> Table:
    table = Table(Peer(here, "here"), Accounting(Digests(spaces(3)), 100), 4)
    for number, identifier in enumerate(fingers - {here}):
        table.add(Finger(Peer(identifier, f"f{number}"), identifier, 0.0))
    return table


def _is_in(identifier: int, start: int, end: int) -> bool:
    return way(start, identifier) < (way(start, end) or AROUND)


@given(places, st.sets(places, min_size=1, max_size=8), places, places, st.lists(places, max_size=6))
def test_a_place_is_handed_to_one_finger_or_lies_before_the_successor(
    here: int, fingers: set[int], start: int, end: int, asked: list[int]
) -> None:
    table = _table(here, fingers)
    table.check()
    if not table:
        return
    parts, gaps = list(table.parts(start, end)), list(table.gaps(start, end))
    for identifier in (*asked, *fingers):
        if identifier == here:
            continue
        holders = [part.finger for part in parts if _is_in(identifier, part.start, part.end)]
        in_gap = sum(_is_in(identifier, *gap) for gap in gaps)
        assert len(holders) + in_gap == _is_in(identifier, start, end)
        for finger in holders:
            # the finger stands in front of it, and the next one does not
            assert table.way_to(finger.peer.identifier) <= table.way_to(identifier)
            assert table.way_to(identifier) < (table.way_to(table.end_of(finger)) or AROUND)


@given(places, st.sets(places, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_what_a_lost_finger_told_is_kept_with_the_one_in_front(here: int, fingers: set[int], random: Random) -> None:
    table = _table(here, fingers)
    for finger in table:
        finger.told, finger.until, finger.version = (
            ArcAccount(None, Summary((finger.peer.link,))),
            table.end_of(finger),
            1,
        )
        assert table.is_certain(finger)
    gone = random.choice(list(table))
    first = table.successor == gone.peer
    front = table.remove(gone)
    assert (front is None) == first
    if front is not None:
        assert front.told.covers(gone.told)
        assert not table.is_certain(front)


_PEER, _OTHER = Peer(7, "one"), Peer(AROUND - 1, "tcp://other:1")


@pytest.mark.parametrize(
    "message",
    [
        Find(5, _PEER, 3), Found(AROUND - 1, (_PEER, _OTHER)), Probe(Role.SUCCESSOR, 300), Answer((), (_OTHER,)),
        Behind(), Watch(1, 2), Leaving((_PEER,), ()), Settled(1, 2, 3, 4, 5, 6),
        ArcWanted(9, 8, 7, 1, 1, (Member(_PEER, EVERYTHING),), NOTHING),
        Data(1, 2, 3, 4, 1, 5, 6, 7, (8, 9), (Sent(0, Event("t", b"p", "type", (1.5, -2.0))), Sent(3, Event("u")))),
    ],
)  # fmt: skip
def test_a_message_comes_back_from_its_bytes(message: object) -> None:
    data = encode(message)  # type: ignore[arg-type]  # each of them is one
    assert decode(data) == message
    assert is_publication(data) == isinstance(message, Data)
    for end in range(len(data)):
        with pytest.raises(BadFrame):
            decode(data[:end])


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    try:
        message = decode(data)
    except BadFrame:
        return
    assert decode(encode(message)) == message
