from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tieline.pipeline.dedupe.numbered import Intervals

NUMBERS = st.integers(0, 40) | st.integers(2**63 - 5, 2**63 - 1)


@given(st.lists(st.sets(NUMBERS, max_size=12), max_size=8), st.lists(NUMBERS))
def test_intervals_are_a_set(portions: Any, asked: Any) -> None:
    intervals = Intervals()
    model: set[int] = set()
    for portion in portions:
        fresh = sorted(portion - model)
        intervals.add(np.array(fresh, np.int64))
        model |= portion
        spans = list(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True))
        assert all(start <= end for start, end in spans)
        assert all(end + 1 < start for (_, end), (start, _) in pairwise(spans))
    assert intervals.has(np.array(asked, np.int64)).tolist() == [number in model for number in asked]


def test_a_publisher_that_counts_needs_one_interval() -> None:
    intervals = Intervals()
    for begin in range(0, 1_000, 100):
        intervals.add(np.arange(begin, begin + 100))
    assert len(intervals) == 1


def test_the_lowest_are_forgotten_first() -> None:
    intervals = Intervals()
    intervals.add(np.array([0, 2, 4, 6], np.int64))
    assert intervals.forget_lowest(3) == 1
    assert intervals.has(np.array([0, 2, 6], np.int64)).tolist() == [False, True, True]
    assert intervals.forget_lowest(3) == 0
