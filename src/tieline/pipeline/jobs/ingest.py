"""Ingest: brokers' logs become tables, continuously or up to now, and directories of history besides.

Theory of operation
-------------------
This process asks the log servers where the next batch ends, lets tasks fetch, decode and write it, and lands what they
have reported.  Only file names and a few keys come back; the rows go from a broker into files within one task.  It is
the same on this machine, on a cluster and behind Spark Connect, since it needs nothing of Spark but a task for each
range.

The place in the logs is part of the lake's state and lands in one step with the batch that it belongs to.  A batch that
did not land has left nothing, and is read again; one that has landed is never asked for again.  So every record of the
logs is in the tables once, whatever dies in between.

A batch lands only if it begins at the place in the very state that it is committed onto.  So it is also once when two
ingest at the same time, or one was stopped for long and another has taken its part: the later one is told, and ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tieline.pipeline.decode.births import PATTERN, TOPICS, Birth
from tieline.pipeline.jobs import history
from tieline.pipeline.jobs.ingest_batch import MAX_ROWS, Batch, Ingest, Landed, Logs, OnLanded, ingest_in_tasks
from tieline.pipeline.lake import Lake, LakeError, Overtaken, State, compaction
from tieline.pipeline.lake.disk import Busy
from tieline.pipeline.options import SparkOffset
from tieline.pipeline.source.following import Following
from tieline.pipeline.source.offsets import CREATED, shards
from tieline.pipeline.source.options import SourceOptions, read_options
from tieline.pipeline.source.ranges import Range, read_range
from tieline.pipeline.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("tieline.pipeline.ingest")

#: Between two looks at logs that had nothing new.
_IDLE_S: Final = 0.25
#: Merges of small files between two looks for files that do not count any more: each lists all files there are.
_SWEEP_EVERY: Final = 10
_BIRTHS_DDL: Final = "shard string, offset bigint, topic string, payload binary"


class Filling:
    """Fills a lake from logs, in the background, one batch after the other."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        logs: Logs,
        *,
        on_landed: OnLanded | None = None,
        compact_every: int = 0,
    ) -> None:
        """After each ``compact_every`` batches the small files of each day are merged; 0 leaves them as they are.

        Batches are counted by the lake, so it makes no difference how often this is begun anew.
        """
        self._spark = spark
        self._compact_every = compact_every
        self._lake = lake
        self._on_landed = on_landed
        self._ingest = Ingest(lake)
        self._options = read_options(logs.source())
        self._following = Following(self._options)
        #: The place as the lake says it, after the last batch of this object or when it began.
        self._kept: SparkOffset | None = None
        self._behind: dict[str, int] | None = None
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        #: What ended the thread, unless it came to its end.
        self._problem: Exception | None = None

    def start(self, *, once: bool = False, every_s: float | None = None) -> None:
        """Begin; with ``once`` it ends when it has what there is now.

        ``every_s`` is the least time between the beginnings of two batches.
        """
        self._thread = threading.Thread(target=self._run, args=(once, every_s), name="tieline ingest", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
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
        return None if self._behind is None else sum(self._behind.values())

    def behind_each(self) -> Mapping[str, int] | None:
        """The same for each broker."""
        return self._behind

    def _run(self, once: bool, every_s: float | None) -> None:
        try:
            if once:
                self._following.stop_at_latest()
            # where a lake without a place begins is found once, also if nothing comes for long
            place = self._place()
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

    def _place(self) -> SparkOffset:
        """Where reading goes on, or begins."""
        kept = self._kept = self._lake.place(self._lake.state())
        if kept is None:
            return self._following.begin()
        if CREATED not in kept:
            # of a lake that was brought forward without its checkpoint: the stores are taken for those that were read
            known = self._following.latest()[CREATED]
            kept = {**kept, CREATED: {name: known.get(name, 0.0) for name in kept}}
        # once more, in case that the last process was killed between the batch and this
        self._following.commit(kept)
        return kept

    def _round(self, start: SparkOffset) -> SparkOffset:
        """Land what comes next, if anything does; where reading goes on."""
        end = self._following.next_end(start, self._options.max_rows)
        latest = shards(self._following.latest())
        if end != start:
            landed = self._ingest.take(self._batch(start, end))
            self._kept = end
            self._following.commit(end)
            if self._on_landed is not None:
                self._on_landed(landed)
            if self._compact_every and (landed.number + 1) % self._compact_every == 0:
                self._tidy((landed.number + 1) // self._compact_every)
        self._behind = {name: max(0, offset - end.get(name, 0)) for name, offset in latest.items()}
        return end

    def _tidy(self, times: int) -> None:
        """Merge what small batches have left, and sometimes remove what has not counted for long.

        Whoever compacts besides has done it, or will.
        """
        try:
            for each in compaction.compact(self._lake, run=compaction.on_spark(self._spark), small_only=True):
                log.info("%s: %d files became %d", each.table, each.files_before, each.files_after)
            if times % _SWEEP_EVERY == 0:
                compaction.sweep(self._lake)
        except (LakeError, Busy) as problem:
            log.warning("small files stay as they are until the next time: %s", problem)

    def _batch(self, start: SparkOffset, end: SparkOffset) -> Batch:
        def after(state: State) -> State:
            return msgspec.structs.replace(state, positions={**state.positions, **shards(end)}, place=end)

        def check(state: State) -> None:
            if (place := self._lake.place(state)) != self._kept:
                raise Overtaken(
                    f"{self._lake.where} has come to {_told(place)} in the logs, and this ingest to "
                    f"{_told(self._kept)}: somebody else fills this lake. Nothing was brought in twice; let one ingest."
                )

        # checks the stores once more, right before they are read, and tells which records are lost
        ranges = self._following.ranges(start, end)
        run = partial(ingest_in_tasks, self._spark, ranges, partial(_records, self._options))
        return Batch(run, partial(self._births, ranges), after, check)

    def _births(self, ranges: Sequence[Range]) -> list[Birth]:
        topics = self._options.topics or TOPICS
        asked = replace(self._options, columns=Birth._fields, topics=topics)
        rows = in_tasks(self._spark, ranges, partial(_births, asked), _BIRTHS_DDL)
        return [Birth(row["shard"], row["offset"], row["topic"], bytes(row["payload"])) for row in rows]


def _told(place: SparkOffset | None) -> str:
    return ", ".join(f"{name} {offset:,}" for name, offset in sorted(shards(place).items())) or "the beginning"


def _records(options: SourceOptions, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    for each in ranges:
        yield from read_range(options, each)


def _births(options: SourceOptions, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    for batch in _records(options, ranges):
        yield batch.filter(pc.match_substring_regex(batch.column("topic"), PATTERN))


def take_history(
    spark: SparkSession,
    lake: Lake,
    directory: Path,
    *,
    max_rows: int = MAX_ROWS,
    on_pending: Callable[[int], None] | None = None,
    on_landed: OnLanded | None = None,
    asked_to_stop: threading.Event | None = None,
) -> int:
    """Bring the files of a directory into a lake, those that it has not taken yet; returns how many records.

    Before the first batch, somebody may be told how many records there will be.
    """
    ingest = Ingest(lake)
    records = 0
    pending = history.pending(directory, lake.state())
    if on_pending is not None:
        on_pending(sum(each.rows for each in pending))
    for files in history.groups(pending, max_rows):
        if asked_to_stop is not None and asked_to_stop.is_set():
            break
        landed: Landed = ingest.take(history.batch_of(spark, files))
        records += landed.records
        if on_landed is not None:
            on_landed(landed)
    return records
