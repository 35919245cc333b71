"""Incidents of single phases become incidents of the supply: one for what overlaps, dark only where all phases are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.polyphase import of_the_supply

pytestmark = pytest.mark.timeout(300)

INCIDENTS = "node string, at double, kind string, residual double, duration double, phase string"
LINES = "node string, quantity string, phase string"
Row = tuple[str, float, str, float | None, float | None, str | None]

#: Node, begin, kind, what was left, how long, phase.
HAPPENED: list[Row] = [
    # two phases dip and overlap; a third follows when the second is back, on its stroke; another is later
    ("dips", 10.0, "dip", 150.0, 0.3, "L1"),
    ("dips", 10.2, "dip", 120.0, 0.5, "L2"),
    ("dips", 10.7, "dip", 190.0, 0.1, "L3"),
    ("dips", 12.0, "dip", 200.0, 0.1, "L1"),
    # one phase is lost for a minute and a half: a dip of the supply, to nothing
    ("one lost", 10.0, "interruption", 0.0, 90.0, "L2"),
    # all go, one after another, and come back so: dark from the last that goes to the first that comes
    ("all dark", 10.0, "dip", 100.0, 30.0, "L1"),
    ("all dark", 12.0, "interruption", 1.0, 10.0, "L1"),
    ("all dark", 13.0, "interruption", 2.0, 10.0, "L2"),
    ("all dark", 14.0, "interruption", 0.0, 10.0, "L3"),
    # never all at once
    ("in turns", 10.0, "interruption", 0.0, 1.0, "L1"),
    ("in turns", 11.0, "interruption", 0.0, 1.0, "L2"),
    ("in turns", 12.0, "interruption", 0.0, 1.0, "L3"),
    ("swells", 10.0, "swell", 260.0, 1.0, "L1"),
    ("swells", 10.5, "swell", 270.0, 1.0, "L2"),
    ("swells", 10.6, "dip", 170.0, 0.2, "L3"),
    # a meter of two phases
    ("two", 10.0, "interruption", 0.0, 5.0, "L1"),
    ("two", 11.0, "interruption", 0.0, 5.0, "L2"),
    # these stay as they are
    ("whole", 10.0, "dip", 150.0, 0.3, None),
    ("whole", 10.1, "dip", 140.0, 0.3, None),
    ("endless", 10.0, "dip", 150.0, None, "L1"),
]


def test_what_overlaps_is_one_incident(spark: SparkSession) -> None:
    happened = spark.createDataFrame(HAPPENED, INCIDENTS).withColumn(
        "time", sql.timestamp_millis((sql.col("at") * 1000).cast("bigint"))
    )
    lines = spark.createDataFrame([("two", "voltage", "L1"), ("two", "voltage", "L2"), ("dips", "voltage", "")], LINES)
    found = of_the_supply(happened.drop("at"), lines).withColumn("at", sql.unix_millis("time") / 1000)
    rows = {(row.node, row.at, row.kind, row.residual, row.duration, row.phases) for row in found.collect()}
    assert rows == {
        ("dips", 10.0, "dip", 120.0, 0.8, "L1 L2 L3"),
        ("dips", 12.0, "dip", 200.0, 0.1, "L1"),
        ("one lost", 10.0, "dip", 0.0, 90.0, "L2"),
        ("all dark", 14.0, "interruption", 0.0, 8.0, "L1 L2 L3"),
        ("in turns", 10.0, "dip", 0.0, 3.0, "L1 L2 L3"),
        ("swells", 10.0, "swell", 270.0, 1.5, "L1 L2"),
        ("swells", 10.6, "dip", 170.0, 0.2, "L3"),
        ("two", 11.0, "interruption", 0.0, 4.0, "L1 L2"),
        ("whole", 10.0, "dip", 150.0, 0.3, None),
        ("whole", 10.1, "dip", 140.0, 0.3, None),
        ("endless", 10.0, "dip", 150.0, None, "L1"),
    }
