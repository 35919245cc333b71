from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tests.match.merge.points import near
from tieline.match.box import ANY, GREATEST, MISSING, Box, above, below, everything
from tieline.match.merge.union import Augmented, bounding, maximal, merge
from tieline.match.space import Space


def could_be_one(a: Box, b: Box) -> bool:
    """Whether the union of two boxes is a box, from the definition."""
    if a.covers(b) or b.covers(a):
        return True
    differing = [axis for axis in range(len(a.lo)) if (a.lo[axis], a.hi[axis]) != (b.lo[axis], b.hi[axis])]
    if len(differing) != 1:
        return False
    axis = differing[0]
    return max(a.lo[axis], b.lo[axis]) <= above(min(a.hi[axis], b.hi[axis]))


@given(st.lists(boxes(2), max_size=8), st.data())
def test_merging_keeps_exactly_the_points(given: list[Box], data: st.DataObject) -> None:
    merged = merge(given)
    for point in data.draw(st.lists(near(given, 2), max_size=30)):
        assert any(box.contains(point) for box in merged) == any(box.contains(point) for box in given), point


@given(st.lists(boxes(2), max_size=8))
def test_nothing_is_left_to_merge(given: list[Box]) -> None:
    merged = merge(given)
    assert len(merged) <= len(set(given))
    assert not any(could_be_one(a, b) for n, a in enumerate(merged) for b in merged[n + 1 :])
    assert all(any(box.covers(one) for box in merged) or len(merged) > 1 for one in given)


@given(st.lists(boxes(2), max_size=10))
def test_maximal_boxes(given: list[Box]) -> None:
    kept = maximal(given)
    assert len(kept) == len(set(kept))
    assert all(any(box.covers(one) for box in kept) for one in given)
    assert not any(a is not b and a.covers(b) for a in kept for b in kept)


def test_boxes_that_touch_are_joined_and_boxes_with_a_number_between_them_are_not() -> None:
    left, right = Box((0.0, 5.0), (below(2.0), 6.0)), Box((2.0, 5.0), (3.0, 6.0))
    assert merge([left, right]) == [Box((0.0, 5.0), (3.0, 6.0))]
    almost = Box((0.0, 5.0), (below(below(2.0)), 6.0))
    assert sorted(merge([almost, right])) == [almost, right]


def test_four_quarters_are_one() -> None:
    quarters = [Box((x, y), (below(x + 1), below(y + 1))) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    assert merge(quarters) == [Box((0.0, 0.0), (below(2.0), below(2.0)))]


def test_a_box_that_grew_covers_its_neighbour() -> None:
    halves = [Box((0.0, 0.0), (1.0, 9.0)), Box((1.0, 0.0), (2.0, 9.0))]
    assert merge([*halves, Box((0.5, 3.0), (1.5, 4.0))]) == [Box((0.0, 0.0), (2.0, 9.0))]


def test_missing_is_the_neighbour_of_the_greatest_number() -> None:
    numbers, missing = Box((ANY[0],), (GREATEST,)), Box((MISSING,), (MISSING,))
    assert merge([numbers, missing]) == [everything(1)]


def test_little_to_merge() -> None:
    assert merge([]) == []
    assert merge([Box((1.0,), (0.0,))]) == [], "a box without a point"
    assert merge([Box((), ()), Box((), ())]) == [Box((), ())]


@given(st.lists(boxes(3), min_size=1, max_size=6))
def test_the_bounding_box_is_the_least_that_covers_all(given: list[Box]) -> None:
    around = bounding(given)
    assert all(around.covers(box) for box in given)
    for axis in range(3):
        # No side can be moved inward: some box reaches it.
        assert any(box.lo[axis] == around.lo[axis] for box in given)
        assert any(box.hi[axis] == around.hi[axis] for box in given)


@given(st.data())
def test_it_says_when_to_announce(data: st.DataObject) -> None:
    merged = Augmented()
    held: Counter[tuple[str, Box]] = Counter()
    for _ in range(data.draw(st.integers(1, 15))):
        before = {event: merged.get(event) for event in ("a", "b")}
        live = sorted(held.elements())
        is_leaving = data.draw(st.booleans())
        if live and is_leaving:
            event, box = live[data.draw(st.integers(0, len(live) - 1))]
            held[event, box] -= 1
            says = merged.remove(event, box)
        else:
            event, box = data.draw(st.sampled_from("ab")), data.draw(boxes(2))
            held[event, box] += 1
            says = merged.add(event, box)
        for one in ("a", "b"):
            mine = [box for kind, box in held.elements() if kind == one]
            assert merged.get(one) == (bounding(mine) if mine else None)
        assert says == (merged.get(event) != before[event])


def test_a_box_that_nobody_holds_cannot_go() -> None:
    merged = Augmented()
    merged.add("a", Box((0.0,), (1.0,)))
    with pytest.raises(KeyError):
        merged.remove("a", Box((0.0,), (2.0,)))
    with pytest.raises(KeyError):
        merged.remove("b", Box((0.0,), (1.0,)))


def test_figure_6_of_the_ring_paper() -> None:
    """Three subscriptions become the cells 4..11 and 52..59 of the third-order grid, one cell per unit here."""
    space = Space([(0.0, 8.0), (0.0, 8.0)], order=3)
    merged = Augmented()
    assert merged.add("s", Box((2.3, 0.4), (3.6, 1.5)))
    assert merged.add("s", Box((4.1, 1.2), (5.5, 2.8)))
    assert merged.add("s", Box((2.8, 2.5), (4.5, 3.2)))
    around = merged.get("s")
    assert around is not None
    assert space.box_cells(around) == ((2, 0), (5, 3))
    assert space.box_ranges(around) == [(4, 11), (52, 59)]
    assert not merged.add("s", Box((3.0, 1.0), (5.0, 3.0))), "a subscription inside S_aug is not announced"
