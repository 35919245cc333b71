from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tests.match.merge.points import near
from tieline.match.box import MISSING, Box, above, everything
from tieline.match.merge.budget import MAX_SAMPLE, WINDOW, Measure, Sample, Volume, at_most, within
from tieline.match.merge.union import bounding

BOUNDS = [(0.0, 4.0), (-1.0, 3.0)]


@given(st.lists(near([], 2, 1.0, 2.0, 3.0), min_size=1, max_size=20), boxes(2))
def test_a_sample_counts(rows: list[tuple[float, ...]], box: Box) -> None:
    assert Sample(rows).share(box) == pytest.approx(sum(box.contains(row) for row in rows) / len(rows))


def test_volume_is_what_uniform_events_do() -> None:
    rng = random.Random(4)
    rows = [tuple(rng.uniform(low, high) for low, high in BOUNDS) for _ in range(4_000)]
    volume, sample = Volume(BOUNDS), Sample(rows)
    for _ in range(20):
        ends = [sorted(rng.uniform(-2.0, 5.0) for _ in range(2)) for _ in BOUNDS]
        box = Box(tuple(lo for lo, _ in ends), tuple(hi for _, hi in ends))
        assert volume.share(box) == pytest.approx(sample.share(box), abs=0.04)


@pytest.mark.parametrize("measure", [Volume(BOUNDS), Sample([(float(n % 5), float(n % 4)) for n in range(20)])])
@given(box=boxes(2), cut=st.sampled_from((0.5, 1.0, 2.0)), axis=st.sampled_from((0, 1)))
def test_a_measure_is_additive(measure: Measure, box: Box, cut: float, axis: int) -> None:
    lower = Box(box.lo, tuple(min(hi, cut) if n == axis else hi for n, hi in enumerate(box.hi)))
    upper = Box(tuple(max(lo, above(cut)) if n == axis else lo for n, lo in enumerate(box.lo)), box.hi)
    parts = sum(measure.share(part) for part in (lower, upper) if not part.is_empty)
    assert parts == pytest.approx(measure.share(box), abs=1e-9)


def test_everything_is_all_and_what_is_outside_is_nothing() -> None:
    for measure in (Volume(BOUNDS), Sample([(1.0, 1.0), (2.0, MISSING)])):
        assert measure.share(everything(2)) == 1.0
        assert measure.sides(everything(2)) == [(0.0, 1.0), (0.0, 1.0)]
        assert measure.share(Box((7.0, 0.0), (9.0, 3.0))) == 0.0


def test_a_box_over_no_attribute_has_everything() -> None:
    assert Volume([]).share(Box((), ())) == 1.0
    assert Sample([()]).share(Box((), ())) == 1.0


@pytest.mark.parametrize("size", [0, MAX_SAMPLE + 1])
def test_a_sample_has_a_size(size: int) -> None:
    with pytest.raises(ValueError, match="sample"):
        Sample([(0.0,)] * size)


SQUARE = [(0.0, 4.0), (0.0, 4.0)]
given_boxes = st.lists(boxes(2), min_size=1, max_size=12)


def covered(given: list[Box], merged: list[Box]) -> bool:
    return all(any(box.covers(one) for box in merged) for one in given)


@given(given_boxes, st.integers(1, 6))
def test_no_more_boxes_than_asked_for_and_nothing_lost(given: list[Box], most: int) -> None:
    merged = at_most(given, most, Volume(SQUARE))
    assert 1 <= len(merged.boxes) <= most
    assert covered(given, merged.boxes)


@given(given_boxes, st.lists(near([], 2, 1.0, 2.0, 3.0), min_size=1, max_size=60), st.floats(0.0, 1.0))
def test_false_positives_stay_within_the_budget(given: list[Box], rows: list[tuple[float, ...]], budget: float) -> None:
    merged = within(given, budget, Sample(rows))
    assert covered(given, merged.boxes)
    wanted = sum(any(box.contains(row) for box in given) for row in rows)
    passed = sum(any(box.contains(row) for box in merged.boxes) for row in rows)
    assert (passed - wanted) / len(rows) <= merged.added + 1e-9
    assert merged.added <= budget + 1e-9


