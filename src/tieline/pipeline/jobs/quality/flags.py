"""Flagged means: those of windows that a dip, swell or interruption touches (IEC 61000-4-30, flagging).

Incidents of a node are joined to disjoint spans first. However many a meter reports, and however long it says that they
lasted, a window is then flagged once, and the work is bounded by the windows of the weeks in question.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

#: No incident reaches further than this; a meter may claim any number.
_LONGEST_S: Final = 1e9
_DAY_S: Final = 86_400


def mark(means: DataFrame, incidents: DataFrame, calendar: DataFrame, seconds: int) -> DataFrame:
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
