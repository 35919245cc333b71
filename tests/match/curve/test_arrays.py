from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match.curve import arrays, cell, key


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_arrays_agree_with_single_cells_at_every_order(dimensions: int) -> None:
    generator = np.random.default_rng(dimensions)
    for order in range(1, 63 // dimensions + 1):
        cells = generator.integers(0, (1 << order) - 1, (40, dimensions), endpoint=True)
        cells[0], cells[1] = 0, (1 << order) - 1
        keys = arrays.keys(cells, order)
        assert keys.dtype == np.uint64
        assert keys.tolist() == [key(each, order) for each in cells.tolist()]
        assert arrays.cells(keys, dimensions, order).tolist() == cells.tolist()


@pytest.mark.parametrize(("dimensions", "order"), [(1, 15), (2, 8), (3, 5), (4, 4), (5, 3), (6, 2)])
def test_arrays_fill_the_grid(dimensions: int, order: int) -> None:
    places = np.arange(1 << order * dimensions)
    cells = arrays.cells(places, dimensions, order)
    assert (arrays.keys(cells, order) == places).all()
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=1) == 1).all()


@given(st.integers(1, 6), st.sampled_from([0, 1, 8191, 8192, 8193, 20000]))
@examples(12)
def test_blocks_leave_no_seam(dimensions: int, count: int) -> None:
    places = np.arange(count, dtype=np.uint64) % (1 << 5 * dimensions)
    cells = arrays.cells(places, dimensions, 5)
    assert cells.shape == (count, dimensions)
    assert (arrays.keys(cells, 5) == places).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_any_integers_in_any_layout_will_do(dtype: str) -> None:
    cells = np.array([[x, y, z] for x in range(8) for y in range(8) for z in range(8)], dtype)
    expected = [key(each, 3) for each in cells.tolist()]
    assert arrays.keys(cells, 3).tolist() == expected
    assert arrays.keys(np.asfortranarray(cells), 3).tolist() == expected
    assert arrays.keys(cells[::-2], 3).tolist() == expected[::-2]
    assert arrays.cells(np.arange(100).astype(dtype), 3, 3).tolist() == [list(cell(k, 3, 3)) for k in range(100)]


def test_what_lies_outside_the_grid_is_refused() -> None:
    for outside in ([[8, 0]], [[0, -1]]):
        with pytest.raises(ValueError, match="outside the grid: expected 0 to 7"):
            arrays.keys(np.array(outside), 3)
    with pytest.raises(ValueError, match="outside the grid: expected 0 to 63"):
        arrays.cells(np.array([64]), 2, 3)
    with pytest.raises(ValueError, match="outside the grid"):
        arrays.cells(np.array([1 << 63], np.uint64), 1, 63)
    with pytest.raises(TypeError, match="integers, not float64"):
        arrays.keys(np.zeros((1, 2)), 3)
    with pytest.raises(ValueError, match="points by axes"):
        arrays.keys(np.zeros(2, np.int64), 3)
    with pytest.raises(ValueError, match="one dimension"):
        arrays.cells(np.zeros((2, 2), np.int64), 2, 3)
    with pytest.raises(ValueError, match="at most 63"):
        arrays.keys(np.zeros((1, 4), np.int64), 16)
    with pytest.raises(ValueError, match="1 to 6"):
        arrays.keys(np.zeros((1, 7), np.int64), 1)
