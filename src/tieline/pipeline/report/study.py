"""A power-quality study of a lake: from its tables to the plain values of a report; here the jobs really run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple  # Any: a record type for each table

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import columns as mapping
from tieline.pipeline.jobs.quality import incidents as tables
from tieline.pipeline.jobs.quality import overview, weeks
from tieline.pipeline.jobs.quality.assessment import Assessment, assess
from tieline.pipeline.jobs.quality.columns import Columns, Unmapped
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import FREQUENCY, VOLTAGE
from tieline.pipeline.lake import Lake
from tieline.pipeline.report.findings import (
    Cell,
    Course,
    Findings,
    Incident,
    IncidentCount,
    Interval,
    Judgement,
    LeftOut,
    Offsets,
    Origin,
    ZoneTime,
    natural,
)

#: More weeks than this are a meter with a wrong clock rather than ten years of data.
_MOST_WEEKS: Final = 530
#: Intervals listed for each quantity, incidents listed, and spans of windows that were left out.
_WORST: Final = 10
_LISTED: Final = 200
#: Nodes whose voltage is drawn, the worst ones, and about how many points each has.
_DRAWN: Final = 48
_POINTS: Final = 168
_HOUR_S: Final = 3_600
#: Jobs at once: while one is planned by a single thread, others have the processors.
_AT_ONCE: Final = 3


class Unassessable(Exception):
    """There is nothing to judge, or nothing that can be judged in one report; the message is a sentence."""


class NoReadings(Unassessable):
    """There are no readings at all."""


def gather(
    readings: DataFrame,
    happened: DataFrame,
    limits: Limits,
    origin: Callable[[], Origin],
    told: Callable[[str], None] = lambda _step: None,
) -> Findings:
    """Run the assessment and collect what a report shows; ``told`` is called with the name of each step.

    ``origin`` is asked while other jobs run.
    """
    told("looking at the readings")
    assessment = assess(readings, happened, limits)
    for table in assessment.kept:
        table.persist()
    pool = ThreadPoolExecutor(_AT_ONCE, "tieline-quality")
    try:
        return _collect(assessment, limits, origin, told, pool)
    finally:
        # who interrupts does not wait for jobs that the session's end stops anyway
        pool.shutdown(wait=False, cancel_futures=True)
        for table in assessment.kept:
            table.unpersist()


def offsets(table: DataFrame) -> tuple[Offsets, ...]:
    """Which offsets of which broker's log are in a table of the lake."""
    ends = sql.min("_offset"), sql.max("_offset"), sql.count(sql.lit(1))
    return tuple(Offsets(*row) for row in table.groupBy("_shard").agg(*ends).orderBy("_shard").collect())


class _Extent(NamedTuple):
    first: datetime
    last: datetime
    readings: int
    #: The shortest and the longest usual interval.
    every_s: tuple[float, float] | None


def _extent(roster: DataFrame) -> _Extent:
    ends = sql.unix_micros(sql.min("first")), sql.unix_micros(sql.max("last"))
    pace = sql.min("every_s"), sql.max("every_s")
    first, last, count, least, most = roster.agg(*ends, sql.sum("readings"), *pace).collect()[0]
    if not count:
        raise NoReadings("there are no readings in that time")
    # Readings that end a window were moved into it by a microsecond; people need not see that.
    every_s = None if least is None else (least, most)
    extent = _Extent(_instant(round(first, -3)), _instant(round(last, -3)), count, every_s)
    if (extent.last - extent.first).days > _MOST_WEEKS * 7:
        raise Unassessable(
            f"the readings claim to be from {extent.first:%Y-%m-%d} to {extent.last:%Y-%m-%d}, more than "
            f"{_MOST_WEEKS} weeks: choose the time with --from and --to"
        )
    return extent