@given(given_boxes, st.floats(0.0, 0.5))
def test_a_budget_is_used(given: list[Box], budget: float) -> None:
    measure = Volume(SQUARE)
    merged = within(given, budget, measure)
    pairs = [(a, b) for n, a in enumerate(merged.boxes) for b in merged.boxes[n + 1 :]]
    assert all(merged.added + adds(a, b, measure) > budget - 1e-9 for a, b in pairs), "a pair was affordable"


def adds(a: Box, b: Box, measure: Measure) -> float:
    common = Box(tuple(map(max, a.lo, b.lo)), tuple(map(min, a.hi, b.hi)))
    both = 0.0 if common.is_empty else measure.share(common)
    return measure.share(bounding((a, b))) - measure.share(a) - measure.share(b) + both


@given(given_boxes)
def test_the_first_step_is_the_cheapest(given: list[Box]) -> None:
    distinct = list(dict.fromkeys(given))
    if len(distinct) < 2:
        return
    measure = Volume(SQUARE)
    cheapest = min(adds(a, b, measure) for n, a in enumerate(distinct) for b in distinct[n + 1 :])
    assert at_most(given, len(distinct) - 1, measure).added == pytest.approx(max(0.0, cheapest), abs=1e-9)


def test_two_clusters_stay_two() -> None:
    near_zero = [Box((x, x), (x + 0.5, x + 0.5)) for x in (0.0, 0.1, 0.2)]
    near_four = [Box((x, x), (x + 0.5, x + 0.5)) for x in (3.0, 3.1, 3.2)]
    merged = at_most([*near_zero, *near_four], 2, Volume(SQUARE))
    assert sorted(merged.boxes) == [bounding(near_zero), bounding(near_four)]


def test_points_are_joined_with_the_nearest() -> None:
    # None of them has a volume, so nothing is added whatever is joined.
    for first, second, third in ((0.0, 1.0, 4.0), (0.0, 3.0, 4.0)):
        points = [Box((at, 0.0), (at, 0.0)) for at in (first, second, third)]
        near = points[:2] if second < 2.0 else points[1:]
        assert bounding(near) in at_most(points, 2, Volume(SQUARE)).boxes


def test_a_sample_knows_where_events_are() -> None:
    # By volume the left pair is cheaper; but all events lie between the left ones.
    left = [Box((0.0, 0.0), (1.0, 1.0)), Box((0.0, 2.0), (1.0, 3.0))]
    right = [Box((2.0, 0.0), (4.0, 1.0)), Box((2.0, 2.5), (4.0, 4.0))]
    events = [(0.5, 1.5)] * 5
    by_volume, by_sample = (at_most([*left, *right], 3, measure) for measure in (Volume(SQUARE), Sample(events)))
    assert bounding(left) in by_volume.boxes
    assert by_volume.added == pytest.approx(1 / 16)
    assert bounding(left) not in by_sample.boxes
    assert by_sample.added == 0.0


def test_more_boxes_than_are_compared_with_each_other() -> None:
    rng = random.Random(9)
    given = []
    for _ in range(2 * WINDOW):
        x, y = rng.uniform(0.0, 3.9), rng.uniform(0.0, 3.9)
        given.append(Box((x, y), (x + 0.1, y + 0.1)))
    merged = at_most(given, 16, Volume(SQUARE))
    assert len(merged.boxes) == 16
    assert covered(given, merged.boxes)
    one = at_most(given, 1, Volume(SQUARE))
    assert one.boxes == [bounding(given)]
    assert merged.added < one.added


def test_limits() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        at_most([], 0, Volume(SQUARE))
    assert within([], 1.0, Volume(SQUARE)).boxes == []
    assert at_most([Box((), ()), Box((), ())], 1, Volume([])).boxes == [Box((), ())]
