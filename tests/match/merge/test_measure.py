from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tests.match.merge.points import near
from tieline.match.box import MISSING, Box, above, everything
from tieline.match.merge.measure import MAX_SAMPLE, Measure, Sample, Volume

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
