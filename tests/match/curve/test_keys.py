from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.curve.boxes import SMALL_ORDERS
from tieline.match.curve import cell, key

GRIDS = [(dimensions, order) for dimensions, most in SMALL_ORDERS.items() for order in range(1, most + 1)]


def textbook(x: int, y: int, order: int) -> int:
    """The key in two dimensions as the textbooks compute it: by turning the square around, level by level."""
    found = 0
    for level in reversed(range(order)):
        right, up = x >> level & 1, y >> level & 1
        found = found << 2 | (3 * right) ^ up
        if not up:
            if right:
                x, y = ~x, ~y
            x, y = y, x
    return found


@pytest.mark.parametrize(("dimensions", "order"), GRIDS)
def test_every_cell_has_one_key_and_every_key_one_cell(dimensions: int, order: int) -> None:
    cells = [cell(place, dimensions, order) for place in range(1 << order * dimensions)]
    assert len(set(cells)) == len(cells)
    assert [key(each, order) for each in cells] == list(range(len(cells)))


@pytest.mark.parametrize(("dimensions", "order"), GRIDS)
def test_the_curve_goes_from_neighbour_to_neighbour(dimensions: int, order: int) -> None:
    cells = [cell(place, dimensions, order) for place in range(1 << order * dimensions)]
    assert all(sum(abs(a - b) for a, b in zip(left, right, strict=True)) == 1 for left, right in pairwise(cells))


@pytest.mark.parametrize(("dimensions", "order"), GRIDS)
def test_the_curve_begins_at_the_origin_and_ends_at_the_far_end_of_axis_0(dimensions: int, order: int) -> None:
    assert cell(0, dimensions, order) == (0,) * dimensions
    assert cell((1 << order * dimensions) - 1, dimensions, order) == ((1 << order) - 1, *(0,) * (dimensions - 1))


@pytest.mark.parametrize("order", range(1, 7))
def test_two_dimensions_are_the_curve_of_the_textbooks(order: int) -> None:
    places = range(1 << order)
    assert all(key((x, y), order) == textbook(x, y, order) for x in places for y in places)


@pytest.mark.parametrize("dimensions", range(1, 7))
@given(data=st.data())
def test_the_longest_keys_make_the_round_trip(dimensions: int, data: st.DataObject) -> None:
    order = 63 // dimensions
    place = data.draw(st.integers(0, (1 << order * dimensions) - 1))
    assert key(cell(place, dimensions, order), order) == place


def test_what_lies_outside_the_grid_is_refused() -> None:
    for outside in [(8, 0), (0, -1)]:
        with pytest.raises(ValueError, match="outside the grid: expected 0 to 7"):
            key(outside, 3)
    for place in (-1, 64):
        with pytest.raises(ValueError, match="outside the grid: expected 0 to 63"):
            cell(place, 2, 3)
    with pytest.raises(ValueError, match="at most 63"):
        key((0, 0), 32)
    with pytest.raises(ValueError, match="at most 63"):
        cell(0, 2, 32)
