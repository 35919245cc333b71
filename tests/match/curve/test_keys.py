from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.curve.boxes import SMALL_ORDERS
from tieline.match.curve import arrays, cell, key
from tieline.match.curve.keys import check, direct, is_direct, states


@pytest.mark.parametrize(("dimensions", "count"), [(1, 1), (2, 4), (3, 12), (4, 32), (5, 80), (6, 192)])
def test_number_of_states(dimensions: int, count: int) -> None:
    tables = states(dimensions)
    assert len(tables.digits) == len(tables.corners) == count << dimensions


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_a_row_is_a_permutation_and_the_tables_are_each_other_s_reverse(dimensions: int) -> None:
    tables = states(dimensions)
    mask = (1 << dimensions) - 1
    for row in range(0, len(tables.digits), 1 << dimensions):
        assert {tables.digits[row | corner] & mask for corner in range(1 << dimensions)} == set(range(1 << dimensions))
        for corner in range(1 << dimensions):
            entry = tables.digits[row | corner]
            assert tables.corners[row | entry & mask] == entry & ~mask | corner


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_the_first_state_goes_in_the_order_of_the_gray_code(dimensions: int) -> None:
    mask = (1 << dimensions) - 1
    walk = [entry & mask for entry in states(dimensions).corners[: mask + 1]]
    assert walk == [step ^ step >> 1 for step in range(mask + 1)]


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_levels_of_zeros_lead_back_to_the_first_state(dimensions: int) -> None:
    tables = states(dimensions)
    mask = (1 << dimensions) - 1
    for zeros in range(3 * dimensions):
        row = tables.starts[zeros % dimensions]
        for _ in range(zeros):
            entry = tables.digits[row]
            assert entry & mask == 0
            row = entry
        assert row == 0


def test_a_grid_that_the_curve_cannot_fill_is_refused_by_name() -> None:
    check(1, 63)
    check(6, 10)
    with pytest.raises(ValueError, match=r"1 to 6 dimensions, not 7"):
        check(7, 1)
    with pytest.raises(ValueError, match=r"1 to 6 dimensions, not 0"):
        check(0, 1)
    with pytest.raises(ValueError, match=r"at least 1, not 0"):
        check(2, 0)
    with pytest.raises(ValueError, match=r"order \* dimensions bits, at most 63: not 16 \* 4 = 64"):
        check(4, 16)
    with pytest.raises(ValueError, match="dimensions"):
        states(7)


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


ROUTING = [(1, 16), (2, 1), (2, 3), (2, 8), (3, 5), (4, 4), (5, 3), (6, 2)]


@pytest.mark.parametrize(("dimensions", "order"), ROUTING)
def test_a_table_is_the_curve(dimensions: int, order: int) -> None:
    tables = direct(dimensions, order)
    places = np.arange(1 << order * dimensions)
    shifts = np.arange(dimensions - 1, -1, -1) * order
    numbers = (arrays.cells(places, dimensions, order) << shifts).sum(axis=1)
    assert list(tables.cells) == numbers.tolist()
    assert [tables.keys[number] for number in numbers.tolist()] == places.tolist()


def test_a_cell_is_numbered_with_axis_0_highest() -> None:
    x, y = cell(57, 2, 3)
    assert direct(2, 3).keys[x << 3 | y] == 57


def test_tables_are_built_once_and_small() -> None:
    assert direct(2, 8) is direct(2, 8)
    assert isinstance(direct(2, 4).keys, bytes)
    assert memoryview(direct(2, 8).keys).nbytes == 128 * 1024  # type: ignore[arg-type]


def test_no_table_beyond_sixteen_bits() -> None:
    assert is_direct(2, 8) and is_direct(3, 5) and is_direct(4, 4)
    assert not is_direct(2, 9) and not is_direct(3, 6) and not is_direct(4, 5)
    with pytest.raises(ValueError, match=r"at most 16 bits: not 9 \* 2 = 18"):
        direct(2, 9)
