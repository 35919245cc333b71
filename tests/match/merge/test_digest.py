from __future__ import annotations

import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tests.match.merge.points import near
from tieline.match.box import MISSING, Box, everything
from tieline.match.merge.digest import (
    BUDGET,
    MAX_BITS,
    BadDigest,
    BoxDigest,
    CellDigest,
    Digest,
    RangeDigest,
    Routing,
    decode,
    digest,
)
from tieline.match.space import Space

#: The second and the first of three attributes; a cell is half a unit, and the boxes reach beyond the space.
ROUTING = Routing(Space([(0.0, 4.0), (0.0, 2.0)], order=3), places=(1, 0))
DIMENSIONS = 3
CELLS = [n / 4 for n in range(-1, 18)]
#: Room for two boxes, which leaves room for many intervals and, of most bitmaps, for all.
SMALL = 110
#: Room for two intervals.
TINY = 44


def levels(given: list[Box]) -> list[Digest]:
    return [
        BoxDigest(given),
        CellDigest.of(given, ROUTING),
        RangeDigest.of(given, ROUTING, 4),
        RangeDigest.of(given, ROUTING, 1),
        digest(given, ROUTING),
        digest(given, ROUTING, budget=SMALL),
        digest(given, ROUTING, budget=TINY),
    ]


@given(st.lists(boxes(3), max_size=6), st.data())
def test_every_level_is_a_superset_here_and_at_the_other_end(given: list[Box], data: st.DataObject) -> None:
    points = data.draw(st.lists(near(given, 3, *CELLS), min_size=1, max_size=25))
    for made in levels(given):
        received = decode(made.encode(), DIMENSIONS)
        for point in points:
            if any(box.contains(point) for box in given):
                assert made.may_want(point), (made, point)
            assert received.may_want(point) == made.may_want(point)


@given(st.lists(boxes(3), min_size=1, max_size=6), st.data())
def test_each_level_is_as_fine_as_it_says(given: list[Box], data: st.DataObject) -> None:
    exact, bitmap = BoxDigest(given), CellDigest.of(given, ROUTING)
    touched = {(x, y) for box in given for x in _places(box, 0) for y in _places(box, 1)}
    for point in data.draw(st.lists(near(given, 3, *CELLS), min_size=1, max_size=25)):
        assert exact.may_want(point) == any(box.contains(point) for box in given)
        assert bitmap.may_want(point) == (ROUTING.cell(point) in touched)
        # Without a cap the intervals say the same as the bitmap.
        assert RangeDigest.of(given, ROUTING, 64).may_want(point) == bitmap.may_want(point)


def _places(box: Box, axis: int) -> range:
    lo, hi = ROUTING.space.box_cells(ROUTING.project(box))
    return range(lo[axis], hi[axis] + 1)


@given(st.lists(boxes(3), max_size=6))
def test_sizes_are_those_of_the_bytes(given: list[Box]) -> None:
    for made in levels(given):
        assert made.size == len(made.encode())
        assert decode(made.encode(), DIMENSIONS).encode() == made.encode()
    for budget in (BUDGET, SMALL, TINY):
        assert digest(given, ROUTING, budget=budget).size <= budget


def scattered(count: int) -> list[Box]:
    rng = random.Random(count)
    corners = [tuple(rng.uniform(0.0, 2.0) for _ in range(3)) for _ in range(count)]
    return [Box(corner, tuple(end + 0.1 for end in corner)) for corner in corners]


def test_the_ladder() -> None:
    few, many = scattered(2), scattered(40)
    assert repr(digest(few, ROUTING, budget=SMALL)) == "<BoxDigest 2 boxes, 102 bytes>"
    assert isinstance(digest(many, ROUTING, budget=SMALL), CellDigest)
    assert repr(digest(many, ROUTING, budget=TINY)) == "<RangeDigest 2 intervals, 43 bytes>"
    assert repr(CellDigest.of([everything(3)], ROUTING)) == "<CellDigest 64 of 64 cells, 50 bytes>"
    with pytest.raises(ValueError, match="no room"):
        digest(many, ROUTING, budget=40)


def test_boxes_are_merged_before_they_are_counted() -> None:
    halves = [Box((x, 0.0, 0.0), (x + 1.0, 1.0, 1.0)) for x in range(100)]
    assert digest(halves, ROUTING, budget=60).may_want((50.5, 0.5, 0.5))
    assert repr(digest(halves, ROUTING, budget=60)) == "<BoxDigest 1 boxes, 54 bytes>"


