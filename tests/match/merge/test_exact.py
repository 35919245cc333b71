from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tests.match.merge.points import near
from tieline.match.box import ANY, GREATEST, MISSING, Box, above, below, everything
from tieline.match.merge.exact import maximal, merge


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
