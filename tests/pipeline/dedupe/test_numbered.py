"""None"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tieline.pipeline.dedupe.numbered import BEFORE, NEW, Intervals, Numbered

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


RECORDS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "r"]), st.integers(0, 9)), max_size=30)


def asked(numbered: Numbered, batch: list[tuple[str, str, int]]) -> list[int]:
    publishers, runs, numbers = ([each[place] for each in batch] for place in range(3))
    found = numbered.firsts(pa.array(publishers, pa.string()), pa.array(runs, pa.string()), np.array(numbers, np.int64))
    return [int(each) for each in found]


def expected(seen: set[tuple[str, str, int]], batch: list[tuple[str, str, int]]) -> list[int]:
    """The obvious way: one record after the other."""
    first: dict[tuple[str, str, int], int] = {}
    found = []
    for place, record in enumerate(batch):
        found.append(BEFORE if record in seen else first.get(record, NEW))
        first.setdefault(record, place)
    seen.update(first)
    return found


@given(st.lists(RECORDS, max_size=6), st.booleans())
def test_repeats_are_found_exactly_across_batches_and_restarts(batches: Any, restarts: bool) -> None:
    numbered = Numbered()
    seen: set[tuple[str, str, int]] = set()
    for batch in batches:
        assert asked(numbered, batch) == expected(seen, batch)
        if restarts:
            kept, numbered = numbered.table(), Numbered()
            numbered.restore(kept)
            assert numbered.table() == kept


@given(st.lists(RECORDS, max_size=6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 5))
def test_bounds_only_forget(batches: Any, most_intervals: int, most_runs: int, most_total: int) -> None:
    numbered = Numbered(most_intervals=most_intervals, most_runs=most_runs, most_total=most_total)
    seen: set[tuple[str, str, int]] = set()
    for batch in batches:
        found = asked(numbered, batch)
        for mine, exact in zip(found, expected(seen, batch), strict=True):
            assert mine == exact or mine != BEFORE
            assert exact != NEW or mine == NEW
        kept = numbered.table().to_pylist()
        assert len({(row["publisher"], row["run"]) for row in kept}) <= most_runs
        assert len(kept) <= min(most_runs * most_intervals, most_total)


def test_the_publisher_that_was_silent_longest_is_forgotten() -> None:
    numbered = Numbered(most_runs=2)
    asked(numbered, [("a", "", 1), ("b", "", 1)])
    asked(numbered, [("a", "", 2)])
    asked(numbered, [("c", "", 1)])
    assert asked(numbered, [("a", "", 1), ("b", "", 1), ("c", "", 1)]) == [BEFORE, NEW, BEFORE]
    assert numbered.forgotten > 0
