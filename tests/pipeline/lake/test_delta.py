"""The same lake with Delta tables."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline.lake import kit
from tests.pipeline.lake.crashing import Crash, CrashingDisk
from tieline.pipeline.lake import Lake
from tieline.pipeline.lake.compaction import compact

GAINED = kit.TOML.replace('{name = "node", kind = "category"}', '{name = "phase", kind = "integer"}')


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Any:
    return Lake.create(tmp_path / "lake", kit.settings(), form="delta")


def offsets(lake: Lake, table: Any = kit.READING) -> Any:
    path = str(lake.layout.table(table))
    return sorted(DeltaTable(path).to_pyarrow_table()["_offset"].to_pylist()) if DeltaTable.is_deltatable(path) else []


@pytest.mark.timeout(300)
def test_batches_land_evolve_compact_and_are_removed(lake: Lake, spark: SparkSession) -> None:
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [0, 1])})
    lake.evolve(kit.settings(GAINED))
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [2], day=5)})
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [3])})
    assert offsets(lake) == [0, 1, 2, 3]
    rows = lake.read(spark, "reading")
    assert sorted((row["_offset"], row["phase"], row["batch"], row["day"]) for row in rows.collect()) == [
        (0, None, 0, date(2026, 3, 1)), (1, None, 0, date(2026, 3, 1)), (2, None, 1, date(2026, 3, 5)),
        (3, None, 2, date(2026, 3, 1)),
    ]  # fmt: skip
    (found,) = compact(lake, keep_from=date(2026, 3, 2))
    assert (found.rows, found.removed) == (1, 3)
    (reading, *_) = lake.status().tables
    assert (reading.rows, reading.first_day) == (1, "2026-03-05")


def test_every_single_step_of_a_landing_may_be_the_last(tmp_path: Path, lake: Lake) -> None:
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [0])})
    at = 1
    while True:
        shutil.copytree(lake.layout.root, tmp_path / "copy")
        copy = Lake.open(tmp_path / "copy")
        copy.disk = CrashingDisk(at=at)
        try:
            kit.land(copy, {table: kit.rows_of(copy, table, [1]) for table in (kit.READING, kit.SWITCH)})
            break
        except Crash:
            pass
        copy = Lake.open(tmp_path / "copy")
        landed = copy.state().batch == 1
        assert offsets(copy) == ([0, 1] if landed else [0])
        assert offsets(copy, kit.SWITCH) == ([1] if landed else [])
        shutil.rmtree(tmp_path / "copy")
        at += 3
    assert at > 10
