"""Medians, ratios, flags, verdicts and the JSON file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.records import made_up, throughput
from tieline.bench.metrics import METRICS, readable
from tieline.bench.record import FORMAT, Row
from tieline.bench.targets import TARGETS, judge
from tieline.bench.workloads import WORKLOADS


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
    verdicts = {one.target: one.verdict for one in made_up().targets}
    assert verdicts["QoS 0 1:1: throughput, times mosquitto's"] == "met"
    assert verdicts["QoS 0 1:1: CPU per delivered message, times mosquitto's"] == "met"
    assert verdicts["memory of an idle connection"] == "not met"
    assert verdicts["latency p50, times mosquitto's"] == "not measured"
    assert len(verdicts) == len(TARGETS)


def test_a_target_whose_row_failed_is_not_met() -> None:
    record = made_up()
    record.rows[0].status = "failed"
    verdicts = {one.target: one.verdict for one in judge(record)}
    assert verdicts["QoS 0 1:1: throughput, times mosquitto's"] == "not met"


def test_every_target_names_a_workload_and_metrics_that_exist() -> None:
    assert {target.workload for target in TARGETS} <= {workload.name for workload in WORKLOADS}
    assert {metric for target in TARGETS for metric in target.metrics} <= set(METRICS)


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
    assert data["format"] == FORMAT
    assert data["versions"]["mosquitto"] == "2"
    assert data["machine"]["processor"] == "Abacus"
    first = data["rows"][0]
    assert (first["peer"], first["metrics"]["rate"], len(first["repetitions"])) == ("tieline", 400_000, 3)
    met = [one for one in data["targets"] if one["measured"] is not None]
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
