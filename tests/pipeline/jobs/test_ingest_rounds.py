"""Ingest without a checkpoint: Spark's part runs in this process, everything else is the real thing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from tests.kits.patience import PATIENCE_S, until
from tests.net.logserver.writing import record as logged
from tests.pipeline.lake import kit
from tests.pipeline.source.conftest import Serve
from tieline.conf.schema import Log, Settings
from tieline.pipeline.jobs.ingest_batch import Landed, Logs
from tieline.pipeline.jobs.ingest_rounds import Rounds
from tieline.pipeline.lake import Foreign, Lake
from tieline.pipeline.source.client import Gap, LogError
from tieline.pipeline.source.options import read_options
from tieline.pipeline.source.ranges import BatchReader

TOML = '[event.reading]\ntopic = "grid/+/pcc"\nattributes = [{name = "number", kind = "integer"}]\n'


class Here:
    """What rounds need of a session: reads of our format, and functions over what they give."""

    def __init__(self) -> None:
        self.queries = 0
        #: Raised by the next query, after its tasks have run.
        self.breaks: list[Exception] = []

    @property
    def read(self) -> Self:
        return self

    def format(self, name: str) -> Self:
        assert name == "tieline"
        return self

    def options(self, **given: str) -> Self:
        self._given = given
        return self

    def load(self) -> Self:
        self._reader = BatchReader(read_options(self._given))
        return self

    def select(self, *_names: str) -> Self:
        return self

    def mapInArrow(self, task: Any, _schema: str) -> Self:  # noqa: N802 - Spark's name
        self._task = task
        return self

    def collect(self) -> list[dict[str, Any]]:
        self.queries += 1
        found = [row for part in self._reader.partitions() for row in self._rows(part)]
        if self.breaks:
            raise self.breaks.pop()
        return found

    def _rows(self, part: Any) -> Iterator[dict[str, Any]]:
        for batch in self._task(self._reader.read(part)):
            yield from pa.RecordBatch.to_pylist(batch)


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
    rounds = Rounds(here or Here(), Lake.open(lake.layout.root), logs, on_landed=landed.append)  # type: ignore[arg-type]
    rounds.start(once=True)
    assert rounds.wait(PATIENCE_S)
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
    assert kit.debris(lake.layout.root) == []


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
    rounds = Rounds(Here(), lake, logs, on_landed=landed.append)  # type: ignore[arg-type]
    assert rounds.behind() is None
    rounds.start(every_s=0.05)
    try:
        until(lambda: rounds._source._asked, "the first look at the log")
        assert not rounds.wait(0)
        served.writer.append([logged(number) for number in range(20, 50)])
        until(lambda: len(landed) == 2, "both batches")
    finally:
        rounds.stop()
    assert rounds.wait(0)
    assert rounds.behind() == 0
    assert offsets(lake) == list(range(20, 50))
    # what has landed is never asked for again
    assert (served.writer.data / "readers" / "tables").read_text().strip() == "50"


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


def test_streaming_and_rounds_do_not_share_a_lake(lake: Lake, serve: Serve) -> None:
    kit.land(lake, {}, query="a-streaming-query")
    lake.claim("a-streaming-query")
    with pytest.raises(Foreign, match=r"filled by a streaming query.*Go on with a master"):
        once(lake, serve(records=1))
    other = Lake.create(lake.layout.root.with_name("other"), kit.settings(TOML))
    once(other, serve("north", records=1))
    with pytest.raises(Foreign, match=r"filled through Spark Connect.*Go on with --master sc://"):
        Lake.open(other.layout.root).refuse_other_query("a new one")
