"""Means of windows: 10 minutes of voltage, 10 seconds of frequency, and so on, with the number of readings behind each.

The same functions serve a table and a stream. A stream must have a watermark on ``time``: readings that are late by
less are counted in the window they belong to, and a window is given out once the watermark has passed its end. Readings
that come later still do not change a mean that was given out; they are in the tables, where a batch run counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import FREQUENCY, QUANTITIES, VOLTAGE, Series

#: Distinct gaps that the median tells apart: meters report at a few different intervals, not at thousands.
_ACCURACY: Final = 1_000


def with_gaps(readings: DataFrame) -> DataFrame:
    """Readings with ``gap_s``: the seconds until the next reading of the same node, null for the last."""
    following = sql.lead("time").over(Window.partitionBy("node").orderBy("time"))
    return readings.withColumn("gap_s", (sql.unix_micros(following) - sql.unix_micros("time")) / 1e6)


def roster_of(timed: DataFrame, carried: Sequence[Series], limits: Limits) -> DataFrame:
    """Who reports what, and how often, of readings with gaps.

    Columns node, every_s (null after a single reading), first, last, readings, and ``lines``: for each series that the
    node has values of, its quantity, phase and every_s.  Voltage and frequency belong to every node, silent or not.  A
    node whose voltage is told by phase has no other.
    """
    usual = sql.percentile_approx(sql.when(sql.col("gap_s") > 0, sql.col("gap_s")), 0.5, _ACCURACY)
    further = [each for each in carried if each not in _ALWAYS]
    seen = [
        part
        for number, each in enumerate(further)
        for part in (
            sql.count_if(usable(each.column)).alias(f"count_{number}"),
            sql.min(sql.when(usable(each.column), sql.col("time"))).alias(f"first_{number}"),
            sql.max(sql.when(usable(each.column), sql.col("time"))).alias(f"last_{number}"),
        )
    ]
    whole = timed.groupBy("node").agg(
        (usual if limits.every_s is None else sql.lit(limits.every_s)).alias("every_s"),
        sql.min("time").alias("first"),
        sql.max("time").alias("last"),
        sql.count(sql.lit(1)).alias("readings"),
        *seen,
    )
    counts = {each: sql.col(f"count_{number}") > 0 for number, each in enumerate(further)}
    lines = [_line(each, sql.lit(col=True), counts, sql.col("every_s")) for each in _ALWAYS]
    lines += [
        _line(each, counts[each], counts, _pace(number, each)) for number, each in enumerate(further)
    ]  # fmt: skip
    return whole.select(
        "node", "every_s", "first", "last", "readings", sql.array_compact(sql.array(*lines)).alias("lines")
    )


#: What every node is expected to tell.
_ALWAYS: Final = (Series(VOLTAGE, ""), Series(FREQUENCY, ""))


def _line(each: Series, is_there: Column, counts: dict[Series, Column], every_s: Column) -> Column:
    """A series as a line of the roster; null if it is not there, or told by phase instead."""
    for other, other_is_there in counts.items():
        if not each.phase and other.phase and other.quantity == each.quantity:
            is_there = is_there & ~other_is_there
    return sql.when(
        is_there,
        sql.struct(
            sql.lit(each.quantity).alias("quantity"), sql.lit(each.phase).alias("phase"), every_s.alias("every_s")
        ),
    )


def _pace(number: int, each: Series) -> Column:
    """How often a series comes: with every reading, or as seldom as its own values are on average."""
    if each.quantity == VOLTAGE:
        return sql.col("every_s")
    lasted = (sql.unix_micros(f"last_{number}") - sql.unix_micros(f"first_{number}")) / 1e6
    own = lasted / sql.when(sql.col(f"count_{number}") > 1, sql.col(f"count_{number}") - 1)
    return sql.greatest("every_s", own)


def lines_of(roster: DataFrame) -> DataFrame:
    """The roster's lines: columns node, quantity, phase, every_s."""
    return roster.select("node", sql.explode("lines").alias("line")).select("node", "line.*")


def all_means(readings: DataFrame, carried: Iterable[Series], limits: Limits, lines: DataFrame) -> DataFrame:
    """The means of every line, one row for each window: the columns of :func:`frequency`."""
    by_length = sorted(carried, key=_length)
    each = [_windows(readings, tuple(some), seconds) for seconds, some in groupby(by_length, _length)]
    together = reduce(DataFrame.unionByName, each)
    found = together.join(sql.broadcast(lines), ["node", "quantity", "phase"])
    return _measured(found, limits)


def voltage(readings: DataFrame, limits: Limits) -> DataFrame:
    """10-minute rms means: the root of the mean square, as IEC 61000-4-30 aggregates; columns as of ``frequency``."""
    return _steady(readings, Series(VOLTAGE, ""), limits)


def frequency(readings: DataFrame, limits: Limits) -> DataFrame:
    """10-second means: columns node, quantity, phase, seconds, start, value, samples, and measured.

    The last is false where readings are too few.  ``limits.every_s`` says how many a window should hold.
    """
    return _steady(readings, Series(FREQUENCY, ""), limits)


def _steady(readings: DataFrame, series: Series, limits: Limits) -> DataFrame:
    if limits.every_s is None:
        raise ValueError("of a stream, limits.every_s must say how many readings a window should hold")
    means = _windows(readings, (series,), _length(series)).withColumn("every_s", sql.lit(limits.every_s))
    return _measured(means, limits)


def usable(column: str) -> Column:
    """A value that a meter can have measured: there, finite and not negative."""
    value = sql.col(column)
    return value.isNotNull() & ~sql.isnan(value) & (value >= 0) & (value < float("inf"))


def _length(series: Series) -> int:
    return QUANTITIES[series.quantity].window_s


def _windows(readings: DataFrame, some: Sequence[Series], seconds: int) -> DataFrame:
    """Means of some series of the same length: all of them in one pass, then one row for each."""
    parts = []
    for number, each in enumerate(some):
        value = sql.when(usable(each.column), sql.col(each.column))
        powers = reduce(Column.__mul__, [value] * QUANTITIES[each.quantity].power)
        parts += [sql.avg(powers).alias(f"mean_{number}"), sql.count(value).alias(f"samples_{number}")]
    rows = [
        sql.struct(
            sql.lit(each.quantity).alias("quantity"),
            sql.lit(each.phase).alias("phase"),
            _root(sql.col(f"mean_{number}"), QUANTITIES[each.quantity].power).alias("value"),
            sql.col(f"samples_{number}").alias("samples"),
        )
        for number, each in enumerate(some)
    ]
    whole = readings.groupBy("node", sql.window("time", f"{seconds} seconds")).agg(*parts)
    return (
        whole.select("node", sql.col("window.start").alias("start"), sql.inline(sql.array(*rows)))
        .select("node", "quantity", "phase", sql.lit(seconds).alias("seconds"), "start", "value", "samples")
        .where("samples > 0")
    )  # fmt: skip


def _root(mean: Column, power: int) -> Column:
    return {1: mean, 2: sql.sqrt(mean), 3: sql.cbrt(mean)}[power]


def _measured(means: DataFrame, limits: Limits) -> DataFrame:
    """At least one reading; a node that reports less often than windows follow fills only some of them."""
    due = sql.col("seconds") * limits.least_samples / sql.col("every_s")
    needed = sql.coalesce(sql.greatest(sql.lit(1), sql.floor(due)), sql.lit(1))
    return means.withColumn("measured", sql.col("samples") >= needed).drop("every_s")
