"""Ingest behind Spark Connect: one range of the logs after the other, each read by a query of its own.

Theory of operation
-------------------
A streaming query hands its batches to a function in the process that drives Spark.  Behind Spark Connect that is the
server, which neither holds the lake's locks nor remembers what it has taken.  So this process asks the log servers
itself where the next batch ends, by the same rules as the streaming source (it is the same code), lets Spark read that
range, and lands what the tasks wrote.

There is no checkpoint: the place in the logs lands in one step with the batch that it belongs to.  A batch that did not
land has left nothing, and is read again; so every record is in the tables once.  And since a batch that has landed is
never asked for again, the named reader moves on at once, where Spark's checkpoint leaves it a batch behind.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Final

import msgspec

from tieline.pipeline.jobs.ingest_batch import Batch, Ingest, Logs, OnLanded, ahead, batch_of
from tieline.pipeline.lake import Lake, State
from tieline.pipeline.lake.lake import WITHOUT_CHECKPOINT
from tieline.pipeline.options import SparkOffset
from tieline.pipeline.source.offsets import shards
from tieline.pipeline.source.options import read_options
from tieline.pipeline.source.stream import StreamReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Between two looks at logs that had nothing new.
_IDLE_S: Final = 0.25


class Rounds:
    """Fills a lake from a session that is behind Spark Connect."""

    def __init__(self, spark: SparkSession, lake: Lake, logs: Logs, *, on_landed: OnLanded | None = None) -> None:
        self._spark = spark
        self._lake = lake
        self._logs = logs
        self._on_landed = on_landed
        self._ingest = Ingest(lake)
        self._source = StreamReader(read_options(logs.source()))
        self._behind: int | None = None
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        #: What ended the thread, unless it came to its end.
        self._problem: Exception | None = None

    def start(self, *, once: bool = False, every_s: float | None = None) -> None:
        """Begin; with ``once`` it ends when it has what there is now."""
        self._lake.claim(WITHOUT_CHECKPOINT)
        self._thread = threading.Thread(target=self._run, args=(once, every_s), name="tieline ingest", daemon=True)
        self._thread.start()

    def wait(self, seconds: int) -> bool:
        """Whether it has ended, or does so within this time; raises what ended it."""
        assert self._thread is not None
        self._thread.join(seconds)
        if self._problem is not None:
            raise self._problem
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End between two batches: the one in the making lands, the next does not begin."""
        self._is_stopping.set()
        if self._thread is not None:
            self._thread.join()

    def behind(self) -> int | None:
        """How many offsets the logs are ahead; None while that is not known."""
        return self._behind

    def _run(self, once: bool, every_s: float | None) -> None:
        try:
            if once:
                self._source.prepareForTriggerAvailableNow()
            # where a query without a checkpoint begins is found once, also if nothing comes for long
            place = self._lake.state().place or self._source.initialOffset()
            while not self._is_stopping.is_set():
                began = time.monotonic()
                before, place = place, self._round(place)
                if place == before and once:
                    return
                pause = _IDLE_S if place == before else 0.0
                if every_s is not None and not once:
                    pause = max(pause, began + every_s - time.monotonic())
                self._is_stopping.wait(pause)
        except Exception as problem:  # noqa: BLE001 - it is raised where somebody waits
            self._problem = problem

    def _round(self, start: SparkOffset) -> SparkOffset:
        """Land what comes next, if anything does; where reading goes on."""
        end = self._source.latestOffset(start, self._source.getDefaultReadLimit())
        if end == start:
            return start
        latest = shards(self._source.reportLatestOffset())
        landed = self._ingest.take(self._batch(start, end))
        self._behind = ahead(latest, shards(end))
        self._source.commit(end)
        if self._on_landed is not None:
            self._on_landed(landed)
        return end

    def _batch(self, start: SparkOffset, end: SparkOffset) -> Batch:
        def after(state: State) -> State:
            number = state.queries.get(WITHOUT_CHECKPOINT, -1) + 1
            return msgspec.structs.replace(
                state,
                queries={**state.queries, WITHOUT_CHECKPOINT: number},
                positions={**state.positions, **shards(end)},
                place=end,
            )

        # checks the stores once more, right before they are read, and tells which records are lost
        if not self._source.partitions(start, end):
            return Batch(lambda _work: [], list, after)
        return batch_of(self._read(shards(start), shards(end)), after)

    def _read(self, start: dict[str, int], end: dict[str, int]) -> DataFrame:
        # a broker that has just joined has an empty range
        begin = {name: start.get(name, offset) for name, offset in end.items()}
        places = {"startingOffsets": json.dumps(begin), "endingOffsets": json.dumps(end)}
        return self._spark.read.format("tieline").options(**{**self._logs.source(), **places}).load()
