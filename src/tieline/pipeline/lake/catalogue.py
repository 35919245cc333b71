"""Tables of a lake in Spark's catalogue, so that SQL finds them by name, with the rows that they have when it asks.

A partitioned table of files normally shows the partitions that its catalogue was told of, and none of those that land
afterwards.  Ours are registered so that Spark lists the directory instead whenever a session first uses the table: days
and batches that land are there without anybody telling the catalogue.  The columns are those of the lake; new ones need
another call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tieline.pipeline.lake.columns import spark_schema
from tieline.pipeline.lake.lake import Lake
from tieline.pipeline.lake.layout import LakeError, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Whether Spark keeps partitions in the catalogue; decided when a table is made, and kept with it.
_TRACKED: Final = "spark.sql.hive.manageFilesourcePartitions"
#: By which a table is known to be one of ours.
_MARK: Final = "tieline.lake"
_CATALOGUE: Final = "spark.sql.catalogImplementation"
_DELTA: Final = "spark.sql.catalog.spark_catalog"


def is_kept(spark: SparkSession) -> bool:
    """Whether the session's catalogue outlives it."""
    return spark.conf.get(_CATALOGUE, "in-memory") != "in-memory" or "." in (spark.conf.get(_DELTA, "") or "")


def register(spark: SparkSession, lake: Lake, database: str) -> list[str]:
    """Make or renew an entry for each table of a lake; their names.

    A table of another origin that has the name of one of ours is left alone, and nothing is done at all.
    """
    if lake.document.format == "delta" and "delta" not in (spark.conf.get(_DELTA, "") or "").lower():
        raise LakeError(
            f"{lake.where} keeps Delta tables, and this Spark has no Delta in its catalogue: give it the jar and "
            f"{_DELTA}=org.apache.spark.sql.delta.catalog.DeltaCatalog, or read with Lake.read, which needs neither."
        )
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(database)}")
    names = {f"{_quoted(database)}.{_quoted(table.parts[-1])}": table for table in lake.tables()}
    there = [name for name in names if spark.catalog.tableExists(name)]
    for name in there:
        if _origin(spark, name) != lake.document.id:
            raise LakeError(f"{name} is in the catalogue already, and not of this lake: choose another --database.")
    before = spark.conf.get(_TRACKED, "true")
    spark.conf.set(_TRACKED, "false")
    try:
        for name in there:
            # of a table that is somewhere else, this removes the entry alone
            spark.sql(f"DROP TABLE {name}")
        for name, table in names.items():
            spark.sql(_declaration(lake, name, table))
    finally:
        spark.conf.set(_TRACKED, before or "true")
    return list(names)


def _declaration(lake: Lake, name: str, table: Table) -> str:
    place = f"{lake.where}/{table.name}".replace("'", "\\'")
    mark = f"TBLPROPERTIES ('{_MARK}' = '{lake.document.id}')"
    if lake.document.format == "delta":
        return f"CREATE TABLE {name} USING delta LOCATION '{place}' {mark}"
    columns = ", ".join(
        f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in spark_schema(lake.schema(table))
    )
    return f"CREATE TABLE {name} ({columns}) USING parquet PARTITIONED BY (day, batch) LOCATION '{place}' {mark}"


def _origin(spark: SparkSession, name: str) -> str | None:
    rows = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    return next((row["value"] for row in rows if row["key"] == _MARK), None)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
