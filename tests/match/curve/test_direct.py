from __future__ import annotations

import numpy as np
import pytest

from tieline.match.curve import arrays, cell
from tieline.match.curve.direct import direct, is_direct

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
