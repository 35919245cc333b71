"""Verdicts on weeks, days and years of windows.

A week has so many windows. A window is *measured* when it holds enough readings, and *judged* when it was measured and
no dip, swell or interruption flags it (or flagged ones are kept). The rules, in this order:

1. More windows outside than the clause leaves room for in the whole week: fail, however little else was measured.
2. Fewer windows judged than ``least_coverage`` asks for: too little data. What was not measured never counts as good.
3. Otherwise the share of judged windows inside decides.

A clause on days is judged day by day: a week passes when its seven days do, and fails when one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import weeks
from tieline.pipeline.jobs.quality.clauses import Clause, Period
from tieline.pipeline.jobs.quality.limits import Limits, Range
from tieline.pipeline.jobs.quality.quantities import QUANTITIES

Verdict = Literal["pass", "fail", "too little data"]
PASS: Final = "pass"  # noqa: S105  a verdict, no password
FAIL: Final = "fail"
TOO_LITTLE: Final = "too little data"

_COUNTS: Final = ("measured", "thin", "flagged", "judged", "beyond_normal", "beyond_extreme")
_DAYS: Final[dict[Period, int]] = {"week": 7, "day": 1}
_LINE: Final = ("node", "quantity", "phase")


def judge(means: DataFrame, expected: DataFrame, quantities: Iterable[str], limits: Limits) -> DataFrame:
    """Verdicts on marked means: a row for each node, phase and week that is expected, and each clause on weeks or days.

    ``expected``: node, quantity, phase, monday.  Columns node, phase, monday, clause, windows (in the week), measured,
    thin (too few readings), flagged, judged, outside, share (of the judged windows, inside), coverage (judged windows
    of all), verdict.
    """
    clauses = [each for name in dict.fromkeys(quantities) for each in limits.clauses(name)]
    periods = {each.period for each in clauses}
    found = []
    if "week" in periods:
        found.append(_judged(means, expected, clauses, "week", limits))
    if "day" in periods:
        found.append(_by_day(means, expected, clauses, limits))
    return reduce(DataFrame.unionByName, found)


def of_counts(outside: int, judged: int, windows: int, permille: int, least_coverage: float) -> Verdict:
    """The three rules on plain numbers; ``windows`` are those of the whole period."""
    room = 1000 - permille
    if outside * 1000 > room * windows:
        return FAIL
    if judged < windows * least_coverage:
        return TOO_LITTLE
    return FAIL if outside * 1000 > room * judged else PASS


def _judged(means: DataFrame, expected: DataFrame, clauses: list[Clause], period: Period, limits: Limits) -> DataFrame:
    """The verdicts of the clauses on one kind of period, which begins at ``monday``, whatever day that is."""
    asked = [each for each in clauses if each.period == period]
    keys = [*_LINE, "monday"]
    counted = expected.join(_counts(means, clauses, period, limits), keys, "left").na.fill(0, list(_COUNTS))
    counted = counted.withColumn("windows", _by_quantity(asked, lambda name: _windows(name, period, limits)))
    each = sql.explode(
        sql.filter(
            sql.array(
                *(
                    sql.struct(
                        sql.lit(clause.name).alias("clause"),
                        sql.lit(clause.quantity).alias("of"),
                        sql.lit(clause.permille).alias("permille"),
                        sql.col("beyond_extreme" if clause.is_absolute else "beyond_normal").alias("outside"),
                    )
                    for clause in asked
                )
            ),
            lambda one: one["of"] == sql.col("quantity"),
        )
    )
    rows = counted.withColumn("each", each).select("*", "each.*")
    return rows.select(
        "node",
        "phase",
        "monday",
        "clause",
        "windows",
        *_COUNTS[:4],
        "outside",
        sql.when(sql.col("judged") > 0, 1 - sql.col("outside") / sql.col("judged")).alias("share"),
        (sql.col("judged") / sql.col("windows")).alias("coverage"),
        _verdict(limits).alias("verdict"),
    )


def _counts(means: DataFrame, clauses: list[Clause], period: Period, limits: Limits) -> DataFrame:
    """How many windows of each period are what; what is outside is counted for both ranges of its quantity."""
    judged = sql.col("measured") if limits.flagged == "keep" else sql.col("measured") & ~sql.col("flagged")
    start = sql.col("start")
    begins = (
        weeks.monday(start, limits.time_zone)
        if period == "week"
        else sql.date_trunc("day", sql.from_utc_timestamp(start, limits.time_zone))
    )
    return means.groupBy(*_LINE, begins.alias("monday")).agg(
        sql.count_if("measured").alias("measured"),
        sql.count_if(~sql.col("measured")).alias("thin"),
        sql.count_if(sql.col("measured") & sql.col("flagged")).alias("flagged"),
        sql.count_if(judged).alias("judged"),
        sql.count_if(judged & _outside(clauses, limits.normal)).alias("beyond_normal"),
        sql.count_if(judged & _outside(clauses, limits.extreme)).alias("beyond_extreme"),
    )


def _outside(clauses: list[Clause], allowed: Callable[[str], Range]) -> Column:
    """Whether a mean is outside the range of its quantity."""
    return ~_by_quantity(clauses, lambda name: sql.col("value").between(*allowed(name)))


def _by_quantity(clauses: list[Clause], made: Callable[[str], Column]) -> Column:
    """What is made for each quantity, where the row is of that quantity."""
    names = list(dict.fromkeys(clause.quantity for clause in clauses))
    found = made(names[0])
    for name in names[1:]:
        found = sql.when(sql.col("quantity") == name, made(name)).otherwise(found)
    return found


def _windows(quantity: str, period: Period, limits: Limits) -> Column:
    return weeks.windows(sql.col("monday"), limits.time_zone, QUANTITIES[quantity].window_s, _DAYS[period])


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


def _by_day(means: DataFrame, expected: DataFrame, clauses: list[Clause], limits: Limits) -> DataFrame:
    """The clauses on days, summed up to weeks; the share is that of the worst day."""
    by_day = [each for each in clauses if each.period == "day"]
    names = {each.quantity for each in by_day}
    weekly = expected.where(sql.col("quantity").isin(*names))
    last = sql.col("monday") + sql.expr("interval 6 days")
    days = weekly.withColumn("monday", sql.explode(sql.sequence("monday", last, sql.expr("interval 1 day"))))
    found = _judged(means.where(sql.col("quantity").isin(*names)), days, by_day, "day", limits)
    failed, passed = (sql.count_if(sql.col("verdict") == each) for each in (FAIL, PASS))
    counts = ("windows", *_COUNTS[:4], "outside")
    week = sql.date_trunc("week", sql.col("monday")).alias("monday")
    return found.groupBy("node", "phase", week, "clause").agg(
        *(sql.sum(name).alias(name) for name in counts),
        sql.min("share").alias("share"),
        (sql.sum("judged") / sql.sum("windows")).alias("coverage"),
        sql.when(failed > 0, FAIL).when(passed == 7, PASS).otherwise(TOO_LITTLE).alias("verdict"),
    )
