"""A power-quality study of a lake: from its tables to the plain values of a report; here the jobs really run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple  # Any: a record type for each table

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality import columns as mapping
from tieline.pipeline.jobs.quality import weeks
from tieline.pipeline.jobs.quality.assessment import Assessment, assess
from tieline.pipeline.jobs.quality.columns import Columns, Unmapped
from tieline.pipeline.jobs.quality.limits import Limits, Quantity
from tieline.pipeline.lake import Lake
from tieline.pipeline.report.findings import (
    Cell,
    Findings,
    IncidentCount,
    Interval,
    Judgement,
    Offsets,
    Origin,
    ZoneTime,
    natural,
)

#: More weeks than this are a meter with a wrong clock rather than ten years of data.
_MOST_WEEKS: Final = 530
#: Intervals listed for each quantity.
_WORST: Final = 10


class Unassessable(Exception):
    """There is nothing to judge, or nothing that can be judged in one report; the message is a sentence."""


def gather(
    readings: DataFrame,
    happened: DataFrame,
    limits: Limits,
    origin: Origin,
    told: Callable[[str], None] = lambda _step: None,
) -> Findings:
    """Run the assessment and collect what a report shows; ``told`` is called with the name of each step."""
    told("looking at the readings")
    extent = _extent(readings)
    assessment = assess(readings, happened, limits)
    for table in assessment.kept:
        table.persist()
    try:
        return _collect(assessment, extent, limits, origin, told)
    finally:
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


def _extent(readings: DataFrame) -> _Extent:
    first, last, count = readings.agg(
        sql.unix_micros(sql.min("time")), sql.unix_micros(sql.max("time")), sql.count(sql.lit(1))
    ).collect()[0]
    if count == 0:
        raise Unassessable("there are no readings in that time")
    # Readings that end a window were moved into it by a microsecond; people need not see that.
    extent = _Extent(_instant(round(first, -3)), _instant(round(last, -3)), count)
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
    assessment: Assessment, extent: _Extent, limits: Limits, origin: Origin, told: Callable[[str], None]
) -> Findings:
    told("10-minute and 10-second means, verdicts")
    judgements = _rows(assessment.verdicts, Judgement)
    told("time in zones")
    zones = _rows(assessment.zones, ZoneTime)
    told("incidents, worst intervals and the voltage/frequency plane")
    pace = assessment.cadence.agg(sql.min("every_s"), sql.max("every_s")).collect()[0]
    return Findings(
        limits=limits,
        origin=origin,
        first=extent.first,
        last=extent.last,
        readings=extent.readings,
        judgements=judgements,
        zones=zones,
        incidents=_rows(assessment.incidents, IncidentCount),
        worst=_worst(assessment.voltage, "voltage", limits) + _worst(assessment.frequency, "frequency", limits),
        plane=tuple(Cell(*row) for row in assessment.plane.collect()),
        every_s=None if pace[0] is None else (pace[0], pace[1]),
    )


def _rows(table: DataFrame, kind: Any) -> tuple[Any, ...]:
    """A table's rows as named tuples, with the week's label for its Monday, in a fixed order."""
    labelled = table.withColumn("week", weeks.label(sql.col("monday"))).select(*kind._fields)
    return tuple(sorted((kind(*row) for row in labelled.collect()), key=lambda row: (natural(row.node), row)))


def _worst(means: DataFrame, quantity: Quantity, limits: Limits) -> tuple[Interval, ...]:
    """The means furthest from nominal."""
    percent = (sql.col("value") / limits.nominal(quantity) - 1) * 100
    rows = means.where("measured").select("node", "start", "value", percent.alias("percent"), "flagged")
    if quantity == "frequency":
        # All nodes of a network share one frequency: the same ten seconds of every node would fill the list.
        furthest = sql.max_by(sql.struct("node", "start", "value", "percent", "flagged"), sql.abs("percent"))
        rows = rows.groupBy("start").agg(furthest.alias("one")).select("one.*")
    listed = (
        rows.withColumn("start", sql.unix_micros("start"))
        .orderBy(sql.abs("percent").desc(), "node", "start")
        .limit(_WORST)
    )
    return tuple(
        Interval(quantity, node, _instant(start), value, off, is_flagged)
        for node, start, value, off, is_flagged in listed.collect()
    )


_NO_INCIDENTS = "node string, time timestamp, kind string, residual double, duration double"


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
        happened = _happened(lake, spark, question) if has_incidents else spark.createDataFrame([], _NO_INCIDENTS)
    except Unmapped as problem:
        raise Unassessable(f"events of type {question.event} cannot be judged: {problem}.") from None
    found = offsets(table)
    if not found:
        when = " in that time" if question.start or question.end else ""
        raise Unassessable(
            f'{lake.where} holds no events of type "{question.event}"{when}; `tieline pipeline status` says what '
            "it holds."
        )
    origin = Origin(
        lake=lake.where,
        event=question.event,
        incident_event=question.incident_event if has_incidents else None,
        offsets=found,
    )
    return gather(readings, happened, question.limits, origin, told)


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
