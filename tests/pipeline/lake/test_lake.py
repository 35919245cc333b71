from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from tests.kits.patience import PATIENCE_S
from tests.pipeline.lake import kit
from tieline.pipeline.lake import Changed, Lake, LakeError, NotALake, Overtaken
from tieline.pipeline.lake.compaction import Merge, compact, here
from tieline.pipeline.lake.disk import Busy, locked

GAINED = kit.TOML.replace('{name = "node", kind = "category"}', '{name = "phase", kind = "integer"}')


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Any:
    return Lake.create(tmp_path / "lake", kit.settings())


def landed(lake: Lake, *numbers: Any) -> Any:
    for number in numbers:
        kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [number])})


def test_duckdb_and_pandas_and_pyarrow_read_plain_files(lake: Lake) -> None:
    landed(lake, 0, 1)
    lake.evolve(kit.settings(GAINED))
    landed(lake, 2)
    root = lake.plain.layout.root
    query = f"""select _offset, phase, node, day, batch from read_parquet(
        '{root}/events/reading/**/*.parquet', hive_partitioning=true, union_by_name=true) order by 1"""
    found = duckdb.connect().execute(query).fetchall()
    assert [(row[0], row[1], str(row[3]), row[4]) for row in found] == [
        (0, None, "2026-03-01", 0), (1, None, "2026-03-01", 1), (2, None, "2026-03-01", 2),
    ]  # fmt: skip
    assert sorted(pd.read_parquet(root / "events" / "reading")["_offset"]) == [0, 1, 2]
    schema = lake.schema(kit.READING)
    assert sorted(
        ds.dataset(root / "events/reading", partitioning="hive", schema=schema).to_table()["_offset"].to_pylist()
    ) == [0, 1, 2]


@pytest.mark.timeout(300)
def test_spark_reads_the_columns_of_today_and_only_the_days_asked_for(lake: Lake, spark: SparkSession) -> None:
    landed(lake, 0)
    kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [7], day=9)})
    lake.evolve(kit.settings(GAINED))
    landed(lake, 2)
    rows = lake.read(spark, "reading")
    assert rows.columns[-4:] == ["node", "phase", "day", "batch"]
    assert sorted(row["_offset"] for row in rows.collect()) == [0, 2, 7]
    start = pd.Timestamp("2026-03-02", tz="UTC").to_pydatetime()
    assert [row["_offset"] for row in lake.read(spark, "reading", start=start).collect()] == [7]
    plan = lake.read(spark, "reading", end=start)._jdf.queryExecution().toString()
    assert "PartitionFilters: [isnotnull(day" in plan
    assert lake.quarantine(spark).columns[-3:] == ["reason", "day", "batch"]
    assert lake.duplicates(spark).columns[-4:] == ["reason", "first_offset", "day", "batch"]
    with pytest.raises(LakeError, match="knows no event type"):
        lake.read(spark, "nothing")


def test_schema_evolution(lake: Lake) -> None:
    lake.evolve(kit.settings(GAINED))
    known = json.loads(lake.plain.layout.document.read_text())["types"]["reading"]
    assert list(known["columns"]) == ["time", "voltage", "current", "frequency", "node", "phase"]
    assert known["columns"]["node"]["until"] is not None and known["columns"]["phase"]["until"] is None
    assert known["clustering"]["attributes"] == ["voltage", "current", "frequency"]
    lake.evolve(kit.settings())
    known = Lake.open(lake.plain.layout.root).document.types["reading"].columns
    assert known["node"].until is None and known["phase"].until is not None


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            '{name = "voltage", bounds = [0.0, 500.0]}',
            '{name = "voltage", kind = "category"}',
            "is a category now and a number",
        ),
        ('{name = "node", kind = "category"}', '{name = "NODE", kind = "category"}', "capitals"),
        ('{name = "node", kind = "category"}', '{name = "day", kind = "category"}', "name of another column"),
        ('{name = "node", kind = "category"}', '{name = "_offset"}', "name of another column"),
        ("[event.switch]", "[event.other]", "may not be called other"),
    ],
)
def test_changes_that_tables_cannot_follow_are_refused(lake: Lake, before: str, after: str, said: str) -> None:
    assert before in kit.TOML
    with pytest.raises(Changed, match=said):
        lake.evolve(kit.settings(kit.TOML.replace(before, after)))
    assert Lake.open(lake.plain.layout.root).document == lake.document


def test_a_batch_that_follows_another_one_than_the_last_is_refused(lake: Lake) -> None:
    before = lake.state()
    landed(lake, 0)
    with lake.attempt() as attempt, pytest.raises(Overtaken, match=r"batch 0 has landed .* follows batch -1"):
        lake.land(attempt, before, before)
    assert lake.state().batch == 0


