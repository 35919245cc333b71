"""Everything that readings and incidents say about a network, as named tables: above all the verdicts on its weeks.

A week has so many windows. A window is *measured* when it holds enough readings, and *judged* when it was measured and
no dip, swell or interruption flags it (or flagged ones are kept). The rules, in this order:

1. More windows outside than the clause leaves room for in the whole week: fail, however little else was measured.
2. Fewer windows judged than ``least_coverage`` asks for: too little data. What was not measured never counts as good.
3. Otherwise the share of judged windows inside decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import incidents, means, weeks, zones
from tieline.pipeline.jobs.quality.limits import WINDOW_S, Limits, Quantity
from tieline.pipeline.jobs.quality.means import cadence_of

Verdict = Literal["pass", "fail", "too little data"]
PASS: Final = "pass"  # noqa: S105  a verdict, no password
FAIL: Final = "fail"
TOO_LITTLE: Final = "too little data"


def judge(means: DataFrame, calendar: DataFrame, quantity: Quantity, limits: Limits) -> DataFrame:
    """Verdicts on marked means: one row for each node and week of the calendar, and each clause of the quantity.

    Columns node, monday, clause, windows (in the week), measured, thin (too few readings), flagged, judged, outside,
    share (of the judged windows, inside), coverage (judged windows of all), verdict.
    """
    counted = calendar.join(_counts(means, quantity, limits), ["node", "monday"], "left").withColumn(
        "windows", weeks.windows(sql.col("monday"), limits.time_zone, WINDOW_S[quantity])
    )
    counted = counted.na.fill(0, [name for name in counted.columns if name not in ("node", "monday", "windows")])
    each = sql.explode(
        sql.array(
            *(
                sql.struct(
                    sql.lit(clause.name).alias("clause"),
                    sql.lit(clause.permille).alias("permille"),
                    sql.col(clause.name).alias("outside"),
                )
                for clause in limits.clauses(quantity)
            )
        )
    )
    rows = counted.withColumn("each", each).select("*", "each.*")
    return rows.select(
        "node",
        "monday",
        "clause",
        "windows",
        "measured",
        "thin",
        "flagged",
        "judged",
        "outside",
        sql.when(sql.col("judged") > 0, 1 - sql.col("outside") / sql.col("judged")).alias("share"),
        (sql.col("judged") / sql.col("windows")).alias("coverage"),
        _verdict(limits).alias("verdict"),
    )


def _counts(means: DataFrame, quantity: Quantity, limits: Limits) -> DataFrame:
    judged = sql.col("measured") if limits.flagged == "keep" else sql.col("measured") & ~sql.col("flagged")
    outside = [
        sql.count_if(judged & ~sql.col("value").between(*limits.range(clause))).alias(clause.name)
        for clause in limits.clauses(quantity)
    ]
    return means.groupBy("node", weeks.monday(sql.col("start"), limits.time_zone).alias("monday")).agg(
        sql.count_if("measured").alias("measured"),
        sql.count_if(~sql.col("measured")).alias("thin"),
        sql.count_if(sql.col("measured") & sql.col("flagged")).alias("flagged"),
        sql.count_if(judged).alias("judged"),
        *outside,
    )


def _verdict(limits: Limits) -> Column:
    """The three rules, in whole numbers."""
    outside, room = sql.col("outside") * 1000, sql.lit(1000) - sql.col("permille")
    covered = sql.col("judged") >= sql.ceil(sql.col("windows") * limits.least_coverage)
    return (
        sql.when(outside > room * sql.col("windows"), FAIL)
        .when(~covered, TOO_LITTLE)
        .when(outside > room * sql.col("judged"), FAIL)
        .otherwise(PASS)
    )


@dataclass(frozen=True, slots=True)
class Assessment:
    """Tables that are computed when they are read; ``kept`` are those that others are made of."""

    #: node, every_s.
    cadence: DataFrame
    #: node, monday: every node with every week.
    calendar: DataFrame
    #: node, start, end, value, samples, measured, flagged: 10-minute means.
    voltage: DataFrame
    #: The same for 10-second means.
    frequency: DataFrame
    #: node, monday, clause, and the columns of :func:`judge`.
    verdicts: DataFrame
    #: node, monday, zone_1_s, zone_2_s, zone_3_s.
    zones: DataFrame
    #: node, monday, kind, depth, lasting, incidents.
    incidents: DataFrame
    #: volt_cell, hertz_cell, readings.
    plane: DataFrame

    @property
    def kept(self) -> tuple[DataFrame, ...]:
        """What is worth ``persist`` before several of the tables are read."""
        return self.cadence, self.calendar, self.voltage, self.frequency


def assess(readings: DataFrame, happened: DataFrame, limits: Limits) -> Assessment:
    """Hold readings against limits, beside the incidents that ``happened``.

    ``readings``: node, time, voltage, frequency. ``happened``: node, time, kind, residual, duration.
    """
    usual = cadence_of(readings, limits)
    calendar = weeks.calendar(readings, limits.time_zone)
    excused = incidents.flagging(happened, limits)
    voltage = means.mark_flagged(means.voltage(readings, limits, usual), excused, calendar, WINDOW_S["voltage"])
    frequency = means.mark_flagged(means.frequency(readings, limits, usual), excused, calendar, WINDOW_S["frequency"])
    return Assessment(
        cadence=usual,
        calendar=calendar,
        voltage=voltage,
        frequency=frequency,
        verdicts=judge(voltage, calendar, "voltage", limits).unionByName(
            judge(frequency, calendar, "frequency", limits)
        ),
        zones=zones.time_in_zones(readings, usual, limits),
        incidents=incidents.table(happened, limits),
        plane=zones.plane_density(readings, limits),
    )
