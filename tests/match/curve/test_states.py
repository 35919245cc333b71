from __future__ import annotations

import pytest

from tieline.match.curve.states import check, states


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
