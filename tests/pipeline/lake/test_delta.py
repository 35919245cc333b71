"""The same lake with Delta tables, in a directory and in an object store."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline.lake import kit
from tieline.pipeline.lake import Lake, LakeError, Overtaken
from tieline.pipeline.lake.compaction import compact
from tieline.pipeline.lake.delta import book, commits
from tieline.pipeline.lake.delta.keeper import Delta
from tieline.pipeline.lake.delta.store import Store

GAINED = kit.TOML.replace('{name = "node", kind = "category"}', '{name = "phase", kind = "integer"}')


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Any:
    return Lake.create(tmp_path / "lake", kit.settings(), form="delta")


def delta(lake: Lake) -> Delta:
    assert isinstance(lake.keeper, Delta)
    return lake.keeper


def table_of(lake: Lake, where: Any = kit.READING) -> DeltaTable:
    found = delta(lake).store.table(where.name)
    assert found is not None
    return found


def offsets(lake: Lake, where: Any = kit.READING) -> Any:
    found = delta(lake).store.table(where.name)
    return [] if found is None else sorted(found.to_pyarrow_table()["_offset"].to_pylist())


def readings(lake: Lake, *numbers: int, day: int = 1) -> Any:
    return {kit.READING: kit.rows_of(lake, kit.READING, numbers, day=day)}


@pytest.mark.timeout(300)
def test_batches_land_evolve_compact_and_are_removed(lake: Lake, spark: SparkSession) -> None:
    kit.land(lake, readings(lake, 0, 1))
    lake.evolve(kit.settings(GAINED))
    kit.land(lake, readings(lake, 2, day=5))
    kit.land(lake, readings(lake, 3))
    assert offsets(lake) == [0, 1, 2, 3]
    expected = [
        (0, None, 0, date(2026, 3, 1)), (1, None, 0, date(2026, 3, 1)), (2, None, 1, date(2026, 3, 5)),
        (3, None, 2, date(2026, 3, 1)),
    ]  # fmt: skip

    def found(**span: Any) -> Any:
        rows = Lake.open(lake.where).read(spark, "reading", **span).collect()
        return sorted((row["_offset"], row["phase"], row["batch"], row["day"]) for row in rows)

    assert found() == expected
    assert found(start=datetime(2026, 3, 2, tzinfo=UTC)) == expected[2:3]
    (merged,) = compact(lake)
    assert (merged.files_before, merged.files_after, merged.rows, merged.removed) == (3, 2, 4, 0)
    # the merged files have not changed a row, and each keeps its batch
    assert found() == expected
    assert all(not each.get("dataChange") for each in added(lake)[-1:])
    (removed,) = compact(lake, keep_from=date(2026, 3, 2))
    assert (removed.rows, removed.removed) == (1, 3)
    (reading, *_) = lake.status().tables
    assert (reading.rows, reading.first_day) == (1, "2026-03-05")


def added(lake: Lake) -> list[dict[str, Any]]:
    """The files that were ever added to the table, from its log."""
    log = Path(lake.where) / "events" / "reading" / "_delta_log"
    lines = [json.loads(line) for path in sorted(log.glob("*.json")) for line in path.read_text().splitlines()]
    return [each["add"] for each in lines if "add" in each]


def test_the_log_has_statistics_by_which_readers_leave_files_out(lake: Lake) -> None:
    kit.land(lake, readings(lake, 0, 1))
    kit.land(lake, readings(lake, 7, 9))
    found = table_of(lake).get_add_actions(flatten=True)
    rows = pa.table(found).sort_by("min._offset").to_pylist()
    assert [(row["num_records"], row["min._offset"], row["max._offset"]) for row in rows] == [(2, 0, 1), (2, 7, 9)]
    assert rows[0]["min._time"] == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert rows[0]["null_count.voltage"] == 2
    assert len(table_of(lake).file_uris(file_pruning_predicate="_offset > 5")) == 1


def test_the_book_decides_and_the_tables_follow(tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.land(lake, readings(lake, 0))
    real_commit, real_turn, real_add = commits.commit, book.turn, commits.add_once

    class Crash(BaseException):
        pass

    def land(at: int) -> bool:
        """Land a batch of two tables in a copy, whose process dies at one of its steps; whether it did."""
        shutil.copytree(lake.where, tmp_path / "copy")
        copy = Lake.open(tmp_path / "copy")
        steps = 0

        def step(real: Any) -> Any:
            def carried_out(*given: Any, **named: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps == at:
                    raise Crash
                real(*given, **named)
                steps += 1
                if steps == at:
                    raise Crash

            return carried_out

        with monkeypatch.context() as patch:
            patch.setattr(commits, "commit", step(real_commit))
            patch.setattr(book, "turn", step(real_turn))
            patch.setattr(commits, "add_once", step(real_add))
            try:
                kit.land(copy, {where: kit.rows_of(copy, where, [1]) for where in (kit.READING, kit.SWITCH)})
            except Crash:
                return True
        return False

    at, outcomes = 1, []
    while land(at):
        copy = Lake.open(tmp_path / "copy")
        landed = copy.state().batch == 1
        assert offsets(copy) == ([0, 1] if landed else [0])
        assert offsets(copy, kit.SWITCH) == ([1] if landed else [])
        outcomes.append(landed)
        kit.land(copy, readings(copy, 2))
        assert offsets(copy)[-1] == 2
        shutil.rmtree(tmp_path / "copy")
        at += 1
    assert outcomes == sorted(outcomes) and 1 < sum(outcomes) < len(outcomes) + 1 and not outcomes[0]


def test_a_batch_that_somebody_else_overtook_is_refused(lake: Lake) -> None:
    other = Lake.open(lake.where)
    before = lake.state()
    with lake.attempt() as slow:
        kit.land(other, readings(lake, 0))
        for written in slow.target.write(kit.rows_of(lake, kit.READING, [0]), kit.READING):
            slow.adopt(written)
        with pytest.raises(Overtaken, match=r"batch 0 has landed .* follows batch -1"):
            lake.land(slow, before, before)
    assert offsets(lake) == [0]


def test_two_that_turn_the_book_at_once(lake: Lake) -> None:
    store = delta(lake).store
    one, other = book.read(store), book.read(store)
    book.turn(store, one, one.page)
    with pytest.raises(commits.Refused):
        book.turn(store, other, other.page)


def test_of_two_compactions_one_wins(lake: Lake) -> None:
    for number in range(2):
        kit.land(lake, readings(lake, number))

    def meanwhile(merges: Any) -> Any:
        told = [each for merge in merges for each in merge.carry_out()]
        list(compact(Lake.open(lake.where)))
        return told

    with pytest.raises(LakeError, match="compacted by somebody else"):
        list(compact(lake, run=meanwhile))
    assert offsets(lake) == [0, 1]


def test_a_batch_may_land_while_a_day_is_compacted(lake: Lake) -> None:
    for number in range(2):
        kit.land(lake, readings(lake, number))

    def meanwhile(merges: Any) -> Any:
        kit.land(Lake.open(lake.where), readings(lake, 2))
        return [each for merge in merges for each in merge.carry_out()]

    list(compact(lake, run=meanwhile))
    assert offsets(lake) == [0, 1, 2]
    kit.land(lake, readings(lake, 3))
    assert offsets(lake) == [0, 1, 2, 3]


def test_files_that_nobody_reported_do_not_count_and_go_when_they_are_of_age(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.land(lake, readings(lake, 0))
    # an executor that was given up goes on writing
    with lake.attempt() as given_up:
        given_up.target.write(kit.rows_of(lake, kit.READING, [0, 5]), kit.READING)
    assert offsets(lake) == [0]
    assert len(kit.parquet(lake, kit.READING)) == 2
    list(compact(lake))
    assert len(kit.parquet(lake, kit.READING)) == 2
    (orphan,) = {*kit.parquet(lake, kit.READING)} - {Path(uri) for uri in table_of(lake).file_uris()}
    aged(orphan)
    list(compact(lake))
    assert len(kit.parquet(lake, kit.READING)) == 1
    assert offsets(lake) == [0]


def pages(lake: Lake) -> set[Path]:
    return set((Path(lake.where) / book.NAME).glob("page-*.parquet"))


def aged(*paths: Path) -> None:
    """Make files as old as nobody looks at any more."""
    old = time.time() - 8 * 86_400
    for path in paths:
        os.utime(path, (old, old))


def test_a_page_that_nobody_turned_to_goes_when_it_is_of_age(lake: Lake) -> None:
    kit.land(lake, readings(lake, 0))
    (current,) = pages(lake)
    # a driver that dies between writing and committing, twice; one of them long ago
    page = book.read(delta(lake).store).page
    book._put(delta(lake).store, page)
    (young,) = pages(lake) - {current}
    book._put(delta(lake).store, page)
    aged(*pages(lake) - {young})
    list(compact(Lake.open(lake.where)))
    assert pages(lake) == {current, young}
    kit.land(Lake.open(lake.where), readings(lake, 1))
    assert offsets(lake) == [0, 1]


def test_what_is_decided_is_never_swept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver died before the tables followed, and nobody came for more than a week."""
    kit.land(lake, readings(lake, 0))
    other = Lake.open(lake.where)

    class Crash(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(commits, "add_once", lambda *given: None if given[-1] == 0 else die())
        with pytest.raises(Crash):
            kit.land(lake, readings(lake, 1))
    aged(*kit.parquet(lake, kit.READING))
    # whoever opens a lake in an object store brings nothing to its end
    list(compact(other))
    assert offsets(lake) == [0, 1]


def test_a_batch_that_has_waited_until_its_files_may_be_gone_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake.attempt() as attempt:
        attempt.adopt(*attempt.target.write(kit.rows_of(lake, kit.READING, [0]), kit.READING))
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 4 * 86_400)
        with pytest.raises(LakeError, match="batch 0 was begun 96 hours ago"):
            lake.land(attempt, lake.state(), lake.state())
    assert offsets(lake) == [] and lake.state().batch == -1


