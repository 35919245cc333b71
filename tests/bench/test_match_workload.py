"""Boxes and events are what the tables say, engines agree with brute force, and wrong answers are noticed."""

from __future__ import annotations

import numpy as np
import pytest

from tieline.bench.match.engines import ENGINES, Engine, absent_engines, present_engines
from tieline.bench.match.index_jobs import NO_BROKER, Search, Update
from tieline.bench.match.workload import CHECKED, Configuration, Mismatch, containing, counted, verify, workload

SOME = [
    Configuration(subscriptions=1_500, attributes=2, selectivity=0.01),
    Configuration(subscriptions=1_500, attributes=6, selectivity=0.01),
    Configuration(subscriptions=1_500, attributes=3, selectivity=0.01, kind="G"),
]


@pytest.mark.parametrize("configuration", SOME, ids=lambda one: one.name)
def test_the_mean_selectivity_is_the_stated_one(configuration: Configuration) -> None:
    made = workload(configuration, 3_000)
    matches = [len(containing(made.lo, made.hi, point)) for point in made.events]
    share = sum(matches) / len(matches) / configuration.subscriptions
    assert share == pytest.approx(configuration.selectivity, rel=0.1)


def test_a_configuration_always_means_the_same_boxes() -> None:
    made = workload(SOME[0], CHECKED)
    workload.cache_clear()
    again = workload(SOME[0], CHECKED)
    assert made is not again
    assert np.array_equal(made.lo, again.lo) and np.array_equal(made.events, again.events)
    assert made.right == again.right


def test_microgrid_boxes_have_every_kind_of_interval_and_at_least_one_with_two_ends() -> None:
    made = workload(SOME[2], 1)
    ends = np.isfinite(made.lo).astype(int) + np.isfinite(made.hi)
    assert {0, 1, 2} == set(ends.flat)
    assert (ends.max(axis=1) == 2).all()


@pytest.mark.parametrize("configuration", SOME, ids=lambda one: one.name)
@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda one: str(one.name))
def test_engines_agree_with_brute_force(engine: type[Engine], configuration: Configuration) -> None:
    if not engine.is_present():
        pytest.skip(f"{engine.name} is not installed")
    made = workload(configuration, CHECKED)
    asked = engine(made.lo, made.hi)
    assert [sorted(asked.match(row)) for row in made.events.tolist()] == list(made.right)
    assert [sorted(answer) for answer in asked.match_batch(made.events)] == list(made.right)
    assert sum(map(len, made.right)) > 0


@pytest.mark.parametrize("answer", [[1], [1, 2, 3], [1, 2, 2], []])
def test_a_wrong_answer_is_a_failure(answer: list[int]) -> None:
    assert verify("somebody", [[2, 1]], [[1, 2]]) == 1
    with pytest.raises(Mismatch, match="somebody found"):
        verify("somebody", [answer], [[1, 2]])


def test_searching_yields_every_number_and_compares() -> None:
    found = Search(configuration=SOME[0], engine="small", passes=2, seconds=0.2).run(NO_BROKER)
    assert found["compared"] == 2 * CHECKED
    assert found["match_p50_us"] <= found["match_p99_us"]
    assert found["match_p50_us"] <= found["first_p50_us"]
    assert found["batch_rate"] > 0
    assert found["matches"] == pytest.approx(15, rel=0.2)


@pytest.mark.parametrize("engine", ["small", "numpy", "rtree"])
def test_an_index_is_right_after_the_changes_that_were_timed(engine: str) -> None:
    if engine not in present_engines():
        pytest.skip(f"{engine} is not installed")
    found = Update(configuration=SOME[0], engine=engine, changes=200).run(NO_BROKER)
    assert found["compared"] == CHECKED
    assert 0 < found["insert_p50_us"] <= found["insert_p99_us"]
    assert ("bytes_index" in found) == (engine != "rtree")


def test_every_engine_is_either_present_or_absent_with_a_command() -> None:
    assert {*present_engines(), *absent_engines()} == set(ENGINES)
    assert all(command.startswith("pip install") for command in absent_engines().values())


def test_numbers_are_written_short() -> None:
    assert [counted(number) for number in (12, 3_000, 3_500, 1_000_000)] == ["12", "3k", "3500", "1M"]
    assert SOME[0].name == "U2-1-1500" and SOME[2].column == "G, 3 attributes, 1 %"
