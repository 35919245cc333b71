"""A table as a Spark DataFrame: the columns of today over the files of always."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tieline.pipeline.lake.columns import spark_schema
from tieline.pipeline.lake.layout import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.lake.lake import Lake


def frame(
    lake: Lake, spark: SparkSession, table: Table, by: str, start: datetime | None, end: datetime | None
) -> DataFrame:
    """The rows of a table whose column ``by`` lies in a span of time; days outside it are not opened."""
    from pyspark.sql import functions as sql

    schema = spark_schema(lake.schema(table))
    if lake.document.format == "delta":
        from tieline.pipeline.lake import delta

        rows = delta.frame(lake, spark, table, schema)
    else:
        directory = lake.layout.table(table)
        if directory.is_dir():
            rows = spark.read.schema(schema).parquet(str(directory))
        else:
            rows = spark.createDataFrame([], schema)
    if start is not None:
        start = _utc(start)
        rows = rows.where((sql.col("day") >= sql.lit(start.date())) & (sql.col(by) >= sql.lit(start)))
    if end is not None:
        end = _utc(end)
        rows = rows.where((sql.col("day") <= sql.lit(end.date())) & (sql.col(by) < sql.lit(end)))
    return rows


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
