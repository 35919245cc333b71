"""Two that fill one lake, and one that was stopped while another took its part: every record is there once.

A command keeps others away from a plain lake by a lock.  Here nobody does, because in an object store nobody could.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.kits.patience import PATIENCE_S
from tests.net.logserver.writing import record as logged
from tests.pipeline.decode.records import record, table
from tests.pipeline.jobs.here import TOML, Here
from tests.pipeline.lake import kit
from tests.pipeline.source.conftest import Serve
from tieline.pipeline.jobs.ingest import Filling, take_history
from tieline.pipeline.jobs.ingest_batch import Logs
from tieline.pipeline.lake import Lake, Overtaken

#: Ends with 0 if it has everything that is there, and with 3 if it was told that another one fills the lake.
_INGEST = """
import sys
from tests.pipeline.jobs.here import Here
from tieline.pipeline.jobs.ingest import Filling
from tieline.pipeline.jobs.ingest_batch import Logs
from tieline.pipeline.lake import Lake, Overtaken
filling = Filling(Here(), Lake.open(sys.argv[1]), Logs([sys.argv[2]], 3, {}), compact_every=4)
print("ready", flush=True)
sys.stdin.readline()
filling.start(once=True)
try:
    while not filling.wait(1):
        pass
except Overtaken as told:
    sys.exit(3)
"""


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


@pytest.fixture(name="lake", params=["parquet", "delta"])
def _lake(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    return Lake.create(tmp_path / "lake", kit.settings(TOML), form=request.param)


def filling(lake: Lake, *served: Any, here: Here | None = None, max_rows: int = 1_000) -> Filling:
    """An ingest in a lake that is opened anew."""
    logs = Logs([each.url for each in served], max_rows, {})
    return Filling(here or Here(), Lake.open(lake.where), logs)  # type: ignore[arg-type]


def once(lake: Lake, *served: Any, **more: Any) -> None:
    """A run up to now."""
    made = filling(lake, *served, **more)
    made.start(once=True)
    assert made.wait(PATIENCE_S)


def offsets(lake: Lake) -> Any:
    """The offsets of all rows that count."""
    found = Lake.open(lake.where).files("events/reading")
    return sorted(ds.dataset(found).to_table(columns=["_offset"])["_offset"].to_pylist()) if found else []


def test_of_two_in_turn_the_one_that_is_behind_is_told(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    one, other = filling(lake, served), filling(lake, served)
    first = one._round(one._place())
    second = other._round(other._place())
    assert first == second
    served.writer.append([logged(number) for number in range(20, 30)])
    one._round(first)
    with pytest.raises(Overtaken, match="has come to edge 30 in the logs, and this ingest to edge 20: somebody else"):
        other._round(second)
    assert offsets(lake) == list(range(30)) and lake.state().rows == {"events/reading": 30}


def test_of_two_that_begin_one_is_told(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    one, other = filling(lake, served), filling(lake, served)
    begun = one._place(), other._place()
    one._round(begun[0])
    with pytest.raises(Overtaken, match="and this ingest to the beginning"):
        other._round(begun[1])
    assert offsets(lake) == list(range(20))


class Stopped(Here):
    """Stands still after its tasks have run, while something else happens."""

    def __init__(self, meanwhile: Any) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def collect(self) -> list[dict[str, Any]]:
        found = super().collect()
        self._meanwhile()
        return found


def test_one_that_was_stopped_in_a_batch_and_replaced_is_told(lake: Lake, serve: Serve) -> None:
    served = serve(records=20)
    with pytest.raises(Overtaken, match=r"batch 1 has landed .* follows batch -1: somebody else fills this lake"):
        once(lake, served, here=Stopped(lambda: once(lake, served, max_rows=10)))
    assert offsets(lake) == list(range(20))


@pytest.mark.parametrize("lake", ["parquet"], indirect=True)
def test_a_number_says_nothing_of_what_has_landed(lake: Lake, serve: Serve) -> None:
    """A copy is put in place that has come to the same number with more records."""
    served = serve(records=20)
    once(lake, served, max_rows=20)
    served.writer.append([logged(number) for number in range(20, 30)])
    state = lake.state()
    kept = lake.plain.layout.state / str(state.batch) / "state.json"

    def meanwhile() -> None:
        place = {**state.place, "edge": 30}
        kept.write_bytes(msgspec.json.encode(msgspec.structs.replace(state, place=place)))

    with pytest.raises(Overtaken, match=r"batch 0 of .* is not the one that another batch was made to follow"):
        once(lake, served, here=Stopped(meanwhile))
    assert offsets(lake) == list(range(20))


def test_a_place_that_does_not_say_of_which_store_it_is(lake: Lake, serve: Serve) -> None:
    """As a lake has it that was brought forward without its checkpoint."""
    served = serve(records=20)
    once(lake, served)
    with lake.attempt() as attempt:
        state = lake.state()
        lake.land(attempt, state, msgspec.structs.replace(state, place={"edge": 20}))
    served.writer.append([logged(number) for number in range(20, 30)])
    one, other = filling(lake, served, max_rows=5), filling(lake, served)
    begun = one._place(), other._place()
    assert one._round(one._round(begun[0])) == one._place()
    with pytest.raises(Overtaken, match="to edge 30 in the logs, and this ingest to edge 20"):
        other._round(begun[1])
    assert offsets(lake) == list(range(30))


def test_history_beside_a_log_disturbs_neither(lake: Lake, serve: Serve, tmp_path: Path) -> None:
    served = serve(records=20)
    following = filling(lake, served)
    place = following._round(following._place())
    assert take_history(Here(), Lake.open(lake.where), history_of(tmp_path)) == 3  # type: ignore[arg-type]
    served.writer.append([logged(20)])
    following._round(place)
    assert offsets(lake) == sorted([*range(21), 100, 101, 102])


def history_of(folder: Path) -> Path:
    """Three files of a record each."""
    found = folder / "history"
    found.mkdir()
    for offset in range(100, 103):
        rows = [record(offset, "grid/1/pcc", b'{"number": %d}' % offset, shard="old")]
        pq.write_table(table(rows), found / f"{offset}.parquet")
    return found


def test_history_that_somebody_else_takes_meanwhile_is_not_taken_again(lake: Lake, tmp_path: Path) -> None:
    directory = history_of(tmp_path)

    def other(_records: int) -> None:
        take_history(Here(), Lake.open(lake.where), directory, max_rows=2)  # type: ignore[arg-type]

    # it knows what is to be done, and another one does it
    with pytest.raises(Overtaken, match=r"100.parquet.*: in the tables since this command has looked"):
        take_history(Here(), Lake.open(lake.where), directory, on_pending=other)  # type: ignore[arg-type]
    assert offsets(lake) == [100, 101, 102]
    assert take_history(Here(), Lake.open(lake.where), directory) == 0  # type: ignore[arg-type]


def test_two_processes_that_fill_one_lake_bring_every_record_once(lake: Lake, serve: Serve) -> None:
    served = serve(records=60)
    words = [sys.executable, "-c", _INGEST, lake.where, served.url]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as one, subprocess.Popen(words, **pipes) as other:
        for each in (one, other):
            assert each.stdout is not None and each.stdout.readline() == "ready\n"
        for each in (one, other):
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        ends = sorted(each.wait(PATIENCE_S) for each in (one, other))
    # one has everything; the other was told, or found nothing to do
    assert ends in ([0, 0], [0, 3])
    assert offsets(lake) == list(range(60))
    once(lake, served)
    assert offsets(lake) == list(range(60)) and lake.state().rows == {"events/reading": 60}