def test_who_reads_every_file_of_a_compacted_table_reads_rows_twice_and_a_list_helps(lake: Lake) -> None:
    for number in range(2):
        kit.land(lake, readings(lake, number))
    list(compact(lake))
    assert kit.offsets_in(lake, kit.READING) == [0, 0, 1, 1]
    listed = lake.files("events/reading")
    assert sorted(ds.dataset(listed).to_table()["_offset"].to_pylist()) == [0, 1]


@pytest.mark.parametrize("left", [b"", b'{"add": {"pa'])
def test_what_a_loss_of_power_leaves_of_a_commit_is_removed(lake: Lake, left: bytes) -> None:
    kit.land(lake, readings(lake, 0))
    kit.land(lake, {where: kit.rows_of(lake, where, [1]) for where in (kit.READING, kit.SWITCH)})
    last = max((Path(lake.where) / "events" / "switch" / "_delta_log").glob("*.json"))
    last.write_bytes(left)
    again = Lake.open(lake.where)
    assert (offsets(again), offsets(again, kit.SWITCH)) == ([0, 1], [1])
    # the book itself: the batch was never decided
    torn = f"{delta(again)._opened.table.version() + 1:020}.json"
    (Path(lake.where) / book.NAME / "_delta_log" / torn).write_bytes(left)
    assert Lake.open(lake.where).state().batch == 1


