"""Tables in Spark's catalogue: they show their rows, also those that land afterwards, and leave others alone."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.lake import kit
from tieline.pipeline.lake import Lake, LakeError
from tieline.pipeline.lake.catalogue import register

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(name="database")
def _database(spark: SparkSession) -> Iterator[str]:
    name = f"grid_{secrets.token_hex(4)}"
    yield name
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


def rows(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT _offset, batch, day FROM {table}").collect())


def test_a_table_shows_what_lands(spark: SparkSession, tmp_path: Path, database: str) -> None:
    lake = Lake.create(tmp_path / "lake's", kit.settings())
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [0, 1])})
    names = register(spark, lake, database)
    reading = f"`{database}`.`reading`"
    assert reading in names and f"`{database}`.`quarantine`" in names
    assert [row[:2] for row in rows(spark, reading)] == [(0, 0), (1, 0)]
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [2], day=5)})
    spark.catalog.refreshTable(reading)
    assert [row[:2] for row in rows(spark, reading)] == [(0, 0), (1, 0), (2, 1)]
    days = spark.sql(f"SELECT _offset FROM {reading} WHERE day = DATE'2026-03-05'").collect()
    assert [row["_offset"] for row in days] == [2]
    # a new attribute is a column after another call, and nothing is lost by it
    lake.evolve(kit.settings(kit.TOML.replace('{name = "node"', '{name = "phase", kind = "integer"}, {name = "node"')))
    register(spark, lake, database)
    assert "phase" in spark.table(reading).columns
    assert len(rows(spark, reading)) == 3


def test_a_table_of_somebody_else_is_left_alone(spark: SparkSession, tmp_path: Path, database: str) -> None:
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"CREATE TABLE {database}.reading (a INT) USING parquet LOCATION '{tmp_path / 'other'}'")
    lake = Lake.create(tmp_path / "lake", kit.settings())
    with pytest.raises(LakeError, match="not of this lake: choose another --database"):
        register(spark, lake, database)
    assert spark.table(f"{database}.reading").columns == ["a"]
    assert not spark.catalog.tableExists(f"{database}.quarantine")


def test_delta_needs_its_jar(spark: SparkSession, tmp_path: Path, database: str) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings(), form="delta")
    with pytest.raises(LakeError, match=r"has no Delta in its catalogue: .* or read with Lake\.read"):
        register(spark, lake, database)
