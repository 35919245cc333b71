"""What a lake holds, as its readers ask for it: rows in a span of time, and how much there is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.keeper import Days, TableStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def days(start: datetime | None, end: datetime | None) -> Days:
    """The days that may have rows of a span of time."""
    return Days(None if start is None else _utc(start).date(), None if end is None else _utc(end).date())


def within(rows: DataFrame, by: str, start: datetime | None, end: datetime | None) -> DataFrame:
    """The rows of a table whose column ``by`` lies in a span of time; days outside it are not opened."""
    from pyspark.sql import functions as sql

    if start is not None:
        start = _utc(start)
        rows = rows.where((sql.col("day") >= sql.lit(start.date())) & (sql.col(by) >= sql.lit(start)))
    if end is not None:
        end = _utc(end)
        rows = rows.where((sql.col("day") <= sql.lit(end.date())) & (sql.col(by) < sql.lit(end)))
    return rows


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


class Status(msgspec.Struct, frozen=True):
    """What a lake holds, and how far ingest has come."""

    lake: str
    id: str
    format: str
    #: The number of the last batch and when it landed.
    batch: int
    landed: str | None
    #: The offset behind the last record of each broker's log.
    positions: dict[str, int]
    history_files: int
    tables: list[TableStatus]


def status_of(where: str, document: Document, state: State, tables: list[TableStatus]) -> Status:
    """What a lake holds, from what is known of it and of its tables."""
    return Status(
        lake=where,
        id=document.id,
        format=document.format,
        batch=state.batch,
        landed=state.landed,
        positions=dict(sorted(state.positions.items())),
        history_files=len(state.history) + len(state.files),
        tables=tables,
    )
