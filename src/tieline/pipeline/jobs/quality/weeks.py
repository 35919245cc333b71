"""ISO weeks in a time zone: which one an instant belongs to, when it begins and ends, how many windows it holds.

Sessions run in UTC (``tieline.pipeline.session``), so a timestamp that was shifted into a time zone reads as the wall
clock there. A window belongs to the week in which it begins; a week with a change of the clocks has 167 or 169 hours.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

_WEEK: Final = "interval 7 days"


def monday(time: Column, time_zone: str) -> Column:
    """The wall clock's Monday, 00:00, of the week in which an instant lies."""
    return sql.date_trunc("week", sql.from_utc_timestamp(time, time_zone))


def label(monday: Column) -> Column:
    """As in 2026-W46; the year is that of the week's Thursday."""
    year = sql.year(monday + sql.expr("interval 3 days"))
    return sql.format_string("%04d-W%02d", year, sql.weekofyear(monday))


def begin(monday: Column, time_zone: str) -> Column:
    """The instant at which the week begins."""
    return sql.to_utc_timestamp(monday, time_zone)


def windows(monday: Column, time_zone: str, seconds: int, days: int = 7) -> Column:
    """How many windows of that length begin in the week, or in fewer days from there on."""
    first = sql.ceil(sql.unix_seconds(begin(monday, time_zone)) / seconds)
    beyond = sql.ceil(sql.unix_seconds(begin(monday + sql.expr(f"interval {days} days"), time_zone)) / seconds)
    return (beyond - first).cast("bigint")


def calendar(roster: DataFrame, time_zone: str) -> DataFrame:
    """Every node with every week from the first reading of all to the last: columns node, monday.

    A week in which a node, or all of them, said nothing is there too, so that silence shows as missing data.
    ``roster``: node, first, last.
    """
    span = roster.agg(sql.min("first").alias("first"), sql.max("last").alias("last"))
    first, last = (monday(sql.col(end), time_zone) for end in ("first", "last"))
    mondays = span.where("first is not null").select(
        sql.explode(sql.sequence(first, last, sql.expr(_WEEK))).alias("monday")
    )
    return roster.select("node").crossJoin(sql.broadcast(mondays))
