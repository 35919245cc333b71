"""A power-quality study of a lake: from its tables to findings, in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from tieline.pipeline.jobs.quality import columns as mapping
from tieline.pipeline.jobs.quality.columns import Columns, Unmapped
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.lake import Lake
from tieline.pipeline.report.findings import Findings, Origin
from tieline.pipeline.report.gather import Unassessable, gather, offsets

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
        happened = _happened(spark, lake, question) if has_incidents else spark.createDataFrame([], _NO_INCIDENTS)
    except Unmapped as problem:
        raise Unassessable(f"events of type {question.event} cannot be judged: {problem}.") from None
    found = offsets(table)
    if not found:
        when = " in that time" if question.start or question.end else ""
        raise Unassessable(
            f'{lake.layout.root} holds no events of type "{question.event}"{when}; `tieline pipeline status` says what '
            "it holds."
        )
    origin = Origin(
        lake=str(lake.layout.root),
        event=question.event,
        incident_event=question.incident_event if has_incidents else None,
        offsets=found,
    )
    return gather(readings, happened, question.limits, origin, told)


def _span(question: Question) -> tuple[datetime | None, datetime | None]:
    """Which times readings must have: one that ends at the start is about the time before, one at the end counts."""
    slip = timedelta(microseconds=1 if question.columns.stamped == "end" else 0)
    return question.start and question.start + slip, question.end and question.end + slip


def _happened(spark: SparkSession, lake: Lake, question: Question) -> DataFrame:
    table = lake.read(spark, question.incident_event, question.start, question.end)
    return mapping.incidents(table, question.columns)