def test_nobody_wants_anything() -> None:
    nothing = digest([], ROUTING)
    assert not nothing.may_want((1.0, 1.0, MISSING))
    assert not decode(nothing.encode(), DIMENSIONS).may_want((1.0, 1.0, MISSING))
    for made in levels([]):
        assert not made.may_want((1.0, 1.0, 1.0))


def test_a_space_too_large_for_a_bitmap_is_said_by_intervals() -> None:
    routing = Routing(Space([(0.0, 4.0)] * 3, order=MAX_BITS // 3 + 1), places=(0, 1, 2))
    with pytest.raises(ValueError, match="too large"):
        CellDigest.of([], routing)
    made = digest(scattered(40), routing, budget=200)
    assert isinstance(made, RangeDigest)
    assert all(made.may_want(box.lo) and made.may_want(box.hi) for box in scattered(40))


def test_a_routing_space_has_its_places() -> None:
    with pytest.raises(ValueError, match="as many places"):
        Routing(Space([(0.0, 1.0)], order=3), places=(0, 1))


@given(st.sampled_from([made.encode() for made in levels(scattered(5))]), st.data())
def test_whatever_is_sent_is_a_digest_or_refused(encoded: bytes, data: st.DataObject) -> None:
    broken = bytearray(encoded[: data.draw(st.integers(0, len(encoded)))])
    if broken:
        for at in data.draw(st.lists(st.integers(0, len(broken) - 1), max_size=3)):
            broken[at] = data.draw(st.integers(0, 255))
    try:
        made = decode(bytes(broken), DIMENSIONS)
    except BadDigest:
        return
    assert isinstance(made.may_want((0.5, MISSING, 1e300)), bool)
    assert decode(made.encode(), DIMENSIONS).encode() == made.encode()


def test_every_truncation_is_refused() -> None:
    for made in levels(scattered(5)):
        whole = made.encode()
        # An interval less is a digest too; nothing else that is shorter is.
        shorter = {len(whole) - 2 * n for n in range(len(whole) // 2)} if isinstance(made, RangeDigest) else set()
        for end in set(range(len(whole))) - shorter:
            with pytest.raises(BadDigest):
                decode(whole[:end], DIMENSIONS)


def test_a_digest_of_another_type_is_refused() -> None:
    for made in levels(scattered(5)):
        with pytest.raises(BadDigest, match="not about a type"):
            decode(made.encode(), 1)


def test_a_bitmap_of_another_size_is_refused() -> None:
    bomb = b"C" + ROUTING.encode() + zlib.compress(bytes(10_000_000))
    with pytest.raises(BadDigest, match="another size"):
        decode(bomb, DIMENSIONS)
    short = b"C" + ROUTING.encode() + zlib.compress(bytes(7))
    with pytest.raises(BadDigest, match="another size"):
        decode(short, DIMENSIONS)
    tail = CellDigest.of(scattered(5), ROUTING).encode() + b"!"
    with pytest.raises(BadDigest, match="another size"):
        decode(tail, DIMENSIONS)


def test_bitmaps_and_spaces_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadDigest, match="decompressed"):
        decode(b"C" + ROUTING.encode() + b"not compressed", DIMENSIONS)
    large = Routing(Space([(0.0, 4.0)] * 3, order=MAX_BITS // 3 + 1), places=(0, 1, 2))
    with pytest.raises(BadDigest, match="too large"):
        decode(b"C" + large.encode(), DIMENSIONS)
    for low, high in ((4.0, 4.0), (float("nan"), 4.0), (0.0, float("inf"))):
        impossible = ROUTING.encode()[:4] + struct.pack("<dd", low, high) + ROUTING.encode()[20:]
        with pytest.raises(BadDigest, match="impossible space"):
            decode(b"R" + impossible, DIMENSIONS)


def test_boxes_with_nan_and_intervals_out_of_order_are_refused() -> None:
    nan = Box((float("nan"),) * 3, (1.0,) * 3)
    with pytest.raises(BadDigest, match="without bounds"):
        decode(BoxDigest([nan]).encode(), DIMENSIONS)
    for ranges in ([(5, 4)], [(6, 7), (0, 1)], [(0, 3), (4, 5)], [(60, 64)]):
        with pytest.raises(BadDigest, match="not in order"):
            decode(RangeDigest(ROUTING, ranges).encode(), DIMENSIONS)