def _instant(micros: int) -> datetime:
    """Spark hands timestamps over on this machine's wall clock; a number has no clock."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _collect(
    assessment: Assessment,
    limits: Limits,
    origin: Callable[[], Origin],
    told: Callable[[str], None],
    pool: ThreadPoolExecutor,
) -> Findings:
    from_where = pool.submit(origin)
    extent = _extent(assessment.roster)
    told("means, verdicts and time in zones")
    judgements = pool.submit(_rows, assessment.verdicts, Judgement)
    zones = pool.submit(_rows, assessment.zones, ZoneTime)
    plane = pool.submit(lambda: tuple(sorted(Cell(*row) for row in assessment.plane.collect())))
    counts = pool.submit(_rows, tables.table(assessment.incidents), IncidentCount)
    listed = pool.submit(_listed, assessment.incidents)
    known = Findings(
        limits=limits,
        origin=from_where.result(),
        first=extent.first,
        last=extent.last,
        readings=extent.readings,
        judgements=judgements.result(),
        zones=zones.result(),
        incidents=counts.result(),
        listed=listed.result(),
        plane=plane.result(),
        every_s=extent.every_s,
    )
    told("the course of the voltage, what was left out, and the worst intervals")
    span_s = (extent.last - extent.first).total_seconds()
    course_s = max(_HOUR_S, round(span_s / _POINTS / _HOUR_S) * _HOUR_S)
    course = pool.submit(_course, assessment, worst_nodes(known, _DRAWN), course_s)
    left_out = pool.submit(_left_out, assessment.left_out)
    worst = [pool.submit(_worst, assessment.means, quantity, limits) for quantity in (VOLTAGE, FREQUENCY)]
    return replace(
        known,
        course=course.result(),
        course_s=course_s,
        left_out=left_out.result(),
        worst=tuple(interval for some in worst for interval in some.result()),
    )


def worst_nodes(findings: Findings, most: int) -> list[str]:
    """At most so many nodes: those that failed first, then those with the smallest share of good voltage."""
    clause = findings.main_clauses(VOLTAGE)[0]

    def goodness(node: str) -> tuple[bool, float]:
        share = findings.lowest_share(node, clause)
        return findings.node_verdict(node) != "fail", 2.0 if share is None else share

    return sorted(sorted(findings.nodes, key=goodness)[:most], key=natural)


def _rows(table: DataFrame, kind: Any) -> tuple[Any, ...]:
    """A table's rows as named tuples, with the week's label for its Monday, in a fixed order."""
    labelled = table.withColumn("week", weeks.label(sql.col("monday"))).select(*kind._fields)
    return tuple(sorted((kind(*row) for row in labelled.collect()), key=lambda row: (natural(row.node), row)))


def _listed(incidents: DataFrame) -> tuple[Incident, ...]:
    """The incidents that went furthest from nominal, the earliest first."""
    if "phases" not in incidents.columns:
        incidents = incidents.withColumn("phases", sql.lit(None).cast("string"))
    far = sql.abs(sql.when(sql.col("kind") == tables.RAPID, sql.col("percent")).otherwise(sql.col("percent") - 100))
    some = (
        incidents.orderBy(far.desc_nulls_last(), "time", "node")
        .limit(_LISTED)
        .withColumn("start", sql.unix_micros("time"))
        .select(*Incident._fields)
    )
    rows = (Incident(row[0], _instant(row[1]), *row[2:]) for row in some.collect())
    return tuple(sorted(rows, key=lambda row: (row.start, natural(row.node))))


def _left_out(table: DataFrame) -> tuple[LeftOut, ...]:
    """The longest spans, in the order of nodes and time."""
    rows = table.orderBy((sql.col("begin") - sql.col("end")).asc(), "begin", "node").limit(_LISTED).collect()
    found = [
        LeftOut(node, quantity, phase, why, _instant(begin * 10**6), _instant(end * 10**6), windows)
        for node, quantity, phase, why, begin, end, windows in rows
    ]
    return tuple(sorted(found, key=lambda row: (natural(row.node), row.begin, row.phase, row.quantity)))


def _course(assessment: Assessment, nodes: Sequence[str], bucket_s: int) -> tuple[Course, ...]:
    chosen = assessment.means.where(sql.col("node").isin(list(nodes)))
    rows = overview.over_time(chosen, bucket_s).collect()
    found = [
        Course(row.node, row.phase, _instant(row.bucket * bucket_s * 10**6), row.low, row.mean, row.high)
        for row in rows
    ]
    return tuple(sorted(found, key=lambda row: (natural(row.node), row.phase, row.start)))


def _worst(means: DataFrame, quantity: str, limits: Limits) -> tuple[Interval, ...]:
    """The means furthest from nominal."""
    percent = (sql.col("value") / limits.nominal(quantity) - 1) * 100
    rows = means.where(sql.col("measured") & (sql.col("quantity") == quantity)).select(
        "node", "phase", "start", "value", percent.alias("percent"), "flagged"
    )
    if quantity == FREQUENCY:
        # All nodes of a network share one frequency: the same ten seconds of every node would fill the list.
        furthest = sql.max_by(sql.struct("node", "phase", "start", "value", "percent", "flagged"), sql.abs("percent"))
        rows = rows.groupBy("start").agg(furthest.alias("one")).select("one.*")
    listed = (
        rows.withColumn("start", sql.unix_micros("start"))
        .orderBy(sql.abs("percent").desc(), "node", "start")
        .limit(_WORST)
    )
    return tuple(
        Interval(quantity, node, phase, _instant(start), value, off, is_flagged)
        for node, phase, start, value, off, is_flagged in listed.collect()
    )


_INCIDENTS: Final = {
    "node": "string",
    "time": "timestamp",
    "kind": "string",
    "residual": "double",
    "duration": "double",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which events of a lake are judged, and by what."""

    limits: Limits = field(default_factory=Limits)
    event: str = "reading"
    incident_event: str = "incident"
    columns: Columns = field(default_factory=Columns)
    start: datetime | None = None
    end: datetime | None = None


