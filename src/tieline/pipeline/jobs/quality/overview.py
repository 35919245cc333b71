"""What a report shows beside verdicts: the course of the voltage, and which windows were left out, and why."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import QUANTITIES, VOLTAGE, series_in

#: Why windows are missing although nothing happened.
SILENT: Final = "no readings"
THIN: Final = "too few readings"


def with_furthest(readings: DataFrame, limits: Limits) -> DataFrame:
    """Readings whose ``voltage`` is that of the phase furthest from nominal, where they come by phase."""
    phases = [each.column for each in series_in(readings.columns) if each.quantity == VOLTAGE and each.phase]
    if not phases:
        return readings
    ranked = [
        sql.when(
            sql.col(name).isNotNull() & ~sql.isnan(name),
            sql.struct(sql.abs(sql.col(name) - limits.nominal_v), sql.col(name).alias("volts")),
        )
        for name in phases
    ]
    furthest = sql.greatest(*ranked) if len(ranked) > 1 else ranked[0]
    return readings.withColumn(VOLTAGE, sql.coalesce(furthest["volts"], sql.col(VOLTAGE)))


def over_time(means: DataFrame, bucket_s: int) -> DataFrame:
    """Measured 10-minute means of the voltage in buckets: columns node, phase, bucket, low, mean, high."""
    bucket = sql.floor(sql.unix_seconds("start") / bucket_s).alias("bucket")
    return (
        means.where((sql.col("quantity") == VOLTAGE) & sql.col("measured"))
        .groupBy("node", "phase", bucket)
        .agg(sql.min("value").alias("low"), sql.avg("value").alias("mean"), sql.max("value").alias("high"))
    )


def left_out(means: DataFrame, timed: DataFrame, roster: DataFrame, calendar: DataFrame, limits: Limits) -> DataFrame:
    """Windows of 10 minutes and more that are not judged, as spans on end.

    Columns node, quantity, phase, why, begin, end (in seconds), windows.  Why is what flagged them, or that there were
    too few readings, or none: then quantity and phase are empty, and the windows are those of 10 minutes.  Shorter
    windows are counted in the verdicts alone: there would be thousands.
    """
    why = sql.when(~sql.col("measured"), THIN)
    if limits.flagged == "exclude":
        why = why.when(sql.col("flagged"), sql.col("why"))
    kept = means.where(sql.col("seconds") >= QUANTITIES[VOLTAGE].window_s).withColumn("why", why)
    number = sql.unix_seconds("start") / sql.col("seconds")
    keys = ("node", "quantity", "phase", "seconds", "why")
    place = sql.row_number().over(Window.partitionBy(*keys).orderBy("start"))
    flagged = (
        kept.where("why is not null")
        .withColumn("run", number - place)
        .groupBy(*keys, "run")
        .agg(
            sql.unix_seconds(sql.min("start")).alias("begin"),
            (sql.unix_seconds(sql.max("start")) + sql.col("seconds")).alias("end"),
            sql.count(sql.lit(1)).alias("windows"),
        )
        .select("node", "quantity", "phase", "why", "begin", "end", "windows")
    )
    return flagged.unionByName(_silences(timed, roster, calendar, limits))


def _silences(timed: DataFrame, roster: DataFrame, calendar: DataFrame, limits: Limits) -> DataFrame:
    """Spans in which a node said nothing for at least one window of 10 minutes, from the first week to the last."""
    length = QUANTITIES[VOLTAGE].window_s
    at = sql.unix_micros("time") / 1e6
    weeks = calendar.agg(sql.min("monday").alias("first_week"), sql.max("monday").alias("last_week"))
    edge = [
        sql.unix_seconds(sql.to_utc_timestamp(when, limits.time_zone))
        for when in (sql.col("first_week"), sql.col("last_week") + sql.expr("interval 7 days"))
    ]
    known = roster.crossJoin(sql.broadcast(weeks))
    first, last = (sql.unix_micros(end) / 1e6 for end in ("first", "last"))
    # the window before the edge counts as heard, as those with the readings at both ends of a silence do
    spans = [
        timed.where(sql.col("gap_s") > length).select("node", _window(at), _window(at + sql.col("gap_s"), "to")),
        known.select("node", (sql.ceil(edge[0] / length) - 1).alias("from"), _window(first, "to")),
        known.select("node", _window(last), sql.ceil(edge[1] / length).alias("to")),
    ]
    return (
        reduce(DataFrame.unionByName, spans)
        .withColumn("windows", sql.col("to") - sql.col("from") - 1)
        .where("windows > 0")
        .select(
            "node",
            sql.lit("").alias("quantity"),
            sql.lit("").alias("phase"),
            sql.lit(SILENT).alias("why"),
            ((sql.col("from") + 1) * length).alias("begin"),
            (sql.col("to") * length).alias("end"),
            "windows",
        )
    )


def _window(seconds: Column, name: str = "from") -> Column:
    return sql.floor(seconds / QUANTITIES[VOLTAGE].window_s).alias(name)
