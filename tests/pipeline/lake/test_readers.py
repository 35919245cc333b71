"""The readers that the documents show: DuckDB, pandas, polars and Spark find the same rows, each in its own way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline.lake import kit
from tieline.pipeline.lake import Lake
from tieline.pipeline.lake.compaction import compact
from tieline.pipeline.lake.document import Format

pytestmark = pytest.mark.timeout(300)
GAINED = kit.TOML.replace('{name = "node", kind = "category"}', '{name = "phase", kind = "integer"}')
#: What each reader gives: offsets of rows and the column that came later, null before.
EXPECTED = [(0, None), (1, None), (2, None), (3, None)]

Read = Callable[[Path], list[tuple[Any, Any]]]


def filled(place: Path, form: Format) -> Lake:
    """Rows of before and after an event type has gained an attribute, of two days, some of them merged."""
    lake = Lake.create(place, kit.settings(), form=form)
    for number in range(2):
        kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [number])})
    list(compact(lake))
    lake.evolve(kit.settings(GAINED))
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [2], day=5)})
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [3])})
    return lake


def pairs(frame: pd.DataFrame) -> list[tuple[Any, Any]]:
    found = frame.sort_values("_offset")
    phases = [None if pd.isna(each) else int(each) for each in found["phase"]]
    return list(zip(found["_offset"].tolist(), phases, strict=True))


def newest(root: Path) -> Path:
    """A file of the last batch: it has every column."""
    files = (root / "events" / "reading").glob("**/*.parquet")
    return max(files, key=lambda path: int(path.parent.name.removeprefix("batch=")))


def plain_duckdb(root: Path) -> list[tuple[Any, Any]]:
    files = f"{root}/events/reading/**/*.parquet"
    with duckdb.connect() as database:
        return database.execute(
            "SELECT _offset, phase FROM read_parquet(?, hive_partitioning = true, union_by_name = true) "
            "WHERE day >= DATE '2026-03-01' ORDER BY 1",
            [files],
        ).fetchall()


def plain_pandas(root: Path) -> list[tuple[Any, Any]]:
    schema = ds.dataset(newest(root)).schema
    return pairs(pd.read_parquet(root / "events" / "reading", schema=schema, filters=[("_offset", ">=", 0)]))


def plain_polars(root: Path) -> list[tuple[Any, Any]]:
    pl = pytest.importorskip("polars")
    files = f"{root}/events/reading/**/*.parquet"
    schema = pl.read_parquet_schema(newest(root))
    rows = pl.scan_parquet(files, schema=schema, missing_columns="insert", hive_partitioning=True)
    rows = rows.filter(pl.col("day") >= datetime(2026, 3, 1, tzinfo=UTC).date())
    return [(row[0], row[1]) for row in rows.select("_offset", "phase").sort("_offset").collect().rows()]


def delta_duckdb(root: Path) -> list[tuple[Any, Any]]:
    rows = DeltaTable(root / "events" / "reading").to_pyarrow_dataset()
    with duckdb.connect() as database:
        database.register("reading", rows)
        return database.execute("SELECT _offset, phase FROM reading ORDER BY 1").fetchall()


def delta_pandas(root: Path) -> list[tuple[Any, Any]]:
    return pairs(DeltaTable(root / "events" / "reading").to_pandas(columns=["_offset", "phase"]))


def delta_polars(root: Path) -> list[tuple[Any, Any]]:
    pl = pytest.importorskip("polars")
    rows = pl.scan_delta(str(root / "events" / "reading")).select("_offset", "phase").sort("_offset").collect().rows()
    return [(row[0], row[1]) for row in rows]


@pytest.mark.parametrize("read", [plain_duckdb, plain_pandas, plain_polars])
def test_plain_tables(tmp_path: Path, read: Read) -> None:
    filled(tmp_path / "lake", "parquet")
    assert read(tmp_path / "lake") == EXPECTED


@pytest.mark.parametrize("read", [delta_duckdb, delta_pandas, delta_polars])
def test_delta_tables(tmp_path: Path, read: Read) -> None:
    filled(tmp_path / "lake", "delta")
    assert read(tmp_path / "lake") == EXPECTED


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_spark(tmp_path: Path, spark: SparkSession, form: Format) -> None:
    rows = filled(tmp_path / "lake", form).read(spark, "reading").select("_offset", "phase").collect()
    assert sorted(map(tuple, rows)) == EXPECTED


def test_spark_without_us_merges_the_columns_of_plain_tables(tmp_path: Path, spark: SparkSession) -> None:
    filled(tmp_path / "lake", "parquet")
    directory = str(tmp_path / "lake" / "events" / "reading")
    rows = spark.read.option("mergeSchema", "true").parquet(directory).select("_offset", "phase").collect()
    assert sorted(map(tuple, rows)) == EXPECTED
    # each file has every column that was known when it was written
    newest = spark.read.parquet(f"{directory}/day=2026-03-05")
    assert "phase" in newest.columns
