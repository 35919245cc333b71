"""The worked examples of the Hilbert ring paper (docs/papers/content.md)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.curve.boxes import joined
from tieline.match.box import Box
from tieline.match.curve import cell, key, ranges
from tieline.match.space import Space

ORDER = 3
#: Fig. 4 (c), the row y = 7 first.
GRID = """
21 22 25 26 37 38 41 42
20 23 24 27 36 39 40 43
19 18 29 28 35 34 45 44
16 17 30 31 32 33 46 47
15 12 11 10 53 52 51 48
14 13  8  9 54 55 50 49
 1  2  7  6 57 56 61 62
 0  3  4  5 58 59 60 63
"""

VOLTAGE, FREQUENCY = (190.0, 270.0), (40.0, 64.0)
ISLAND = Space([VOLTAGE, FREQUENCY], ORDER)
#: Range 2 of EN 50160 as a box (voltage, frequency), and range 1, in which the grid is by far most of the time.
RANGE_2 = Box((195.5, 42.5), (253.0, 57.5))
RANGE_1 = Box((207.0, 49.0), (253.0, 51.0))
#: Table V, corrected: conjunctions, frequency for "current", and the third one above range 1, of which a line is left.
ZONE_2 = (
    Box((195.5, 42.5), (207.0, 57.5)),
    Box((195.5, 42.5), (253.0, 49.0)),
    Box((253.0, 42.5), (253.0, 57.5)),
    Box((195.5, 51.0), (253.0, 57.5)),
)
PRINTED_THIRD = Box((230.0, 42.5), (253.0, 57.5))
MERGED_CELLS = [
    *(0, 1, 14, 15, 16, 19, 3, 2, 13, 12, 17, 18, 4, 7, 8, 11, 30, 29, 5, 6, 9, 10, 31, 28),
    *(58, 57, 54, 53, 32, 35, 59, 56, 55, 52, 33, 34, 60, 61, 50, 51, 46, 45),
]


def bounding(boxes: tuple[Box, ...]) -> Box:
    """The paper's merge: the minimum bounding rectangle."""
    return Box(
        tuple(min(values) for values in zip(*(box.lo for box in boxes), strict=True)),
        tuple(max(values) for values in zip(*(box.hi for box in boxes), strict=True)),
    )


def union_keys(space: Space, boxes: tuple[Box, ...]) -> set[int]:
    """The keys of all cells that some box needs."""
    return {place for box in boxes for first, last in space.box_ranges(box) for place in range(first, last + 1)}


def test_the_grid_of_the_third_order_cell_by_cell() -> None:
    rows = [[int(number) for number in line.split()] for line in GRID.strip().splitlines()]
    assert [[key((x, y), ORDER) for x in range(8)] for y in reversed(range(8))] == rows
    assert (cell(0, 2, ORDER), cell(1, 2, ORDER), cell(63, 2, ORDER)) == ((0, 0), (0, 1), (7, 0))


@pytest.mark.parametrize(("order", "walk"), [(1, [0, 1, 2, 3]), (2, [0, 1, 14, 15])])
def test_lower_orders_enter_and_leave_at_the_same_corners(order: int, walk: list[int]) -> None:
    last = (1 << order) - 1
    assert cell(0, 2, order) == (0, 0)
    assert cell((1 << 2 * order) - 1, 2, order) == (last, 0)
    corners = [(0, 0), (0, 1), (1, 1), (1, 0)] if order == 1 else [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert [key(corner, order) for corner in corners] == walk


def test_figure_5_a_subscription_and_three_publications() -> None:
    subscription = ranges((2, 0), (5, 1), ORDER)
    assert subscription == [(4, 7), (56, 59)] == joined([4, 5, 6, 7, 56, 57, 58, 59])
    matches = {place: any(first <= place <= last for first, last in subscription) for place in (4, 57, 55)}
    assert matches == {4: True, 57: True, 55: False}
    assert [cell(place, 2, ORDER) for place in (4, 57, 55)] == [(2, 0), (4, 1), (5, 2)]


def test_figure_6_three_subscriptions_merged() -> None:
    assert ranges((2, 0), (5, 3), ORDER) == [(4, 11), (52, 59)]
    listed = [4, 5, 58, 59, 7, 6, 57, 56, 8, 9, 54, 55, 11, 10, 53, 52]
    assert [key((x, y), ORDER) for y in range(4) for x in range(2, 6)] == listed


def test_the_island_is_merged_into_42_cells() -> None:
    merged = bounding(ZONE_2)
    assert merged == RANGE_2
    assert ISLAND.box_cells(merged) == ((0, 0), (6, 5))
    assert [key((x, y), ORDER) for x in range(7) for y in range(6)] == MERGED_CELLS
    assert len(MERGED_CELLS) == 42
    assert ISLAND.box_ranges(merged) == [(0, 19), (28, 35), (45, 46), (50, 61)] == joined(MERGED_CELLS)


@pytest.mark.parametrize("point", [(230.0, 50.0), (207.1, 49.1), (252.9, 50.9)])
def test_a_point_of_zone_1_is_forwarded_but_not_delivered(point: tuple[float, float]) -> None:
    assert ISLAND.key(point) in MERGED_CELLS
    assert not any(box.contains(point) for box in ZONE_2)


def test_a_point_of_zone_2_is_delivered_and_one_of_zone_3_mostly_not_even_forwarded() -> None:
    assert ISLAND.key((200.0, 50.0)) in MERGED_CELLS
    assert any(box.contains((200.0, 50.0)) for box in ZONE_2)
    assert ISLAND.key((265.0, 50.0)) not in MERGED_CELLS
    assert ISLAND.key((230.0, 60.0)) not in MERGED_CELLS
    # Below 195.5 V, but in the same cell.
    assert ISLAND.key((192.0, 50.0)) in MERGED_CELLS
    assert not any(box.contains((192.0, 50.0)) for box in ZONE_2)


@given(st.floats(*VOLTAGE), st.floats(*FREQUENCY))
def test_the_corrected_table_is_zone_2_and_nothing_else(voltage: float, frequency: float) -> None:
    is_inside_range_1 = 207.0 < voltage < 253.0 and 49.0 < frequency < 51.0
    in_zone_2 = RANGE_2.contains((voltage, frequency)) and not is_inside_range_1
    assert any(box.contains((voltage, frequency)) for box in ZONE_2) == in_zone_2


def test_the_third_subscription_as_printed_covers_half_of_zone_1() -> None:
    assert RANGE_1.contains((230.0, 50.0)) and PRINTED_THIRD.contains((230.0, 50.0))
    share = (RANGE_1.hi[0] - PRINTED_THIRD.lo[0]) / (RANGE_1.hi[0] - RANGE_1.lo[0])
    assert share == 0.5


@pytest.mark.parametrize(
    ("order", "of_merged", "of_union"),
    [(3, 42, 42), (4, 132, 132), (5, 504, 486), (6, 1927, 1783), (7, 7533, 6885), (8, 29785, 26865)],
)
def test_cells_of_the_union_leave_zone_1_out_only_where_cells_are_small(
    order: int, of_merged: int, of_union: int
) -> None:
    space = Space([VOLTAGE, FREQUENCY], order)
    assert len(union_keys(space, (RANGE_2,))) == of_merged
    assert len(union_keys(space, ZONE_2)) == of_union
    assert (space.key((230.0, 50.0)) in union_keys(space, ZONE_2)) == (order < 5)
