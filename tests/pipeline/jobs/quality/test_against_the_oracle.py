"""The whole job against brute force: many nodes in one table, each with other gaps, faults and incidents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tests.pipeline.jobs.quality import oracle
from tests.pipeline.jobs.quality.frames import incidents_frame, readings_frame
from tests.pipeline.jobs.quality.oracle import Incident, Reading
from tieline.pipeline.jobs.quality.assessment import assess
from tieline.pipeline.jobs.quality.limits import Limits

#: The first test may start a JVM on a busy machine.
pytestmark = pytest.mark.timeout(300)

DAY = 86_400
#: Monday, 19 October 2026, 00:00 UTC: the week that ends with the change of the clocks in Europe.
AUTUMN = 1_792_368_000
ISLAND = Limits(system="island", least_coverage=0.6)


def _slow_meter(chance: random.Random, node: str, days: float) -> list[Reading]:
    """One reading for each 10-minute mean, with a bad spell, a gap, and values that are no numbers."""
    begin = AUTUMN + chance.choice([0, 0, DAY]) - 7200
    bad, least = chance.random() * 0.12, chance.choice([190.0, 196.0, 200.0])
    lost = chance.choice([0.0, 0.02, 0.3])
    rows: list[Reading] = []
    for number in range(int(days * DAY / 600)):
        if chance.random() < lost:
            continue
        volts: float | None = chance.uniform(least, 206.9) if chance.random() < bad else chance.gauss(230, 3)
        if chance.random() < 0.002:
            volts = chance.choice([None, float("nan"), float("inf"), -1.0])
        rows.append((node, begin + number * 600 + chance.choice([0.0, 0.25, 0.5]), volts, chance.gauss(50, 0.3)))
    return rows


def _quick_meter(chance: random.Random, node: str, days: float, step: float) -> list[Reading]:
    """A reading every few seconds, so that 10-second means and windows with too few readings come up."""
    begin = AUTUMN + 5 * DAY
    spread = chance.choice([0.05, 0.4, 0.9])
    silent = begin + chance.random() * days * DAY
    return [
        (node, at, chance.gauss(230, 8), chance.gauss(50, spread))
        for number in range(int(days * DAY / step))
        if not silent < (at := begin + number * step) < silent + 3000 and chance.random() > 0.1
    ]


def _incidents(chance: random.Random, nodes: list[str]) -> list[Incident]:
    return [
        (
            chance.choice(nodes),
            AUTUMN + chance.random() * 9 * DAY,
            chance.choice(["dip", "swell", "interruption", "dip", "noise"]),
            chance.choice([None, 0.0, 10.0, chance.uniform(0, 300)]),
            chance.choice([None, -3.0, float("nan"), 0.15, 45.0, 600.0, 90_000.0, 1e300]),
        )
        for _ in range(60)
    ] + [(nodes[0], float(AUTUMN), "dip", 180.0, 600.0)]


@pytest.fixture(name="rows", scope="module")
def _rows() -> tuple[list[Reading], list[Incident]]:
    chance = random.Random(50160)
    slow = [f"slow-{number}" for number in range(6)]
    quick = [f"quick-{number}" for number in range(2)]
    readings = [row for node in slow for row in _slow_meter(chance, node, days=9)]
    readings += [row for node in quick for row in _quick_meter(chance, node, 1.0, chance.choice([5.0, 7.0]))]
    readings += [("once", float(AUTUMN), 230.0, 50.0)]
    return readings, _incidents(chance, slow[2:] + quick)


@pytest.fixture(name="frames", scope="module")
def _frames(spark: SparkSession, rows: tuple[list[Reading], list[Incident]]) -> Iterator[tuple[DataFrame, DataFrame]]:
    readings = readings_frame(spark, rows[0]).persist()
    yield readings, incidents_frame(spark, rows[1])
    readings.unpersist()


def _counts(verdicts: DataFrame) -> dict[tuple[str, date, str], tuple[object, ...]]:
    columns = ("windows", "measured", "thin", "flagged", "judged", "outside", "verdict")
    rows = verdicts.select("node", sql.to_date("monday"), "clause", *columns).collect()
    return {(node, day, clause): tuple(rest) for node, day, clause, *rest in rows}


def test_verdicts(frames: tuple[DataFrame, DataFrame], rows: tuple[list[Reading], list[Incident]]) -> None:
    expected = oracle.verdicts(*rows, ISLAND)
    assert _counts(assess(*frames, ISLAND).verdicts) == expected
    assert {of[-1] for of in expected.values()} >= {"pass", "fail", "too little data"}


@pytest.mark.parametrize(
    "limits",
    [
        Limits(time_zone="Europe/Madrid", flagged="keep", least_coverage=0.6, least_samples=0.9),
        Limits(time_zone="Asia/Kathmandu", every_s=600.0, nominal_v=231.0, least_coverage=0.6),
    ],
    ids=["clocks change", "odd zone"],
)
def test_verdicts_on_voltage_elsewhere(
    limits: Limits, frames: tuple[DataFrame, DataFrame], rows: tuple[list[Reading], list[Incident]]
) -> None:
    expected = {key: of for key, of in oracle.verdicts(*rows, limits).items() if key[2].startswith("voltage")}
    found = assess(*frames, limits)
    assert _counts(found.verdicts.where("clause like 'voltage%'")) == expected
    assert {of[0] for of in expected.values()} >= ({1008, 1014} if limits.flagged == "keep" else {1008})


def test_means(frames: tuple[DataFrame, DataFrame], rows: tuple[list[Reading], list[Incident]]) -> None:
    assessment = assess(*frames, ISLAND)
    kept = assessment.means.select("quantity", "node", sql.unix_seconds("start"), "value", "samples", "measured")
    everything = kept.collect()
    for quantity in ("voltage", "frequency"):
        expected = oracle.means(rows[0], quantity, ISLAND)
        columns = [row[1:] for row in everything if row.quantity == quantity]
        found = {(node, start): tuple(rest) for node, start, *rest in columns}
        assert found.keys() == expected.keys()
        for key, (value, samples, measured) in expected.items():
            assert found[key][0] == pytest.approx(value, rel=1e-12)
            assert found[key][1:] == (samples, measured)


def test_time_in_zones(frames: tuple[DataFrame, DataFrame], rows: tuple[list[Reading], list[Incident]]) -> None:
    assessment = assess(*frames, ISLAND)
    expected = oracle.zones(rows[0], ISLAND)
    found: dict[tuple[str, date], list[float]] = {
        (row.node, row.day): [row.zone_1_s, row.zone_2_s, row.zone_3_s]
        for row in assessment.zones.withColumn("day", sql.to_date("monday")).collect()
    }
    assert found.keys() == expected.keys()
    for key, seconds in expected.items():
        assert found[key] == pytest.approx(seconds, abs=1e-3)
