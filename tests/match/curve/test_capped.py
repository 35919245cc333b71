from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.match.curve.boxes import Cells, boxes, brute, holds, is_tidy, size
from tieline.match.curve import cap, capped, descent, ranges

DEEP = {1: 12, 2: 8, 3: 5, 4: 4}


@given(boxes(), st.integers(1, 20))
@examples(150)
def test_few_intervals_are_as_good_as_the_exact_ones_capped(box: Cells, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capped, "WIDTH", 1 << 20)  # as much work as it takes
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
    monkeypatch.setattr(capped, "WIDTH", 1 << 20)
    generator = Random(order)
    for _ in range(200):
        sides = [sorted(generator.randrange(1 << order) for _ in range(2)) for _ in range(dimensions)]
        lo, hi = [side[0] for side in sides], [side[1] for side in sides]
        assert size(ranges(lo, hi, order, most)) == size(cap(ranges(lo, hi, order), most))


@given(boxes(DEEP), st.integers(1, 6))
@examples(60)
def test_a_search_cut_short_still_holds_the_box(box: Cells, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capped, "WIDTH", 4)
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

    def count(cube: descent.Cube) -> object:
        nonlocal opened
        opened += 1
        return descent.corners(cube)

    monkeypatch.setattr(capped, "corners", count)
    end = (1 << order) - 1
    for lo, hi in [(1, end), (0, end - 1), (1, end - 1), (end // 3, end // 2)]:
        opened = 0
        found = ranges([lo] * dimensions, [hi] * dimensions, order, most)
        assert 1 <= len(found) <= most
        assert opened << dimensions <= capped.WIDTH * most * order


def test_what_was_cut_short_is_still_close() -> None:
    # All of a grid of 2^30 cells but its lower faces: thousands of intervals, of which 16 are wanted.
    end = (1 << 10) - 1
    assert size(ranges([1] * 3, [end] * 3, 10, 16)) < 1.01 * end**3


def test_at_least_one_interval_must_be_allowed() -> None:
    with pytest.raises(ValueError, match="at least 1 can be asked for, not 0"):
        ranges([0, 0], [1, 1], 3, 0)
