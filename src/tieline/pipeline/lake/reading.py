"""What a lake holds: a table as a Spark DataFrame, with the columns of today, and its size from the files alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq

from tieline.pipeline.lake.columns import spark_schema
from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.layout import Layout, Table, day_of, files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, layout: Layout, document: Document, table: Table) -> DataFrame:
    """All rows of a table."""
    schema, directory = spark_schema(document.schema(table)), layout.table(table)
    if document.format == "delta":
        from tieline.pipeline.lake import delta

        return delta.frame(spark, directory, schema)
    if directory.is_dir():
        return spark.read.schema(schema).parquet(str(directory))
    return spark.createDataFrame([], schema)


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


class TableStatus(msgspec.Struct, frozen=True):
    """What one table holds."""

    name: str
    rows: int
    files: int
    bytes: int
    #: The first and the last day that has rows.
    first_day: str | None
    last_day: str | None


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


def status_of(layout: Layout, document: Document, state: State, tables: Iterable[Table]) -> Status:
    """What some tables of a lake hold, by looking at their files."""
    return Status(
        lake=str(layout.root),
        id=document.id,
        format=document.format,
        batch=state.batch,
        landed=state.landed,
        positions=dict(sorted(state.positions.items())),
        history_files=len(state.history) + len(state.files),
        tables=[_table(table.name, _files(document, layout.table(table))) for table in tables],
    )


def _files(document: Document, directory: Path) -> list[Path]:
    if document.format == "delta":
        from tieline.pipeline.lake import delta

        return delta.files(directory)
    return files(directory)


def _table(name: str, found: list[Path]) -> TableStatus:
    days = sorted({day_of(path) for path in found})
    return TableStatus(
        name=name,
        rows=sum(pq.read_metadata(path).num_rows for path in found),
        files=len(found),
        bytes=sum(path.stat().st_size for path in found),
        first_day=days[0] if days else None,
        last_day=days[-1] if days else None,
    )
