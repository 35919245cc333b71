"""The rules of a verdict at their edges: exactly 95 %, one window outside, gaps that cannot help."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.verdicts import FAIL, PASS, TOO_LITTLE, judge

pytestmark = pytest.mark.timeout(300)

#: Monday, 9 November 2026, 00:00 UTC.
MONDAY = 1_794_182_400
WINDOWS = 1008

#: Name: windows judged, between the ranges, outside both, flagged, thin; the verdicts on 95 % and on 100 %.
CASES = {
    "perfect": (1008, 0, 0, 0, 0, PASS, PASS),
    "just enough": (1000, 50, 0, 0, 8, PASS, PASS),  # exactly 95 % of what was judged
    "one too many": (1000, 51, 0, 0, 8, FAIL, PASS),
    "one outside both": (1008, 0, 1, 0, 0, PASS, FAIL),
    "little, and good": (900, 0, 0, 0, 0, TOO_LITTLE, TOO_LITTLE),
    "enough, and good": (908, 0, 0, 0, 0, PASS, PASS),
    "little, and bad for sure": (60, 51, 0, 0, 0, FAIL, TOO_LITTLE),
    "little, and bad perhaps": (60, 50, 0, 0, 0, TOO_LITTLE, TOO_LITTLE),
    "one reading, outside both": (1, 0, 1, 0, 0, TOO_LITTLE, FAIL),
    "silent": (0, 0, 0, 0, 0, TOO_LITTLE, TOO_LITTLE),
    "dark all week": (1008, 0, 1008, 1008, 0, TOO_LITTLE, TOO_LITTLE),
    "thin all week": (0, 0, 0, 0, 1008, TOO_LITTLE, TOO_LITTLE),
}


def test_every_rule(spark: SparkSession) -> None:
    rows: list[tuple[str, int, float, bool, bool]] = []
    for name, (judged, between, outside, flagged, thin, _, _) in CASES.items():
        for number in range(judged + thin):
            value = 190.0 if number < outside else 200.0 if number < outside + between else 230.0
            rows.append((name, MONDAY + number * 600, value, number < judged, number < flagged))
    means = spark.createDataFrame(rows, "node string, start long, value double, measured boolean, flagged boolean")
    means = means.withColumns(
        {"start": sql.timestamp_seconds("start"), "quantity": sql.lit("voltage"), "phase": sql.lit("")}
    )
    expected = spark.createDataFrame(
        [(name, "voltage", "") for name in CASES], "node string, quantity string, phase string"
    )
    expected = expected.withColumn("monday", sql.timestamp_seconds(sql.lit(MONDAY)))
    verdicts = judge(means, expected, ["voltage"], Limits()).collect()
    found = {(row.node, row.clause): row.verdict for row in verdicts}
    assert found == {
        (name, f"voltage-{share}"): verdict
        for name, case in CASES.items()
        for share, verdict in ((95, case[-2]), (100, case[-1]))
    }
    assert {row.windows for row in verdicts} == {WINDOWS}
    assert all(row.share is None for row in verdicts if row.judged == 0)