def test_a_merge_that_was_carried_out_twice_counts_once(lake: Lake) -> None:
    landed(lake, 0, 1, 2)

    def twice(merges: Sequence[Merge]) -> list[str]:
        here(merges)
        return here(merges)

    (found,) = compact(lake, run=twice)
    assert (found.files_after, found.rows) == (1, 3)
    assert kit.offsets_in(lake, kit.READING) == [0, 1, 2]


def test_directories_that_are_no_lakes(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(NotALake, match="is no lake"):
        Lake.open(tmp_path)
    with pytest.raises(LakeError, match="is a lake already"):
        Lake.create(lake.plain.layout.root)
    with pytest.raises(LakeError, match="not empty"):
        Lake.create(tmp_path)
    lake.plain.layout.document.write_text('{"version": 99}')
    with pytest.raises(NotALake, match="version 99"):
        Lake.open(lake.plain.layout.root)
    lake.plain.layout.document.write_text("{")
    with pytest.raises(NotALake, match="cannot be read"):
        Lake.open(lake.plain.layout.root)


def test_one_ingest_and_one_compaction_at_a_time(lake: Lake) -> None:
    with lake.ingesting(), pytest.raises(Busy, match="another process ingests"), lake.ingesting():
        pass
    with locked(lake.plain.layout.compact_lock), pytest.raises(Busy, match="compacts"):
        list(compact(lake))


def test_work_of_others_is_left_alone_and_that_of_the_dead_removed(lake: Lake, tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys, time
        from tieline.pipeline.lake import Lake
        lake = Lake.open(sys.argv[1])
        with lake.attempt():
            print("ready", flush=True)
            time.sleep(60)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lake.plain.layout.root)],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        Lake.open(lake.plain.layout.root)
        assert len(list(lake.plain.layout.staging.iterdir())) == 1
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    Lake.open(lake.plain.layout.root)
    assert list(lake.plain.layout.staging.iterdir()) == []


def test_compaction_while_batches_land(lake: Lake) -> None:
    landed(lake, 0, 1)

    def run(merges: Any) -> Any:
        from tieline.pipeline.lake.compaction import here

        landed(lake, 2)
        return here(merges)

    (found,) = compact(lake, run=run)
    assert (found.files_before, found.files_after, found.rows) == (3, 2, 3)
    assert kit.offsets_in(lake, kit.READING) == [0, 1, 2]
    (found,) = compact(lake)
    assert (found.files_after, found.rows) == (1, 3)
    assert list(compact(lake)) == []


def test_compaction_that_would_lose_rows_changes_nothing(lake: Lake) -> None:
    landed(lake, 0, 1)
    with pytest.raises(LakeError, match="would have 0 rows after compaction and has 2"):
        list(compact(lake, run=lambda merges: []))
    assert kit.offsets_in(lake, kit.READING) == [0, 1]


def test_status(lake: Lake) -> None:
    landed(lake, 0, 1)
    found = lake.status()
    (reading,) = (each for each in found.tables if each.name == "events/reading")
    assert (reading.rows, reading.files, reading.first_day, reading.last_day) == (2, 2, "2026-03-01", "2026-03-01")
    assert (found.batch, found.format) == (1, "parquet")


def test_who_asks_for_days_has_no_others_listed(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    for number in range(4):
        kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [number], day=1 + number)})
    asked: list[str] = []

    class Reader:
        """Spark's reader; remembers what it is to list."""

        def __init__(self) -> None:
            self._real = spark.read

        def schema(self, given: Any) -> Reader:
            self._real.schema(given)
            return self

        def option(self, name: str, value: str) -> Reader:
            self._real.option(name, value)
            return self

        def parquet(self, *paths: str) -> Any:
            asked[:] = [Path(each).name for each in paths]
            return self._real.parquet(*paths)

    class Session:
        createDataFrame = spark.createDataFrame  # noqa: N815 - Spark's name

        @property
        def read(self) -> Reader:
            return Reader()

    def offsets(**span: Any) -> list[tuple[int, str, int]]:
        rows = Lake.open(lake.where).read(Session(), "reading", **span).collect()  # type: ignore[arg-type]
        return sorted((row["_offset"], str(row["day"]), row["batch"]) for row in rows)

    everything = [(number, f"2026-03-{1 + number:02}", number) for number in range(4)]
    assert offsets() == everything
    assert asked == ["reading"]
    two = {"start": datetime(2026, 3, 2, tzinfo=UTC), "end": datetime(2026, 3, 3, 13, tzinfo=UTC)}
    assert offsets(**two) == everything[1:3]
    assert asked == ["day=2026-03-02", "day=2026-03-03"]
    assert offsets(start=datetime(2027, 1, 1, tzinfo=UTC)) == []
