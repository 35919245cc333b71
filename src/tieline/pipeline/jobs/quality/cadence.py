"""How often nodes report: the time between readings, which says how many a window should hold."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.limits import Limits

#: Distinct gaps that the median tells apart: meters report at a few different intervals, not at thousands.
_ACCURACY: Final = 1_000


def with_gaps(readings: DataFrame) -> DataFrame:
    """Readings with ``gap_s``: the seconds until the next reading of the same node, null for the last."""
    following = sql.lead("time").over(Window.partitionBy("node").orderBy("time"))
    return readings.withColumn("gap_s", (sql.unix_micros(following) - sql.unix_micros("time")) / 1e6)


def cadence(readings: DataFrame, limits: Limits) -> DataFrame:
    """The seconds between two readings of each node: columns node, every_s, which is null after a single reading."""
    if limits.every_s is not None:
        return readings.select("node").distinct().withColumn("every_s", sql.lit(limits.every_s))
    return (
        with_gaps(readings.select("node", "time"))
        .groupBy("node")
        .agg(sql.percentile_approx(sql.when(sql.col("gap_s") > 0, sql.col("gap_s")), 0.5, _ACCURACY).alias("every_s"))
    )
