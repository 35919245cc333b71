from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match import space_arrays
from tieline.match.box import GREATEST, LEAST, MISSING, Box, above, below, everything
from tieline.match.curve import key
from tieline.match.space import Space

#: (dimensions, order): with a direct table and without.
GRIDS = [(1, 4), (1, 52), (2, 3), (2, 8), (2, 9), (3, 5), (3, 21), (6, 10)]

# Small numbers as well as any: near a bound, on an edge of a cell, far outside, infinite.
values = st.one_of(
    st.integers(-20, 20).map(float),
    st.floats(-20, 20),
    st.floats(allow_nan=False),
    st.sampled_from([MISSING, -math.inf, LEAST, GREATEST, -0.0, 5e-324]),
)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[float, float]:
    low, high = sorted(draw(st.tuples(values, values)))
    return (low, high) if low < high and math.isfinite(high - low) else (-1.0, 1.0)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    dimensions, order = draw(st.sampled_from(GRIDS))
    return Space([draw(bounds()) for _ in range(dimensions)], order)


def points(space: Space) -> st.SearchStrategy[tuple[float, ...]]:
    edges = st.sampled_from([edge for pair in space.bounds for edge in pair])
    near = edges.flatmap(lambda edge: st.sampled_from([edge, below(edge), above(edge)]))
    return st.tuples(*[st.one_of(values, near)] * space.dimensions)


@given(st.data())
def test_the_cells_of_a_box_hold_the_cell_of_every_point_in_it(data: st.DataObject) -> None:
    space = data.draw(spaces())
    ends = [sorted(pair) for pair in zip(data.draw(points(space)), data.draw(points(space)), strict=True)]
    box = Box(tuple(pair[0] for pair in ends), tuple(pair[1] for pair in ends))
    point = tuple(
        min(max(value, lo), hi) for value, lo, hi in zip(data.draw(points(space)), box.lo, box.hi, strict=True)
    )
    assert box.contains(point)
    lowest, highest = space.box_cells(box)
    assert all(a <= b <= c for a, b, c in zip(lowest, space.cells(point), highest, strict=True))


@given(st.data())
def test_a_box_s_ranges_hold_the_key_of_every_point_in_it(data: st.DataObject) -> None:
    space = Space([data.draw(bounds()) for _ in range(2)], 5)
    ends = [sorted(pair) for pair in zip(data.draw(points(space)), data.draw(points(space)), strict=True)]
    box = Box(tuple(pair[0] for pair in ends), tuple(pair[1] for pair in ends))
    point = data.draw(points(space))
    for most in (None, 1, 3):
        inside = any(first <= space.key(point) <= last for first, last in space.box_ranges(box, most))
        assert inside or not box.contains(point)


@given(st.data())
def test_the_key_is_that_of_the_cell_with_a_table_and_without(data: st.DataObject) -> None:
    space = data.draw(spaces())
    point = data.draw(points(space))
    assert space.key(point) == key(space.cells(point), space.order)


@given(st.data())
@examples(50)
def test_a_cell_s_box_holds_exactly_its_points(data: st.DataObject) -> None:
    space = data.draw(spaces())
    point = data.draw(points(space))
    box = space.cell_box(space.cells(point))
    assert box.contains(point)
    for corner in (box.lo, box.hi):
        assert space.cells(corner) == space.cells(point)
    for axis in range(space.dimensions):
        if box.lo[axis] > -math.inf:
            beside = [*box.lo[:axis], below(box.lo[axis]), *box.lo[axis + 1 :]]
            assert space.cells(beside)[axis] < space.cells(point)[axis]
        if box.hi[axis] < math.inf:
            beside = [*box.hi[:axis], above(box.hi[axis]), *box.hi[axis + 1 :]]
            assert space.cells(beside)[axis] > space.cells(point)[axis]