def test_the_log_of_the_book_stays_short_and_who_has_slept_goes_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    log = Path(lake.where) / book.NAME / "_delta_log"
    store = delta(lake).store
    asleep = book.read(store)
    # a log is summed up after each hundred commits
    for number in range(205):
        if number == 110:
            old = time.time() - 8 * 86_400
            for path in log.iterdir():
                os.utime(path, (old, old))
        kit.land(lake, {})
    assert len(list(log.glob("*.json"))) < 150
    assert book.read(store, asleep).page.state.batch == 204
    assert Lake.open(lake.where).state().batch == 204


def test_a_lake_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    root = kit.make_delta_of_before(tmp_path / "lake")
    lake = Lake.open(root)
    assert not (root / "lake.json").exists()
    state = lake.state()
    assert (state.batch, state.positions) == (1, {"edge": 5})
    assert offsets(lake) == [0, 1]
    with lake.memory() as folder:
        assert folder is not None and (folder / "numbered.parquet").read_bytes() == b"remembered"
    kit.land(lake, readings(lake, 2))
    assert offsets(Lake.open(root)) == [0, 1, 2]


def test_options_are_secret_and_those_that_lose_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    store = Store("s3://bucket/lake", {"aws_region": "x"})
    assert store.options == {"AWS_SECRET_ACCESS_KEY": "hidden", "aws_region": "x"}
    assert "hidden" not in repr(store)
    with pytest.raises(LakeError, match="two writers"):
        Store("s3://bucket/lake", {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"})
    with pytest.raises(LakeError, match="two writers"):
        Store("s3://bucket/lake", {"aws_conditional_put": "disabled"})
    with pytest.raises(LakeError, match="a lake is in a directory, or at s3://"):
        Store("ftp://bucket/lake", {})
