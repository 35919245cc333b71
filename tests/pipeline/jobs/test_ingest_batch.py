"""Batches of ingest without Spark: tasks run one after the other in this process."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.pipeline.decode.records import prop, record, table
from tests.pipeline.lake import kit
from tieline.pipeline.jobs import ingest_batch, ingest_task
from tieline.pipeline.jobs.ingest_batch import Batch, Ingest
from tieline.pipeline.jobs.ingest_task import Work
from tieline.pipeline.lake import DUPLICATES, QUARANTINE, Lake, Table
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.layout import events

TABLES = (kit.READING, kit.SWITCH, events("other"), Table((QUARANTINE,)), Table((DUPLICATES,)))


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


def batch_of(records: Sequence[dict[str, Any]], number: int, tasks: int = 2) -> Batch:
    """Records as a batch of several tasks."""

    def run(work: Work) -> Iterator[tuple[str, bytes]]:
        size = max(1, -(-len(records) // tasks))
        for begin in range(0, len(records), size):
            part = table(records[begin : begin + size]).to_batches(max_chunksize=3)
            for report in ingest_task.run(part, work):
                yield from zip(report["kind"].to_pylist(), report["data"].to_pylist(), strict=True)

    return Batch(run, list, lambda state: msgspec.structs.replace(state, place={"edge": number}), lambda _state: None)


def rows(lake: Lake, where: Table) -> list[dict[str, Any]]:
    found = sorted(lake.plain.layout.table(where).glob("**/*.parquet"))
    return [row for path in found for row in pq.read_table(path, partitioning=None).to_pylist()]


def places(lake: Lake) -> list[tuple[str, int]]:
    """Shard and offset of every row in any table."""
    found: list[tuple[str, int]] = []
    for where in TABLES:
        mark = "" if where.event_type is None else "_"
        found += [(row[f"{mark}shard"], row[f"{mark}offset"]) for row in rows(lake, where)]
    return sorted(found)


@st.composite
def logs(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Batches of two brokers' logs: numbered or not, sent again or not, readable or not."""
    offsets = {"edge": 0, "south": 0}
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        batch = []
        for _ in range(draw(st.integers(0, 12))):
            shard = draw(st.sampled_from(sorted(offsets)))
            number = draw(st.none() | st.integers(0, 8))
            batch.append(
                record(
                    offsets[shard],
                    draw(st.sampled_from(["grid/1/reading", "grid/1/switch", "elsewhere"])),
                    draw(st.sampled_from([b'{"voltage": 230}', b'{"count": 1}', b"bad", b""])),
                    shard=shard,
                    publisher=draw(st.sampled_from(["m1", "m2"])),
                    qos=draw(st.integers(0, 1)),
                    dup=draw(st.booleans()),
                    packet_id=draw(st.integers(1, 3)),
                    raw_properties=b"" if number is None else prop("seq", str(number)),
                )
            )
            offsets[shard] += draw(st.integers(1, 3))
        batches.append(sorted(batch, key=lambda each: (each["shard"], each["offset"])))
    return batches