def test_a_cell_without_a_number_has_an_empty_box() -> None:
    space = Space([(1.0, above(1.0))], 3)  # two numbers, eight cells
    assert space.cells([1.0]) == (0,)
    assert space.cells([above(1.0)]) == (7,)
    assert space.cell_box((3,)).is_empty
    assert not space.cell_box((0,)).is_empty


@given(st.data())
@examples(50)
def test_arrays_agree_with_single_points(data: st.DataObject) -> None:
    space = data.draw(spaces())
    some = data.draw(st.lists(points(space), min_size=1, max_size=8))
    array = np.array(some)
    assert space_arrays.cells(space, array).tolist() == [list(space.cells(point)) for point in some]
    assert space_arrays.keys(space, array).tolist() == [space.key(point) for point in some]


def test_cells_are_half_open_and_edges_do_not_round() -> None:
    space = Space([(190.0, 270.0), (40.0, 64.0)], 3)
    for place in range(8):
        assert space.cells((190.0 + 10 * place, 40.0 + 3 * place)) == (place, place)
        assert space.cells((below(200.0 + 10 * place), below(43.0 + 3 * place))) == (place, place)
    # 49 parts of 1/49 are not 1 when they are multiplied.
    assert Space([(0.0, 49.0 * 64)], 6).cells([49.0]) == (1,)


def test_beyond_the_bounds_are_the_outermost_cells() -> None:
    space = Space([(0.0, 1.0)], 3)
    for value, place in [(-0.1, 0), (LEAST, 0), (-math.inf, 0), (1.0, 7), (2.0, 7), (GREATEST, 7)]:
        assert space.cells([value]) == (place,)


def test_a_missing_value_is_in_the_last_cell_which_no_condition_excludes() -> None:
    space = Space([(0.0, 1.0), (0.0, 1.0)], 3)
    assert space.cells([MISSING, math.nan]) == (7, 7)
    assert space_arrays.cells(space, np.array([[MISSING, math.nan]])).tolist() == [[7, 7]]
    assert space.box_cells(everything(2)) == ((0, 0), (7, 7))
    assert space.box_ranges(everything(2)) == [(0, 63)]


def test_an_empty_box_has_no_ranges() -> None:
    space = Space([(0.0, 1.0)], 3)
    assert space.box_ranges(Box((0.51,), (0.5,))) == []
    assert space.box_ranges(Box((0.9,), (0.1,)), 2) == []


def test_a_space_is_declared_with_bounds_that_make_sense() -> None:
    for low, high in [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (LEAST, GREATEST)]:
        with pytest.raises(ValueError, match="two numbers, the lower one first"):
            Space([(low, high)], 3)
    with pytest.raises(ValueError, match="1 to 6 dimensions"):
        Space([], 3)
    with pytest.raises(ValueError, match="at most 63"):
        Space([(0.0, 1.0)] * 4, 16)
    with pytest.raises(ValueError, match=r"at most 52 bits.*not 53"):
        Space([(0.0, 1.0)], 53)
    assert repr(Space([(0, 1)], 3)) == "Space([(0.0, 1.0)], order=3)"


def test_what_does_not_fit_the_space_is_refused() -> None:
    space = Space([(0.0, 1.0), (0.0, 1.0)], 3)
    with pytest.raises(ValueError, match="argument 2"):
        space.cells([0.5])
    for cell in [(0,), (0, 8), (-1, 0)]:
        with pytest.raises(ValueError, match="2 places from 0 to 7"):
            space.cell_box(cell)
    with pytest.raises(ValueError, match=r"n by 2, not \(3, 1\)"):
        space_arrays.cells(space, np.zeros((3, 1)))


def test_numpy_stays_out_unless_it_is_asked_for() -> None:
    program = """
import sys
from tieline.match.box import everything
from tieline.match.space import Space
Space([(0, 1)] * 2, 3).key((0.5, 0.5)), Space([(0, 1)] * 2, 9).key((0.5, 0.5))
Space([(0, 1)] * 2, 3).box_ranges(everything(2), 4)
print("numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
