"""Ingest from logs: Spark's part runs in this process, everything else is the real thing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.kits.patience import PATIENCE_S, until
from tests.net.logserver.writing import record as logged
from tests.pipeline.jobs.here import TOML, Here
from tests.pipeline.lake import kit
from tests.pipeline.source.conftest import Serve
from tieline.conf.schema import Log, Settings
from tieline.pipeline.jobs import ingest
from tieline.pipeline.jobs.ingest import Filling
from tieline.pipeline.jobs.ingest_batch import Landed, Logs
from tieline.pipeline.lake import Lake, LakeError, Overtaken
from tieline.pipeline.lake.disk import locked
from tieline.pipeline.source.client import Gap, LogError


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Any:
    return Lake.create(tmp_path / "lake", kit.settings(TOML))


def once(lake: Lake, *served: Any, here: Here | None = None, max_rows: int = 1_000, **options: str) -> list[Landed]:
    """A run up to now, in a lake that is opened anew."""
    landed: list[Landed] = []
    logs = Logs([each.url for each in served], max_rows, options)
    filling = Filling(here or Here(), Lake.open(lake.plain.layout.root), logs, on_landed=landed.append)  # type: ignore[arg-type]
    filling.start(once=True)
    assert filling.wait(PATIENCE_S)
    return landed


def offsets(lake: Lake) -> list[int]:
    return kit.offsets_in(lake, kit.READING)


def test_each_record_lands_once_and_the_next_run_goes_on(lake: Lake, serve: Serve) -> None:
    served = serve(records=40)
    assert [each.records for each in once(lake, served, max_rows=15)] == [15, 15, 10]
    assert lake.state().positions == {"edge": 40}
    here = Here()
    assert once(lake, served, here=here) == []
    assert here.queries == 0
    served.writer.append([logged(40), logged(41)])
    assert [each.records for each in once(lake, served)] == [2]
    assert offsets(lake) == list(range(42))
    assert kit.debris(lake.plain.layout.root) == []


def test_a_round_that_broke_leaves_nothing_and_is_made_again(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    here = Here()
    here.breaks.append(RuntimeError("the server is gone"))
    with pytest.raises(RuntimeError, match="the server is gone"):
        once(lake, served, here=here)
    assert offsets(lake) == [] and lake.state().batch == -1
    once(lake, served)
    assert offsets(lake) == list(range(20))


def test_it_follows_until_it_is_stopped(lake: Lake, serve: Serve) -> None:
    served = serve(settings=Settings(name="edge", log=Log(readers=("tables",))), records=20)
    landed: list[Landed] = []
    logs = Logs([served.url], 15, {"reader": "tables", "startingOffsets": "latest"})
    filling = Filling(Here(), lake, logs, on_landed=landed.append)  # type: ignore[arg-type]
    assert filling.behind() is None
    filling.start(every_s=0.05)
    try:
        until(lambda: filling.behind() == 0, "the first look at the log")
        assert not filling.wait(0)
        served.writer.append([logged(number) for number in range(20, 50)])
        until(lambda: len(landed) == 2, "both batches")
    finally:
        filling.stop()
    assert filling.wait(0)
    assert filling.behind() == 0
    assert offsets(lake) == list(range(20, 50))
    # what has landed is never asked for again
    assert (served.writer.data / "readers" / "tables").read_text().strip() == "50"


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_small_files_are_merged_on_the_way(tmp_path: Path, serve: Serve, form: Any) -> None:
    served = serve(records=40)
    lake = Lake.create(tmp_path / form, kit.settings(TOML), form=form)
    filling = Filling(Here(), lake, Logs([served.url], 4, {}), compact_every=5)  # type: ignore[arg-type]
    filling.start(once=True)
    assert filling.wait(PATIENCE_S)
    assert lake.state().batch == 9
    (reading,) = (each for each in lake.status().tables if each.name == "events/reading")
    assert (reading.rows, reading.files) == (40, 1)
    assert sorted(pq.read_table(lake.files("events/reading"))["_offset"].to_pylist()) == list(range(40))


def test_files_that_never_counted_go_on_the_way_when_they_are_of_age(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_SWEEP_EVERY", 2)
    served = serve(records=16)
    lake = Lake.create(tmp_path / "lake", kit.settings(TOML), form="delta")

    def run(batches: int) -> None:
        """So many batches, each in a run of its own."""
        for _ in range(batches):
            filling = Filling(Here(), Lake.open(lake.where), Logs([served.url], 2, {}), compact_every=2)  # type: ignore[arg-type]
            place = filling._place()
            assert filling._round(place) != place

    run(4)
    before = {*kit.parquet(lake, kit.READING)}
    # an executor was given up long ago, and another one just now
    with lake.attempt() as attempt:
        for _ in range(2):
            attempt.target.write(kit.rows_of(lake, kit.READING, [0]), kit.READING)
    old, young = {*kit.parquet(lake, kit.READING)} - before
    os.utime(old, (time.time() - 8 * 86_400,) * 2)
    # of four times that small files are merged, the last one looks for what is old
    run(2)
    assert old.exists()
    run(2)
    assert not old.exists() and young.exists()
    assert sorted(pq.read_table(lake.files("events/reading"))["_offset"].to_pylist()) == list(range(16))


def test_somebody_else_compacts(lake: Lake, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = serve(records=20)
    with locked(lake.plain.layout.compact_lock):
        filling = Filling(Here(), lake, Logs([served.url], 10, {}), compact_every=1)  # type: ignore[arg-type]
        filling.start(once=True)
        assert filling.wait(PATIENCE_S)
    assert offsets(lake) == list(range(20))
    assert "small files stay as they are until the next time: another process compacts" in caplog.text


def test_a_broker_joins_and_another_leaves(lake: Lake, serve: Serve) -> None:
    north, south = serve("north", records=5), serve("south", records=7)
    once(lake, north)
    # its place lands before any of its records
    assert [each.records for each in once(lake, north, south)] == [0, 7]
    assert lake.state().positions == {"north": 5, "south": 7}
    with pytest.raises(LogError, match='"north" was read before, and none of the urls'):
        once(lake, south)
    assert once(lake, south, failOnDataLoss="false") != []
    assert len(offsets(lake)) == 12


def test_what_retention_removed_stops_it_or_is_passed_over(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    once(lake, served)
    served.writer.append([logged(number) for number in range(20, 30)])
    served.writer.append([logged(number) for number in range(30, 40)])
    served.writer.forget(30)
    with pytest.raises(Gap, match=r"offsets 20 to 29 .* 10 records are missing"):
        once(lake, served)
    once(lake, served, failOnDataLoss="false")
    assert offsets(lake) == [*range(20), *range(30, 40)]


def test_another_store_is_refused(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    once(lake, served)
    served.writer._db.execute("UPDATE migration SET applied = 17.5")
    with pytest.raises(LogError, match="is not the one that was read before"):
        once(lake, served)


def test_a_batch_that_somebody_else_overtook_is_refused(lake: Lake, serve: Serve) -> None:
    served = serve(records=5)

    class Slow(Here):
        def collect(self) -> list[dict[str, Any]]:
            found = super().collect()
            once(lake, served)
            return found

    with pytest.raises(Overtaken, match="somebody else fills this lake"):
        once(lake, served, here=Slow())
    assert offsets(lake) == list(range(5))


# --- lakes whose place was in the checkpoint of a streaming query


def first_version(lake: Lake, end: int, **more: Any) -> Path:
    """Turn a lake into one that a streaming query filled; the file in which Spark wrote down where its batch ends."""
    state, root = lake.state(), lake.plain.layout.root
    earlier = msgspec.structs.replace(state, place={}, queries={"q": 7}, positions={"edge": end}, **more)
    (root / "_state" / str(state.batch) / "state.json").write_bytes(msgspec.json.encode(earlier))
    kit.make_first_version(lake)
    document = msgspec.json.decode(lake.plain.layout.document.read_bytes())
    lake.plain.layout.document.write_bytes(msgspec.json.encode({**document, "query": "q"}))
    written = lake.plain.layout.checkpoint / "offsets" / "7"
    written.parent.mkdir(parents=True)
    return written


def test_a_lake_of_a_streaming_query_is_brought_forward(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    once(lake, served)
    place = lake.state().place
    first_version(lake, 20).write_text(f"v1\n{{}}\n{msgspec.json.encode(place).decode()}")
    served.writer.append([logged(20), logged(21)])
    assert [each.records for each in once(lake, served)] == [2]
    assert offsets(lake) == list(range(22))
    assert Lake.open(lake.plain.layout.root).document.version == 2
    assert once(lake, served) == []


def test_a_checkpoint_of_another_store_is_noticed(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    once(lake, served)
    place = {"edge": 20, "$created": {"edge": 17.5}}
    first_version(lake, 20).write_text(f"v1\n{{}}\n{msgspec.json.encode(place).decode()}")
    with pytest.raises(LogError, match="is not the one that was read before"):
        once(lake, served)


@pytest.mark.parametrize("left", [None, b"", b"v1\n{}\n", b'v1\n{}\n{"edge": 31, "$created": {"edge": 0}}'])
def test_what_a_loss_of_power_left_of_a_checkpoint_loses_nothing(lake: Lake, serve: Serve, left: bytes | None) -> None:
    served = serve(records=20)
    once(lake, served)
    written = first_version(lake, 20)
    if left is not None:
        written.write_bytes(left)
    served.writer.append([logged(number) for number in range(20, 40)])
    assert [each.records for each in once(lake, served)] == [20]
    assert offsets(lake) == list(range(40))


def test_a_lake_with_history_and_no_checkpoint_is_refused(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    once(lake, served)
    first_version(lake, 90, history={"a.parquet": 1_000})
    with pytest.raises(LakeError, match="nobody can tell how far the logs were read"):
        once(lake, served)