@examples(25)
@given(logs(), st.integers(1, 3), st.booleans())
def test_every_record_is_in_exactly_one_table_and_every_number_once(batches: Any, tasks: int, restarts: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake.create(Path(directory, "lake"), kit.settings())
        ingest = Ingest(lake)
        for number, batch in enumerate(batches):
            if restarts:
                lake = Lake.open(lake.plain.layout.root)
                ingest = Ingest(lake)
            landed = ingest.take(batch_of(batch, number, tasks))
            assert landed.records == len(batch) == sum(landed.rows.values())
        everything = [each for batch in batches for each in batch]
        assert places(lake) == sorted((each["shard"], each["offset"]) for each in everything)
        # numbered: of each publisher's number the first stays, all others are duplicates
        seen: set[tuple[str, bytes]] = set()
        again: set[tuple[str, int]] = set()
        for each in everything:
            key = (each["publisher"], each["raw_properties"])
            if each["raw_properties"] and key in seen:
                again.add((each["shard"], each["offset"]))
            elif each["raw_properties"]:
                seen.add(key)
        found = {(row["shard"], row["offset"]) for row in rows(lake, Table((DUPLICATES,))) if row["reason"] == "seq"}
        assert found == again
        assert kit.debris(lake.plain.layout.root) == []


def test_duplicates_say_which_record_they_repeat(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    ingest = Ingest(lake)
    one = record(0, qos=1, packet_id=5, publisher="m2")
    ingest.take(
        batch_of([one, record(1, raw_properties=prop("seq", "1")), record(2, raw_properties=prop("seq", "1"))], 0)
    )
    again = one | {"offset": 3, "dup": True}
    ingest.take(batch_of([again, record(4, raw_properties=prop("seq", "1") + prop("x", "y"))], 1))
    found = [
        (row["offset"], row["reason"], row["first_offset"], row["event"]) for row in rows(lake, Table((DUPLICATES,)))
    ]
    assert sorted(found) == [(2, "seq", 1, "reading"), (3, "retry", 0, "reading"), (4, "seq", None, "reading")]
    (last,) = (row for row in rows(lake, Table((DUPLICATES,))) if row["offset"] == 4)
    assert last["properties"] == [{"key": "seq", "value": "1"}, {"key": "x", "value": "y"}]


def test_a_batch_that_fails_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    ingest = Ingest(lake)
    batch = batch_of([record(0, raw_properties=prop("seq", "1"))], 0)
    with monkeypatch.context() as broken:
        broken.setattr(Lake, "land", lambda *_arguments: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space"):
            ingest.take(batch)
    assert list(lake.plain.layout.staging.iterdir()) == []
    assert ingest.take(batch).rows == {"events/reading": 1}


def test_files_of_tasks_that_were_given_up_are_not_part_of_the_batch(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    good = batch_of([record(0)], 0)

    def run(work: Work) -> list[tuple[str, bytes]]:
        list(good.run(work))  # nobody hears of what these tasks report
        reports = list(good.run(work))
        (found,) = (report for report in ingest_batch.read(reports).files)
        Path(found.path).with_name("part-half.parquet").write_bytes(b"PAR1")
        return reports

    Ingest(lake).take(good._replace(run=run))
    assert places(lake) == [("edge", 0)]
    assert kit.debris(lake.plain.layout.root) == []


def test_an_executor_that_comes_back_while_its_batch_lands_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    good = batch_of([record(0)], 0)
    works: list[Work] = []

    def run(work: Work) -> list[tuple[str, bytes]]:
        works.append(work)
        return list(good.run(work))

    def comes_back(*_arguments: object) -> None:
        list(good.run(works[0]))

    remove = shutil.rmtree

    def removed(path: Path, **more: Any) -> None:
        remove(path, **more)
        Path(path, "written", "events").mkdir(parents=True)
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))

    for name in ("move", "sync_tree"):
        step = getattr(Disk, name)

        def stepped(self: Disk, *given: Any, step: Any = step) -> None:
            comes_back()
            step(self, *given)

        monkeypatch.setattr(Disk, name, stepped)
    with monkeypatch.context() as racing:
        racing.setattr(shutil, "rmtree", removed)
        Ingest(lake).take(good._replace(run=run))
    assert places(lake) == [("edge", 0)]
    assert list(lake.plain.layout.staging.iterdir()) != []
    Lake.open(lake.plain.layout.root)
    assert list(lake.plain.layout.staging.iterdir()) == []
    Ingest(lake).take(batch_of([record(1)], 1))
    assert places(lake) == [("edge", 0), ("edge", 1)]


def test_a_record_of_last_week_lands_in_last_week(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    Ingest(lake).take(batch_of([record(0, payload=b'{"time": "2026-02-22T10:00:00+02:00"}'), record(1)], 0))
    days = sorted(path.parent.name for path in lake.plain.layout.root.glob("events/reading/day=*/batch=0"))
    assert days == ["day=2026-02-22", "day=2026-03-01"]


def test_an_empty_batch_lands_too(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    Ingest(lake).take(batch_of([], 0))
    assert lake.state().place == {"edge": 0}
    assert lake.state().batch == 0


def test_portions_are_bounded_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_task, "PORTION_ROWS", 4)
    batches = table([record(offset) for offset in range(10)]).to_batches(max_chunksize=3)
    assert [len(each) for each in ingest_task.portions(batches)] == [6, 4]
    monkeypatch.setattr(ingest_task, "_PORTION_BYTES", 1)
    assert [len(each) for each in ingest_task.portions(batches)] == [3, 3, 3, 1]
    assert isinstance(batches[0], pa.RecordBatch)
