"""Means of windows: 10 minutes of voltage, 10 seconds of frequency, each with the number of readings behind it.

The same functions serve a table and a stream. A stream must have a watermark on ``time``: readings that are late by
less are counted in the window they belong to, and a window is given out once the watermark has passed its end. Readings
that come later still do not change a mean that was given out; they are in the tables, where a batch run counts them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.limits import WINDOW_S, Limits, Quantity

#: Distinct gaps that the median tells apart: meters report at a few different intervals, not at thousands.
_ACCURACY: Final = 1_000


def with_gaps(readings: DataFrame) -> DataFrame:
    """Readings with ``gap_s``: the seconds until the next reading of the same node, null for the last."""
    following = sql.lead("time").over(Window.partitionBy("node").orderBy("time"))
    return readings.withColumn("gap_s", (sql.unix_micros(following) - sql.unix_micros("time")) / 1e6)


def cadence_of(readings: DataFrame, limits: Limits) -> DataFrame:
    """The seconds between two readings of each node: columns node, every_s, which is null after a single reading."""
    if limits.every_s is not None:
        return readings.select("node").distinct().withColumn("every_s", sql.lit(limits.every_s))
    return (
        with_gaps(readings.select("node", "time"))
        .groupBy("node")
        .agg(sql.percentile_approx(sql.when(sql.col("gap_s") > 0, sql.col("gap_s")), 0.5, _ACCURACY).alias("every_s"))
    )


def voltage(readings: DataFrame, limits: Limits, cadence: DataFrame | None = None) -> DataFrame:
    """10-minute rms means: the root of the mean square, as IEC 61000-4-30 aggregates; columns as of ``frequency``."""
    mean_square = sql.avg(sql.col("voltage") * sql.col("voltage"))
    return _means(readings, "voltage", sql.sqrt(mean_square), limits, cadence)


def frequency(readings: DataFrame, limits: Limits, cadence: DataFrame | None = None) -> DataFrame:
    """10-second means: columns node, start, end, value, samples, measured (false where readings are too few).

    ``cadence`` (node, every_s) says how many readings a window should hold; without it ``limits.every_s`` does.
    """
    return _means(readings, "frequency", sql.avg("frequency"), limits, cadence)


def usable(column: str) -> Column:
    """A value that a meter can have measured: there, finite and not negative."""
    value = sql.col(column)
    return value.isNotNull() & ~sql.isnan(value) & (value >= 0) & (value < float("inf"))


def _means(
    readings: DataFrame, quantity: Quantity, mean: Column, limits: Limits, cadence: DataFrame | None
) -> DataFrame:
    seconds = WINDOW_S[quantity]
    means = (
        readings.where(usable(quantity))
        .groupBy("node", sql.window("time", f"{seconds} seconds"))
        .agg(mean.alias("value"), sql.count(sql.lit(1)).alias("samples"))
        .select("node", sql.col("window.start").alias("start"), sql.col("window.end").alias("end"), "value", "samples")
    )
    if cadence is None:
        if limits.every_s is None:
            raise ValueError("without a cadence, limits.every_s must say how many readings a window should hold")
        means = means.withColumn("every_s", sql.lit(limits.every_s))
    else:
        means = means.join(sql.broadcast(cadence), "node", "left")
    return means.withColumn("measured", sql.col("samples") >= _needed(seconds, limits)).drop("every_s")


def _needed(seconds: int, limits: Limits) -> Column:
    """At least one reading; a node that reports less often than windows follow fills only some of them."""
    due = sql.lit(seconds * limits.least_samples) / sql.col("every_s")
    return sql.coalesce(sql.greatest(sql.lit(1), sql.floor(due)), sql.lit(1))


#: No incident reaches further than this; a meter may claim any number.
_LONGEST_S: Final = 1e9
_DAY_S: Final = 86_400


def mark_flagged(means: DataFrame, incidents: DataFrame, calendar: DataFrame, seconds: int) -> DataFrame:
    """Means with ``flagged``: their window overlaps an incident of the same node, in the weeks of the calendar."""
    flagged = _touched(_spans(incidents), _extent(calendar), seconds).withColumn("flagged", sql.lit(col=True))
    number = sql.floor(sql.unix_seconds("start") / seconds)
    return (
        means.withColumn("window", number)
        .join(flagged, ["node", "window"], "left")
        .withColumn("flagged", sql.coalesce("flagged", sql.lit(col=False)))
        .drop("window")
    )


def _spans(incidents: DataFrame) -> DataFrame:
    """Disjoint spans of each node: columns node, begin, end, in seconds."""
    begin = sql.unix_micros("time") / 1e6
    spans = incidents.where(sql.col("time").isNotNull()).select(
        "node", begin.alias("begin"), (begin + _lasting("duration")).alias("end")
    )
    earlier = Window.partitionBy("node").orderBy("begin", "end").rowsBetween(Window.unboundedPreceding, -1)
    so_far = Window.partitionBy("node").orderBy("begin", "end").rowsBetween(Window.unboundedPreceding, 0)
    is_new = sql.coalesce(sql.col("begin") > sql.max("end").over(earlier), sql.lit(col=True)).cast("int")
    return (
        spans.withColumn("is_new", is_new)
        .withColumn("island", sql.sum("is_new").over(so_far))
        .groupBy("node", "island")
        .agg(sql.min("begin").alias("begin"), sql.max("end").alias("end"))
    )


def _lasting(column: str) -> Column:
    """A duration that can be added to a time: nothing for none, and bounded."""
    seconds = sql.nanvl(sql.coalesce(sql.col(column), sql.lit(0.0)), sql.lit(0.0))
    return sql.least(sql.greatest(seconds, sql.lit(0.0)), sql.lit(_LONGEST_S))


def _extent(calendar: DataFrame) -> DataFrame:
    """From the first week to the last; a day more at both ends, because a Monday begins earlier or later elsewhere."""
    return calendar.agg(
        (sql.unix_seconds(sql.min("monday")) - _DAY_S).cast("double").alias("first"),
        (sql.unix_seconds(sql.max("monday")) + 8 * _DAY_S).cast("double").alias("last"),
    )


def _touched(spans: DataFrame, extent: DataFrame, seconds: int) -> DataFrame:
    """The windows that spans overlap: columns node, window (its number since 1970)."""
    inside = (
        spans.crossJoin(sql.broadcast(extent))
        .where((sql.col("end") >= sql.col("first")) & (sql.col("begin") <= sql.col("last")))
        .select("node", sql.greatest("begin", "first").alias("begin"), sql.least("end", "last").alias("end"))
    )
    first = sql.floor(sql.col("begin") / seconds)
    # A span ends just before its end: one that stops on the stroke of a window does not touch it.
    last = sql.greatest(first, sql.ceil(sql.col("end") / seconds) - 1)
    return inside.select("node", sql.explode(sql.sequence(first, last)).alias("window")).distinct()
