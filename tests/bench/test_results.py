"""Medians, ratios, flags, verdicts and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.records import made_up, throughput
from tieline.bench.broker.cases import make_plan
from tieline.bench.broker.suite import GOALS, SUITE, is_quick
from tieline.bench.broker.workloads import WORKLOADS
from tieline.bench.brokers import Mosquitto, Tieline
from tieline.bench.metrics import METRICS, readable
from tieline.bench.suite.results import Row


def test_a_row_shows_the_median_of_its_repetitions() -> None:
    assert made_up().value("qos0-1to1", "tieline", "rate") == 400_000


def test_a_row_that_failed_has_no_numbers() -> None:
    row = made_up().row("qos0-1to1", "nats")
    assert row is not None
    assert row.metrics == {}


def test_ratios_need_both_sides() -> None:
    record = made_up()
    assert record.ratio("qos0-1to1", "rate", "tieline", "mosquitto") == 4.0
    assert record.ratio("qos0-1to1", "rate", "nats", "mosquitto") is None
    assert record.ratio("idle", "bytes_connection", "tieline", "mosquitto") is None


def test_verdicts_are_computed() -> None:
    verdicts = {one.text: one.verdict for one in made_up().goals}
    assert verdicts["QoS 0 1:1: throughput, times mosquitto's"] == "met"
    assert verdicts["QoS 0 1:1: CPU per delivered message, times mosquitto's"] == "met"
    assert verdicts["memory of an idle connection"] == "not met"
    assert verdicts["latency p50, times mosquitto's"] == "not measured"
    assert len(verdicts) == len(GOALS)


def test_a_target_whose_row_failed_is_not_met() -> None:
    record = made_up()
    record.rows[0].status = "failed"
    verdicts = {one.text: one.verdict for one in (goal.judge(record) for goal in GOALS)}
    assert verdicts["QoS 0 1:1: throughput, times mosquitto's"] == "not met"


def test_every_target_names_a_workload_and_metrics_that_exist() -> None:
    known = {workload.name: workload.group for workload in WORKLOADS}
    assert {workload for goal in GOALS for workload, _ in (*goal.rows, *goal.against)} <= known.keys()
    assert set(known.values()) == SUITE.tables.keys()
    for table in SUITE.tables.values():
        assert {*table.columns, *(name for names in table.instead.values() for name in names)} <= set(METRICS)


def test_a_quick_run_measures_every_goal(need: Callable[[str], str], tmp_path: Path) -> None:
    need("openssl")
    workloads = [one for one in WORKLOADS if is_quick(one)]
    assert len(workloads) < len(WORKLOADS)
    plan = make_plan([Tieline(), Mosquitto()], workloads, quick=True, disk=Path.cwd())
    assert [goal.text for goal in GOALS if goal.objection(plan.reasons(), {})] == []
    assert sum(case.seconds for case in plan.cases) < plan.budget_s


def test_too_many_repetitions_are_told_before_the_run() -> None:
    plan = make_plan([Tieline(), Mosquitto()], WORKLOADS, repeat=50, disk=Path.cwd())
    forecast = SUITE.forecast(plan)
    assert any("1,200 s of this run" in why for why in forecast)
    assert "latency p50, times mosquitto's" in [text for texts in forecast.values() for text in texts]


@pytest.mark.parametrize(
    ("generator", "broker", "others", "flags"),
    [
        (0.95, 0.5, 0.0, ["the load generator was the bottleneck"]),
        (0.95, 0.95, 0.0, []),
        (0.2, 0.99, 0.5, ["the machine was busy with something else"]),
    ],
)
def test_rows_that_measure_something_else_are_flagged(
    generator: float, broker: float, others: float, flags: list[str]
) -> None:
    metrics = throughput(1, 1) | {"generator_cores": generator, "broker_cores": broker, "other_cores": others}
    assert Row(workload="w", title="t", group="throughput", peer="p", repetitions=[metrics]).flags == flags


def test_the_file_holds_rows_versions_machine_and_targets(tmp_path: Path) -> None:
    path = tmp_path / "broker.json"
    made_up().write(path)
    data = json.loads(path.read_text())
    assert data["format"] == "tieline-bench-broker-2"
    assert data["versions"]["mosquitto"] == "2"
    assert data["machine"]["processor"] == "Abacus"
    first = data["rows"][0]
    assert (first["peer"], first["metrics"]["rate"], len(first["repetitions"])) == ("tieline", 400_000, 3)
    met = [one for one in data["goals"] if one["measured"] is not None]
    assert len(met) == 3
    assert {one["verdict"] for one in met} == {"met", "not met"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_234_567, "/s", "1.23 M/s"),
        (123_456, "/s", "123 k/s"),
        (12_345, "/s", "12.3 k/s"),
        (999, "/s", "999 /s"),
        (19_876, "B", "19.9 kB"),
        (0.1367, "µs", "0.137 µs"),
        (0.01367, "µs", "0.0137 µs"),
        (64.04, "µs", "64.0 µs"),
    ],
)
def test_numbers_are_readable(value: float, unit: str, text: str) -> None:
    assert readable(value, unit) == text
