"""The clause on a year, on years made by hand whose verdicts are known: readings become means, weeks, and a year."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tests.pipeline.jobs.quality.frames import INCIDENTS
from tieline.pipeline.jobs.quality.assessment import assess
from tieline.pipeline.jobs.quality.clauses import YEAR_WEEKS
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.verdicts import FAIL, PASS, TOO_LITTLE
from tieline.pipeline.report.findings import Findings, Judgement, Origin
from tieline.pipeline.report.study import _rows

pytestmark = pytest.mark.timeout(300)

#: Monday, 9 November 2026, 00:00 UTC.
MONDAY = 1_794_182_400
WEEK = 60_480
YEAR = YEAR_WEEKS * WEEK

#: Weeks: the hertz of the window ``n``.  Of a year's 3,144,960 windows 15,724 may be outside: 51 times 302, and 322.
WEEKS = {
    "ordinary": "if(n % 200 = 0 and n >= 200, 49.49, 49.5)",
    "as much as may be": "if(n < 322, 50.51, 50.5)",
    "one window more": "if(n < 323, 50.51, 50.5)",
    "never outside": "50.0",
    "silent": "if(n < 2, 50.0, null)",
}


@pytest.fixture(name="weeks", scope="module")
def _weeks(spark: SparkSession) -> dict[str, tuple[Judgement, ...]]:
    """What is said about each of these weeks, in which a reading ends every window of ten seconds."""
    kind = sql.array(*map(sql.lit, WEEKS))[(sql.col("id") / WEEK).cast("int")]
    rows = spark.range(len(WEEKS) * WEEK).withColumns({"node": kind, "n": sql.col("id") % WEEK})
    hertz = sql.coalesce(*(sql.when(sql.col("node") == node, sql.expr(said)) for node, said in WEEKS.items()))
    readings = rows.select(
        "node",
        sql.timestamp_seconds(sql.lit(MONDAY) + 10 * sql.col("n")).alias("time"),
        sql.lit(None).cast("double").alias("voltage"),
        hertz.alias("frequency"),
    ).where("frequency is not null")
    found = _rows(assess(readings, spark.createDataFrame([], INCIDENTS), Limits()).verdicts, Judgement)
    return {name: tuple(each for each in found if each.node == name) for name in WEEKS}


def _year(weeks: dict[str, tuple[Judgement, ...]], *kinds: str) -> tuple[int, int, str]:
    """A year of such weeks: windows outside, windows judged, and the verdict."""
    judgements = tuple(
        each._replace(node="n", week=f"2026-W{number:02}")
        for number, kind in enumerate(kinds, 1)
        for each in weeks[kind]
    )
    now = datetime.fromtimestamp(MONDAY, UTC)
    findings = Findings(
        limits=Limits(), origin=Origin("lake", "reading", "incident", ()), first=now, last=now, readings=1,
        judgements=judgements,
    )  # fmt: skip
    (clause,) = findings.year_clauses
    found = findings.year("n", clause)
    assert (found.clause, found.windows, found.weeks) == ("frequency-99.5", YEAR, len(kinds))
    return found.outside, found.judged, found.verdict


def test_a_year_of_which_just_enough_is_within_the_limits(weeks: dict[str, tuple[Judgement, ...]]) -> None:
    ordinary = ["ordinary"] * (YEAR_WEEKS - 1)
    assert _year(weeks, *ordinary, "as much as may be") == (15_724, YEAR, PASS)
    assert _year(weeks, *ordinary, "one window more") == (15_725, YEAR, FAIL)
    assert _year(weeks, *["never outside"] * YEAR_WEEKS) == (0, YEAR, PASS)
    # no week is outside its own figure of 95 %
    assert all(
        each.verdict == PASS
        for name in ("ordinary", "as much as may be", "one window more")
        for each in weeks[name]
        if each.clause == "frequency-95"
    )


def test_a_year_of_which_too_little_was_measured_passes_nowhere(weeks: dict[str, tuple[Judgement, ...]]) -> None:
    quiet, good = ["silent"] * 6, ["never outside"] * (YEAR_WEEKS - 6)
    outside, judged, verdict = _year(weeks, *quiet, *good)
    assert (outside, verdict) == (0, TOO_LITTLE) and judged < YEAR * 0.9
    # five weeks are few enough to be missing, and then the share is that of what was measured
    assert _year(weeks, *quiet[:5], *["never outside"] * (YEAR_WEEKS - 5))[2] == PASS
    # a year that has only begun cannot pass; enough of it outside breaks it, whatever comes
    assert _year(weeks, *["ordinary"] * 10)[2] == TOO_LITTLE
