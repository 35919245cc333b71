"""What a digest forwards in vain, on the ring paper's own example: the EN 50160 zones of a microgrid in island mode.

A subscriber wants zone 2, the conditions that may last only so long.  Table V of the paper is corrected: its union
signs are conjunctions, its "current" is the frequency, and its third subscription (230 to 253 V at every frequency) is
left out, because it is half of the normal zone; there is no upper voltage band in zone 2.
"""

from __future__ import annotations

import random
from typing import Final

import pytest

from tieline.match.box import Box
from tieline.match.merge.budget import Sample, Volume, within
from tieline.match.merge.digest import BoxDigest, CellDigest, RangeDigest, Routing
from tieline.match.merge.union import bounding, merge
from tieline.match.space import Space

#: Voltage and frequency; the normal zone, 207 to 253 V and 49 to 51 Hz, is left open between them.
ZONE_2: Final = [
    Box((195.5, 42.5), (207.0, 57.5)),
    Box((195.5, 42.5), (253.0, 49.0)),
    Box((195.5, 51.0), (253.0, 57.5)),
]
#: Declared bounds for which the paper's merged region has its 42 cells in the third-order grid.
BOUNDS: Final = [(190.0, 270.0), (40.0, 64.0)]


def events(count: int, seed: int) -> list[tuple[float, float]]:
    """A grid that is nearly always normal: V ~ N(230, 7), f ~ N(50, 0.35), and 2 % disturbances."""
    rng = random.Random(seed)
    return [
        (rng.uniform(190.0, 260.0), rng.uniform(42.0, 58.0))
        if rng.random() < 0.02
        else (rng.gauss(230.0, 7.0), rng.gauss(50.0, 0.35))
        for _ in range(count)
    ]


EVENTS: Final = events(6_000, seed=50160)
WANTED: Final = [any(box.contains(event) for box in ZONE_2) for event in EVENTS]


def routing(order: int) -> Routing:
    return Routing(Space(BOUNDS, order), places=(0, 1))


def forwarded(digest: BoxDigest | CellDigest | RangeDigest) -> float:
    """The share of all events that a digest lets through; it must let through every one that is wanted."""
    passed = [digest.may_want(event) for event in EVENTS]
    assert all(has_passed for has_passed, is_wanted in zip(passed, WANTED, strict=True) if is_wanted)
    return sum(passed) / len(EVENTS)


def test_the_paper_merges_to_42_cells() -> None:
    lo, hi = routing(3).space.box_cells(bounding(ZONE_2))
    assert (lo, hi) == ((0, 0), (6, 5))
    assert routing(3).space.box_ranges(bounding(ZONE_2)) == [(0, 19), (28, 35), (45, 46), (50, 61)]


def test_the_boxes_themselves_forward_nothing_in_vain() -> None:
    share = forwarded(BoxDigest(merge(ZONE_2)))
    assert share == sum(WANTED) / len(EVENTS)
    assert 0.005 < share < 0.05, "zone 2 is rare, or the example shows nothing"


def test_the_bounding_rectangle_forwards_nearly_everything() -> None:
    assert forwarded(BoxDigest([bounding(ZONE_2)])) > 0.9


@pytest.mark.parametrize("order", [3, 4])
def test_cells_as_large_as_the_gap_forward_nearly_everything(order: int) -> None:
    assert forwarded(CellDigest.of(ZONE_2, routing(order))) > 0.9


def test_a_bitmap_of_order_7_forwards_little() -> None:
    bitmap = CellDigest.of(ZONE_2, routing(7))
    assert forwarded(bitmap) < 0.1
    assert bitmap.size < 300


def test_finer_cells_forward_less() -> None:
    shares = [forwarded(CellDigest.of(ZONE_2, routing(order))) for order in (5, 6, 7, 8)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 2 * shares[-1]


def test_intervals_forward_less_the_more_there_are() -> None:
    shares = [forwarded(RangeDigest.of(ZONE_2, routing(6), most)) for most in (1, 8, 64, 256)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] == forwarded(CellDigest.of(ZONE_2, routing(6)))


def test_a_budget_by_volume_is_blind_where_a_sample_sees() -> None:
    # By volume the normal zone is a tenth of the rectangle; by traffic it is nearly everything.
    by_volume = within(ZONE_2, 0.1, Volume(BOUNDS))
    by_sample = within(ZONE_2, 0.1, Sample(events(1_000, seed=1)))
    assert forwarded(BoxDigest(by_volume.boxes)) > 0.9
    assert forwarded(BoxDigest(by_sample.boxes)) < 0.15
