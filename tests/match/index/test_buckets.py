from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tieline.match.box import GREATEST, LEAST, MISSING
from tieline.match.index.buckets import BUCKETS, boundaries

ends = st.one_of(st.floats(allow_nan=False), st.integers(0, 9).map(float), st.sampled_from((LEAST, GREATEST)))


@given(st.lists(ends, max_size=300), st.integers(3, BUCKETS))
def test_boundaries_can_be_searched(ends: list[float], buckets: int) -> None:
    bounds = boundaries(ends, buckets)
    assert len(bounds) < buckets and all(a < b for a, b in pairwise(bounds))
    assert bisect_right(bounds, MISSING) > bisect_right(bounds, GREATEST), "what is missing has a bucket of its own"


def test_few_different_values_have_a_bucket_each() -> None:
    values = [float(code) for code in range(40) for _ in range(1 + 200 * (code == 7))]
    bounds = boundaries(values)
    assert len({bisect_right(bounds, value) for value in values}) == 40


def test_a_value_that_occurs_often_leaves_room_for_the_others() -> None:
    values = [0.0] * 10_000 + [float(number) for number in range(1, 1001)]
    bounds = boundaries(values)
    assert len(bounds) == BUCKETS - 1
    sizes = [sum(bisect_right(bounds, value) == bucket for value in values[10_000:]) for bucket in range(BUCKETS)]
    assert max(sizes) < 40, "a thousand values in 62 buckets"


def test_buckets_hold_about_as_many_ends_however_they_are_spread() -> None:
    values = [1.001**number for number in range(6200)]
    bounds = boundaries(values)
    sizes = [sum(bisect_right(bounds, value) == bucket for value in values) for bucket in range(BUCKETS - 1)]
    assert sum(sizes) == len(values) and max(sizes) <= 2 * len(values) / 62
