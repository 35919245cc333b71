"""Ingest on Spark: a log server and directories of history become tables, each record once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.net.logserver.writing import record as logged
from tests.pipeline.decode.records import prop, record, table
from tests.pipeline.lake import kit
from tests.pipeline.source.served import Served
from tieline.pipeline.jobs import history
from tieline.pipeline.jobs.ingest import Filling, take_history
from tieline.pipeline.jobs.ingest_batch import Landed, Logs
from tieline.pipeline.lake import Lake, LakeError, State

#: The first test of a session waits for the JVM too.
pytestmark = pytest.mark.timeout(300)

TOML = """
[event.reading]
topic = "grid/+/pcc"
attributes = [{name = "number", kind = "integer"}, {name = "voltage", bounds = [0.0, 500.0]}]
"""


def numbers(lake: Lake, spark: SparkSession) -> Any:
    return sorted(row["number"] for row in lake.read(spark, "reading").select("number").collect())


def once(spark: SparkSession, lake: Lake, served: Any, **more: Any) -> Any:
    landed: list[Landed] = []
    running = Filling(spark, lake, Logs([served.url], **more), on_landed=landed.append)
    running.start(once=True)
    assert running.wait(200)
    return landed


def test_a_log_becomes_tables_and_the_next_run_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings(TOML))
    with Served(tmp_path / "data", records=20) as served:
        landed = once(spark, lake, served, max_rows=15)
        assert [each.records for each in landed] == [15, 5]
        assert lake.state().positions == {"edge": 20}
        again = logged(7, publisher="meter-2", properties=prop("seq", "1"))
        served.writer.append([logged(20, properties=prop("seq", "1")), again, logged(21, payload=b"?")])
        lake = Lake.open(lake.plain.layout.root)
        (landed,) = once(spark, lake, served)
        assert landed.rows == {"events/reading": 1, "duplicates": 1, "quarantine": 1}
        assert numbers(lake, spark) == list(range(21))
        status = {each.name: each.rows for each in lake.status().tables}
        assert (status["duplicates"], status["quarantine"]) == (1, 1)
    assert kit.debris(lake.plain.layout.root) == []


def test_history_is_taken_once(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings(TOML))
    directory = tmp_path / "history"
    directory.mkdir()
    for part in range(3):
        offsets = range(part * 10, part * 10 + 10)
        rows = [record(offset, "grid/1/pcc", b'{"number": %d}' % offset) for offset in offsets]
        pq.write_table(table(rows), directory / f"{part}.parquet")
    landed: list[Landed] = []
    assert take_history(spark, lake, directory, max_rows=20, on_landed=landed.append) == 30
    assert [each.records for each in landed] == [20, 10]
    assert take_history(spark, Lake.open(lake.plain.layout.root), directory) == 0
    assert numbers(lake, spark) == list(range(30))


def test_history_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings(TOML))
    directory = tmp_path / "history"
    with pytest.raises(LakeError, match="is no directory"):
        history.pending(directory, lake.state())
    directory.mkdir()
    (directory / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(LakeError, match="is no Parquet file"):
        history.pending(directory, lake.state())
    pq.write_table(table([record(0)]).drop_columns(["payload"]), directory / "a.parquet")
    with pytest.raises(LakeError, match="payload are missing"):
        history.pending(directory, lake.state())
    pq.write_table(table([record(0)]), directory / "a.parquet")
    (found,) = history.pending(directory, lake.state())
    monkeypatch.chdir(tmp_path)
    assert history.pending(Path("history"), lake.state()) == [found]
    after = history.batch_of(Mock(), [found]).after(lake.state())
    assert history.pending(directory, after) == []
    pq.write_table(table([record(0), record(1)]), directory / "a.parquet")
    with pytest.raises(LakeError, match="must not change"):
        history.pending(directory, after)


def test_a_history_file_is_known_by_its_content(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for directory, offset in ((here, 0), (elsewhere, 1)):
        directory.mkdir()
        pq.write_table(table([record(offset)]), directory / "0.parquet")
    assert (here / "0.parquet").stat().st_size == (elsewhere / "0.parquet").stat().st_size
    (first,) = history.pending(here, State())
    taken = history.batch_of(Mock(), [first]).after(State())
    assert history.pending(here, taken) == []
    # the same name and size, and other records
    assert [each.path for each in history.pending(elsewhere, taken)] == [elsewhere / "0.parquet"]
    # the same records under another name
    shutil.copy(here / "0.parquet", elsewhere / "copy.parquet")
    shutil.copy(elsewhere / "0.parquet", elsewhere / "again.parquet")
    assert len(history.pending(elsewhere, taken)) == 1
    # what an earlier version took is passed over, and said
    before = State(history={"0.parquet": (here / "0.parquet").stat().st_size})
    assert history.pending(here, before) == []
    assert "1 files are passed over" in caplog.text


def test_files_are_put_together_and_never_divided() -> None:
    files = [history.File(str(number), Path(), rows) for number, rows in enumerate([5, 5, 11, 1, 9])]
    assert [[each.rows for each in group] for group in history.groups(files, 10)] == [[5, 5], [11], [1, 9]]
