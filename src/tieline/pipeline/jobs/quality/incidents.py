"""Dips, swells and interruptions in the standard's tables: by what was left of the voltage, and by how long it lasted.

Rapid voltage changes, which stay between the thresholds of dips and swells, are counted by how far they went.

Every incident is counted somewhere. One that fits no row or column of its table (a dip to 95 %, a swell of two minutes,
no duration at all) is counted under ``outside the table``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import weeks
from tieline.pipeline.jobs.quality.limits import Limits

OUTSIDE: Final = "outside the table"
OTHER: Final = "other"
INTERRUPTION: Final = "interruption"
RAPID: Final = "rapid"
_NONE: Final = float("-inf")
_ANY: Final = float("inf")


class Band(NamedTuple):
    """A row or column: a label, and where it begins and ends; which end belongs to it differs between the tables."""

    label: str
    low: float
    high: float


class IncidentTable(NamedTuple):
    """One kind of incident: its residual voltages in percent of the nominal one, and its durations in seconds."""

    kind: str
    depths: tuple[Band, ...]
    durations: tuple[Band, ...]


#: Tables of 4.3.1 and 4.3.2. Depths hold their lower end, durations their upper one (and 10 ms itself).
TABLES: Final = (
    IncidentTable(
        "dip",
        (
            Band("90 > u ≥ 80", 80, 90),
            Band("80 > u ≥ 70", 70, 80),
            Band("70 > u ≥ 40", 40, 70),
            Band("40 > u ≥ 5", 5, 40),
            Band("5 > u", _NONE, 5),
        ),
        (
            Band("10 – 200 ms", 0.01, 0.2),
            Band("200 – 500 ms", 0.2, 0.5),
            Band("0.5 – 1 s", 0.5, 1),
            Band("1 – 5 s", 1, 5),
            Band("5 – 60 s", 5, 60),
        ),
    ),
    IncidentTable(
        "swell",
        (Band("u ≥ 120", 120, _ANY), Band("120 > u > 110", 110, 120)),
        (Band("10 – 500 ms", 0.01, 0.5), Band("0.5 – 5 s", 0.5, 5), Band("5 – 60 s", 5, 60)),
    ),
    IncidentTable(
        INTERRUPTION,
        (Band("5 > u", _NONE, 5),),
        (Band("short, up to 3 min", 0, 180), Band("long, over 3 min", 180, _ANY)),
    ),
    # No limits: a note says that changes generally stay below 5 %, and that up to 10 % occur some times a day.
    IncidentTable(
        RAPID,
        (Band("up to 5", _NONE, 5), Band("5 – 10", 5, 10), Band("over 10", 10, _ANY)),
        (Band("any duration", _NONE, _ANY),),
    ),
)


def classify(incidents: DataFrame, limits: Limits) -> DataFrame:
    """Incidents with ``monday``, ``percent`` (what was left of the nominal voltage), ``depth`` and ``lasting``."""
    kinds = [table.kind for table in TABLES]
    percent = sql.col("residual") * 100 / limits.nominal_v  # in this order 253 V of 230 V are 110 % and not a bit more
    depth, lasting = sql.lit(OUTSIDE), sql.lit(OUTSIDE)
    for table in TABLES:
        here = sql.col("kind") == table.kind
        depth = sql.when(here, _depth(table, percent)).otherwise(depth)
        lasting = sql.when(here, _lasting(table)).otherwise(lasting)
    fits = (depth != OUTSIDE) & (lasting != OUTSIDE)
    return incidents.where(sql.col("time").isNotNull()).select(
        "node",
        "time",
        sql.when(sql.col("kind").isin(kinds), sql.col("kind")).otherwise(OTHER).alias("kind"),
        "residual",
        "duration",
        percent.alias("percent"),
        sql.when(fits, depth).otherwise(OUTSIDE).alias("depth"),
        sql.when(fits, lasting).otherwise(OUTSIDE).alias("lasting"),
        *(["phases"] if "phases" in incidents.columns else []),
        weeks.monday(sql.col("time"), limits.time_zone).alias("monday"),
    )


def flagging(incidents: DataFrame, limits: Limits) -> DataFrame:
    """Incidents for which the windows that they touch may be left out: 3.2.12 and 4.3 of EN 50160, IEC 61000-4-30.

    A dip or a swell is over within a minute, and what is too low or too high for longer is what the means are there
    for; an interruption may last.  What was left of the voltage has to fit the kind, if it was said.
    """
    percent = sql.col("residual") * 100 / limits.nominal_v
    fits = sql.lit(col=False)
    for each in TABLES:
        if each.kind == RAPID:  # the voltage stays within its range all the while
            continue
        deep = sql.col("residual").isNull() | (_depth(each, percent) != OUTSIDE)
        brief = sql.lit(col=True) if each.kind == INTERRUPTION else _lasting(each) != OUTSIDE
        fits = fits | ((sql.col("kind") == each.kind) & deep & brief)
    return incidents.where(sql.col("time").isNotNull() & fits)


def table(classified: DataFrame) -> DataFrame:
    """How many of each: columns node, monday, kind, depth, lasting, incidents."""
    return classified.groupBy("node", "monday", "kind", "depth", "lasting").agg(
        sql.count(sql.lit(1)).alias("incidents")
    )


def _depth(table: IncidentTable, percent: Column) -> Column:
    found = sql.lit(OUTSIDE)
    for band in table.depths:
        # A swell begins above 110 %, and its lower row does not hold that value; all other rows hold their lower end.
        above = percent > band.low if band.low == 110 else percent >= band.low
        found = sql.when(above & (percent < band.high) & ~sql.isnan(percent), band.label).otherwise(found)
    return sql.coalesce(found, sql.lit(OUTSIDE))


def _lasting(table: IncidentTable) -> Column:
    if table.kind == RAPID:
        return sql.lit(table.durations[0].label)
    duration = sql.col("duration")
    found = sql.lit(OUTSIDE)
    for number, band in enumerate(table.durations):
        beyond = duration >= band.low if number == 0 else duration > band.low
        found = sql.when(beyond & (duration <= band.high) & ~sql.isnan(duration), band.label).otherwise(found)
    return sql.coalesce(found, sql.lit(OUTSIDE))
