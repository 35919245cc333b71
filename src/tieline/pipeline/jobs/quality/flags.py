"""Which windows an incident touches: those are flagged, and may be left out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

#: No incident reaches further than this; a meter may claim any number.
_LONGEST_S: Final = 1e9
_DAY_S: Final = 86_400


def mark_flagged(means: DataFrame, incidents: DataFrame, calendar: DataFrame, lengths: Collection[int]) -> DataFrame:
    """Means with ``flagged`` and ``why``: their window overlaps incidents of the same node, and of which kinds.

    ``lengths`` are those of the windows; only the weeks of the calendar matter.
    """
    touched = _touched(spans(incidents, "node", "kind"), _extent(calendar), lengths)
    kinds = touched.groupBy("node", "seconds", "window").agg(sql.array_sort(sql.collect_set("kind")).alias("kinds"))
    return (
        means.withColumn("window", sql.floor(sql.unix_seconds("start") / sql.col("seconds")))
        .join(kinds, ["node", "seconds", "window"], "left")
        .withColumn("flagged", sql.col("kinds").isNotNull())
        .withColumn("why", sql.array_join("kinds", ", "))
        .drop("window", "kinds")
    )


def spans(incidents: DataFrame, *keys: str) -> DataFrame:
    """Disjoint spans for each combination of keys: those columns, begin and end in seconds, residual (the least)."""
    begin = sql.unix_micros("time") / 1e6
    each = incidents.where(sql.col("time").isNotNull()).select(
        *keys, begin.alias("begin"), (begin + lasting("duration")).alias("end"), "residual"
    )
    return merged(each, *keys).groupBy(*keys, "island").agg(
        sql.min("begin").alias("begin"), sql.max("end").alias("end"), sql.min("residual").alias("residual")
    )  # fmt: skip


def merged(rows: DataFrame, *keys: str) -> DataFrame:
    """Rows with begin and end, with ``island``: rows of the same keys that overlap or touch have the same number."""
    order = Window.partitionBy(*keys).orderBy("begin", "end")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    so_far = order.rowsBetween(Window.unboundedPreceding, 0)
    is_new = sql.coalesce(sql.col("begin") > sql.max("end").over(earlier), sql.lit(col=True)).cast("int")
    return rows.withColumn("is_new", is_new).withColumn("island", sql.sum("is_new").over(so_far)).drop("is_new")


def lasting(column: str) -> Column:
    """A duration that can be added to a time: nothing for none, and bounded."""
    seconds = sql.nanvl(sql.coalesce(sql.col(column), sql.lit(0.0)), sql.lit(0.0))
    return sql.least(sql.greatest(seconds, sql.lit(0.0)), sql.lit(_LONGEST_S))


def _extent(calendar: DataFrame) -> DataFrame:
    """From the first week to the last; a day more at both ends, because a Monday begins earlier or later elsewhere."""
    return calendar.agg(
        (sql.unix_seconds(sql.min("monday")) - _DAY_S).cast("double").alias("first"),
        (sql.unix_seconds(sql.max("monday")) + 8 * _DAY_S).cast("double").alias("last"),
    )


def _touched(disjoint: DataFrame, extent: DataFrame, lengths: Collection[int]) -> DataFrame:
    """The windows that spans overlap: columns node, kind, seconds, window (its number since 1970)."""
    inside = (
        disjoint.crossJoin(sql.broadcast(extent))
        .where((sql.col("end") >= sql.col("first")) & (sql.col("begin") <= sql.col("last")))
        .select("node", "kind", sql.greatest("begin", "first").alias("begin"), sql.least("end", "last").alias("end"))
        .withColumn("seconds", sql.explode(sql.array(*map(sql.lit, sorted(lengths)))))
    )
    first = sql.floor(sql.col("begin") / sql.col("seconds"))
    # A span ends just before its end: one that stops on the stroke of a window does not touch it.
    last = sql.greatest(first, sql.ceil(sql.col("end") / sql.col("seconds")) - 1)
    return inside.select("node", "kind", "seconds", sql.explode(sql.sequence(first, last)).alias("window"))
