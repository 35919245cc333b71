"""What a report shows beside verdicts: which windows were left out and why, and the course of the voltage."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.jobs.quality.frames import incidents_frame, readings_frame
from tieline.pipeline.jobs.quality.assessment import assess
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.overview import over_time, with_furthest

pytestmark = pytest.mark.timeout(300)

#: Monday, 9 November 2026, 00:00 UTC, and the Monday after.
MONDAY, END = 1_794_182_400, 1_794_787_200
LIMITS = Limits(every_s=200.0)


def test_what_was_left_out_and_the_course(spark: SparkSession) -> None:
    """An hour of three readings in each window; then a window with a single one, half an hour of silence, one more."""
    times = [*range(0, 3_600, 200), 3_600, *range(6_000, 6_600, 200)]
    readings = readings_frame(spark, [("a", float(MONDAY + at), 230.0 + at / 3_600, 50.0) for at in times])
    brief, longer = ("a", MONDAY + 1_190.0, "dip", 150.0, 20.0), ("a", MONDAY + 1_900.0, "swell", 260.0, 1.0)
    found = assess(readings, incidents_frame(spark, [brief, longer, ("b", 0.0, "dip", 0.0, 1.0)]), LIMITS)
    rows = found.left_out.collect()
    spans = {(row.quantity, row.why, row.begin - MONDAY, row.end - MONDAY, row.windows) for row in rows}
    assert spans == {
        ("voltage", "dip", 600, 1_800, 2),
        ("voltage", "swell", 1_800, 2_400, 1),
        ("voltage", "too few readings", 3_600, 4_200, 1),
        ("", "no readings", 4_200, 6_000, 3),
        ("", "no readings", 6_600, END - MONDAY, 1_008 - 11),
    }
    hours = {row.bucket - MONDAY // 3_600: (row.low, row.high) for row in over_time(found.means, 3_600).collect()}
    assert sorted(hours) == [0, 1]  # the lone reading is no measured mean, but the window after the silence is
    assert 230.0 < hours[0][0] < hours[0][1] < 231.0 < hours[1][0] == hours[1][1]


def test_of_several_phases_the_one_furthest_from_nominal_counts(spark: SparkSession) -> None:
    rows = [(230.0, 225.0, 233.0), (230.0, None, 231.0), (None, float("nan"), None), (240.0, 200.0, 250.0)]
    table = spark.createDataFrame(
        [(number, None, *row) for number, row in enumerate(rows)],
        "number int, voltage double, voltage_l1 double, voltage_l2 double, voltage_l3 double",
    )
    found = {row.number: row.voltage for row in with_furthest(table, Limits()).collect()}
    assert found == {0: 225.0, 1: 231.0, 2: None, 3: 200.0}
