"""Means of windows: 10 minutes of voltage, 10 seconds of frequency, each with the number of readings behind it.

The same functions serve a table and a stream. A stream must have a watermark on ``time``: readings that are late by
less are counted in the window they belong to, and a window is given out once the watermark has passed its end. Readings
that come later still do not change a mean that was given out; they are in the tables, where a batch run counts them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.clauses import WINDOW_S, Quantity
from tieline.pipeline.jobs.quality.limits import Limits


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
