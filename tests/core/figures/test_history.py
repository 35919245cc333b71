"""What is remembered of the last hour: bounded, exact for a quarter of an hour, and honest about gaps."""

from __future__ import annotations

import math
import sys
from array import array

from hypothesis import given
from hypothesis import strategies as st

from tieline.core.figures import history
from tieline.core.figures.history import MOST_SERIES, SECONDS, STEP_S, STEPS, History


def listed(column: array[float]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in column]


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 1000)), max_size=60), st.integers(1, 70))
def test_the_last_seconds_are_what_was_added(seconds: list[dict[str, int]], span: int) -> None:
    kept = History()
    for number, values in enumerate(seconds):
        kept.add(float(number), {name: float(value) for name, value in values.items()})
    found = kept.last(span)
    first = max(0, len(seconds) - span)
    assert found.step_s == 1 and found.times == [float(number) for number in range(first, len(seconds))]
    for name, column in found.series.items():
        assert listed(column) == [each.get(name) for each in seconds[first:]]
    assert {name for each in seconds for name in each} == found.series.keys()


def test_the_ring_goes_round_and_the_coarse_one_has_means() -> None:
    kept = History(worst=["p99"])
    for number in range(SECONDS + 25):
        kept.add(float(number), {"rate": float(number), "p99/3": float(number % 10)})
    fine = kept.last(SECONDS)
    assert len(fine.times) == SECONDS and fine.times[0] == 25.0 and fine.series["rate"][-1] == SECONDS + 24
    coarse = kept.last(SECONDS + 1)
    assert coarse.step_s == STEP_S and len(coarse.times) == 91
    assert [*coarse.series["rate"][-3:]] == [894.5, 904.5, 914.5]
    assert [*coarse.series["p99/3"][-3:]] == [9, 9, 9], "of waiting times the worst"


def test_what_is_not_known_is_a_gap_and_counts_in_no_mean() -> None:
    kept = History()
    for number in range(10):
        kept.add(float(number), {"a": 4.0 if number < 5 else math.nan, "b": math.nan})
    assert listed(kept.last(10).series["a"]) == [4.0] * 5 + [None] * 5
    assert listed(kept.last(SECONDS + 1).series["a"]) == [4.0]
    assert "b" not in kept.last(SECONDS + 1).series


def test_forty_names_and_no_more() -> None:
    kept = History()
    names = {f"{number:03}": float(number) for number in range(MOST_SERIES + 5)}
    kept.add(0.0, names)
    kept.add(1.0, names)
    assert kept.lost == 10 and list(kept.last(2).series) == [f"{number:03}" for number in range(MOST_SERIES)]


def test_it_takes_what_it_takes() -> None:
    kept = History()
    names = {f"{number:03}": float(number) for number in range(MOST_SERIES)}
    for number in range(SECONDS + STEPS * STEP_S):
        kept.add(float(number), names if number % 7 else {})
    rings = (kept._fine, kept._coarse)
    size = sum(sys.getsizeof(column) for ring in rings for column in (*ring._columns.values(), ring._times))
    assert size < 220_000, size
    assert len(kept) == SECONDS and len(kept.last(STEPS * STEP_S).times) == STEPS


def test_a_name_that_comes_later_has_a_gap_before() -> None:
    kept = History()
    kept.add(0.0, {"a": 1.0})
    kept.add(1.0, {"b": 2.0})
    found = kept.last(history.SECONDS)
    assert listed(found.series["a"]) == [1.0, None] and listed(found.series["b"]) == [None, 2.0]