def study(
    spark: SparkSession, lake: Lake, question: Question, told: Callable[[str], None] = lambda _step: None
) -> Findings:
    """Run the whole assessment. Raises ``Unassessable`` with a sentence when the lake has nothing to judge."""
    told("looking at the tables")
    table = lake.read(spark, question.event, *_span(question))
    try:
        readings = mapping.readings(table, question.columns)
        has_incidents = question.incident_event in lake.document.types
        happened = _happened(lake, spark, question) if has_incidents else _none(spark)
    except Unmapped as problem:
        raise Unassessable(f"events of type {question.event} cannot be judged: {problem}.") from None

    def origin() -> Origin:
        return Origin(
            lake=lake.where,
            event=question.event,
            incident_event=question.incident_event if has_incidents else None,
            offsets=offsets(table),
        )

    try:
        return gather(readings, happened, question.limits, origin, told)
    except NoReadings:
        when = " in that time" if question.start or question.end else ""
        raise Unassessable(
            f'{lake.where} holds no events of type "{question.event}"{when}; `tieline pipeline status` says what '
            "it holds."
        ) from None


def _none(spark: SparkSession) -> DataFrame:
    """No incidents, as Spark knows already when it plans: what would be computed of them is not even compiled."""
    empty = [sql.lit(None).cast(kind).alias(name) for name, kind in _INCIDENTS.items()]
    return spark.range(1).select(*empty).where(sql.lit(col=False))


def _span(question: Question) -> tuple[datetime | None, datetime | None]:
    """Which times readings must have: one that ends at the start is about the time before, one at the end counts."""
    slip = timedelta(microseconds=1 if question.columns.stamped == "end" else 0)
    return question.start and question.start + slip, question.end and question.end + slip


def _happened(lake: Lake, spark: SparkSession, question: Question) -> DataFrame:
    """The incidents of that time, and those that had begun before and were not over."""
    found = mapping.incidents(lake.read(spark, question.incident_event, None, question.end), question.columns)
    if question.start is None:
        return found
    over = sql.unix_micros("time") / 1e6 + sql.coalesce(sql.nanvl("duration", sql.lit(0.0)), sql.lit(0.0))
    return found.where((sql.col("time") >= sql.lit(question.start)) | (over > question.start.timestamp()))
