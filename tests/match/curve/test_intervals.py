from __future__ import annotations

from itertools import combinations, pairwise, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.match.curve.boxes import Cells, boxes, brute, holds, is_tidy, joined, size
from tieline.match.curve import Ranges, cap, intervals, ranges


def sides(order: int) -> list[tuple[int, int]]:
    places = range(1 << order)
    return [(least, most) for least in places for most in places if least <= most]


@pytest.mark.parametrize(("dimensions", "order"), [(1, 1), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1), (3, 2)])
def test_every_box_of_a_tiny_grid(dimensions: int, order: int) -> None:
    for box in product(sides(order), repeat=dimensions):
        cells = Cells(tuple(side[0] for side in box), tuple(side[1] for side in box), order)
        assert ranges(cells.lo, cells.hi, order) == brute(cells)


@given(boxes())
def test_ranges_are_the_keys_of_the_cells(box: Cells) -> None:
    found = ranges(box.lo, box.hi, box.order)
    assert found == brute(box)
    assert is_tidy(found)


@pytest.mark.parametrize(("dimensions", "order"), [(1, 63), (2, 31), (6, 10)])
def test_the_whole_grid_is_one_interval_and_a_cell_another(dimensions: int, order: int) -> None:
    end = (1 << order) - 1
    assert ranges([0] * dimensions, [end] * dimensions, order) == [(0, (1 << order * dimensions) - 1)]
    ((first, last),) = ranges([end] * dimensions, [end] * dimensions, order)
    assert first == last


def test_an_axis_in_one_dimension_is_its_own_curve() -> None:
    assert ranges([3], [1 << 40], 50) == [(3, 1 << 40)]


def test_a_box_that_is_none_is_refused() -> None:
    for lo, hi in [([0, 3], [0, 2]), ([0, 0], [0, 8]), ([-1, 0], [0, 0])]:
        for most in (None, 4):
            with pytest.raises(ValueError, match="from 0 to 7 in ascending order"):
                ranges(lo, hi, 3, most)
    with pytest.raises(ValueError, match="at most 63"):
        ranges([0, 0], [1, 1], 32)


key_sets = st.sets(st.integers(0, 80), min_size=1, max_size=30).map(joined)


@given(key_sets, st.integers(1, 8))
@examples(60)
def test_capping_keeps_the_largest_gaps(exact: Ranges, most: int) -> None:
    found = cap(exact, most)
    assert len(found) == min(most, len(exact))
    assert is_tidy(found)
    assert holds(found, exact)
    # No choice of cuts between the intervals holds fewer keys.
    ways = combinations(range(1, len(exact)), len(found) - 1) if len(exact) <= 12 else []
    for way in ways:
        cuts = [0, *way, len(exact)]
        other = [(exact[begin][0], exact[end - 1][1]) for begin, end in pairwise(cuts)]
        assert size(found) <= size(other)


def test_capping_by_example() -> None:
    exact = [(0, 1), (3, 4), (10, 11), (13, 20), (40, 41)]
    assert cap(exact, 5) == exact
    assert cap(exact, 3) == [(0, 4), (10, 20), (40, 41)]
    assert cap(exact, 1) == [(0, 41)]
    assert cap([], 3) == []
    with pytest.raises(ValueError, match="at least 1 can be asked for, not 0"):
        cap(exact, 0)


DEEP = {1: 12, 2: 8, 3: 5, 4: 4}


@given(boxes(), st.integers(1, 20))
@examples(150)
def test_few_intervals_are_as_good_as_the_exact_ones_capped(box: Cells, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "WIDTH", 1 << 20)  # as much work as it takes
        found = ranges(box.lo, box.hi, box.order, most)
    exact = brute(box)
    assert len(found) <= most
    assert is_tidy(found)
    assert holds(found, exact)
    assert size(found) == size(cap(exact, most))


@pytest.mark.parametrize(("dimensions", "order"), [(2, 6), (2, 8), (3, 4)])
@pytest.mark.parametrize("most", [2, 3, 5, 9])
def test_gaps_that_grow_late_are_not_overlooked(
    dimensions: int, order: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only one box in a hundred has a gap that passes another one after it was small, so many are tried.
    monkeypatch.setattr(intervals, "WIDTH", 1 << 20)
    generator = Random(order)
    for _ in range(200):
        sides = [sorted(generator.randrange(1 << order) for _ in range(2)) for _ in range(dimensions)]
        lo, hi = [side[0] for side in sides], [side[1] for side in sides]
        assert size(ranges(lo, hi, order, most)) == size(cap(ranges(lo, hi, order), most))


@given(boxes(DEEP), st.integers(1, 6))
@examples(60)
def test_a_search_cut_short_still_holds_the_box(box: Cells, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "WIDTH", 4)
        found = ranges(box.lo, box.hi, box.order, most)
    exact = ranges(box.lo, box.hi, box.order)
    assert len(found) <= most
    assert is_tidy(found)
    assert holds(found, exact)
    assert size(found) >= size(cap(exact, most))


@pytest.mark.parametrize(("dimensions", "order"), [(2, 31), (3, 21), (4, 15), (6, 10)])
@pytest.mark.parametrize("most", [1, 4])
def test_the_work_is_bounded_whatever_the_surface(
    dimensions: int, order: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0
    corners = intervals.corners

    def count(cube: intervals.Cube) -> object:
        nonlocal opened
        opened += 1
        return corners(cube)

    monkeypatch.setattr(intervals, "corners", count)
    end = (1 << order) - 1
    for lo, hi in [(1, end), (0, end - 1), (1, end - 1), (end // 3, end // 2)]:
        opened = 0
        found = ranges([lo] * dimensions, [hi] * dimensions, order, most)
        assert 1 <= len(found) <= most
        assert opened << dimensions <= intervals.WIDTH * most * order


def test_what_was_cut_short_is_still_close() -> None:
    # All of a grid of 2^30 cells but its lower faces: thousands of intervals, of which 16 are wanted.
    end = (1 << 10) - 1
    assert size(ranges([1] * 3, [end] * 3, 10, 16)) < 1.01 * end**3


def test_at_least_one_interval_must_be_allowed() -> None:
    with pytest.raises(ValueError, match="at least 1 can be asked for, not 0"):
        ranges([0, 0], [1, 1], 3, 0)
