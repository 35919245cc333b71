"""Ingest: brokers' logs become tables, continuously or up to now, and directories of history besides.

A streaming query reads the logs; behind Spark Connect, where it could not land batches, rounds of plain queries do.
The query's place in the logs is kept by Spark's checkpoint inside the lake; what has landed is kept by the lake itself.
When Spark repeats a batch after a crash, the lake knows that it has it.  So every record of the logs is in the tables
once.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

import msgspec

from tieline.pipeline.jobs import history
from tieline.pipeline.jobs.ingest_batch import MAX_ROWS, After, Filling, Ingest, Logs, OnLanded, ahead, batch_of
from tieline.pipeline.jobs.ingest_rounds import Rounds
from tieline.pipeline.lake import Lake, LakeError, State
from tieline.pipeline.session import is_connected
from tieline.pipeline.source.offsets import shards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: The checkpoint's directory below ``_checkpoints``.
_CHECKPOINT: Final = "ingest"
#: In the checkpoint, what the query is called.
_METADATA: Final = "metadata"


class Stopped(Exception):
    """A batch was not begun because somebody wants to end."""


def filling(spark: SparkSession, lake: Lake, logs: Logs, *, on_landed: OnLanded | None = None) -> Filling:
    """What fills a lake from logs in this session."""
    kind = Rounds if is_connected(spark) else Running
    return kind(spark, lake, logs, on_landed=on_landed)


class Running:
    """A streaming query that fills a lake."""

    def __init__(self, spark: SparkSession, lake: Lake, logs: Logs, *, on_landed: OnLanded | None = None) -> None:
        self._spark = spark
        self._lake = lake
        self._logs = logs
        self._checkpoint = lake.layout.checkpoints / _CHECKPOINT
        self._ingest = Ingest(lake)
        self._on_landed = on_landed
        #: Held while a batch is made.
        self._at_work = threading.Lock()
        self._is_stopping = False
        self._query: StreamingQuery | None = None

    def start(self, *, once: bool = False, every_s: float | None = None) -> None:
        """Begin; with ``once`` the query ends when it has what there is now."""
        is_known = (self._checkpoint / _METADATA).exists()
        self._lake.refuse_other_query(_query_id(self._checkpoint) if is_known else "a new one")
        writer = self._stream().writeStream.queryName("tieline ingest").foreachBatch(self._land)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        if once:
            writer = writer.trigger(availableNow=True)
        elif every_s is not None:
            writer = writer.trigger(processingTime=f"{round(every_s * 1_000)} milliseconds")
        self._query = writer.start()

    def wait(self, seconds: int) -> bool:
        """Whether the query has ended, or does so within this time; raises what ended it."""
        assert self._query is not None
        return bool(self._query.awaitTermination(seconds))

    def stop(self) -> None:
        """End between two batches: the one in the making lands, the next does not begin."""
        if self._query is None:
            return
        with self._at_work:
            self._is_stopping = True
        self._query.stop()

    def behind(self) -> int | None:
        """How many offsets the logs are ahead; None while that is not known."""
        progress = None if self._query is None else self._query.lastProgress
        if progress is None or not progress["sources"]:
            return None
        source = progress["sources"][0]
        return ahead(shards(source["latestOffset"]), shards(source["endOffset"]))

    def _land(self, frame: DataFrame, number: int) -> None:
        with self._at_work:
            if self._is_stopping:
                # to return would tell Spark that the batch is done
                raise Stopped("ingest was stopped before this batch")
            query = _query_id(self._checkpoint)
            self._lake.claim(query)
            if self._lake.state().has(query, number):
                return
            landed = self._ingest.take(batch_of(frame, self._after(query, number)))
        if self._on_landed is not None:
            self._on_landed(landed)

    def _stream(self) -> DataFrame:
        return self._spark.readStream.format("tieline").options(**self._logs.source()).load()

    def _after(self, query: str, number: int) -> After:
        def after(state: State) -> State:
            positions = {**state.positions, **_positions(self._checkpoint, number)}
            return msgspec.structs.replace(state, queries={**state.queries, query: number}, positions=positions)

        return after


def take_history(
    spark: SparkSession,
    lake: Lake,
    directory: Path,
    *,
    max_rows: int = MAX_ROWS,
    on_landed: OnLanded | None = None,
    asked_to_stop: threading.Event | None = None,
) -> int:
    """Bring the files of a directory into a lake, those that it has not taken yet; returns how many records."""
    ingest = Ingest(lake)
    records = 0
    for files in history.groups(history.pending(directory, lake.state()), max_rows):
        if asked_to_stop is not None and asked_to_stop.is_set():
            break
        landed = ingest.take(history.batch_of(spark, files))
        records += landed.records
        if on_landed is not None:
            on_landed(landed)
    return records


def _query_id(checkpoint: Path) -> str:
    """The id that Spark gave the query when its checkpoint was made; batches are counted from there."""
    try:
        found: dict[str, Any] = msgspec.json.decode((checkpoint / _METADATA).read_bytes())
        return str(found["id"])
    except (OSError, msgspec.DecodeError, KeyError) as problem:
        raise LakeError(f"the checkpoint {checkpoint} cannot be read: {problem}.") from None


def _positions(checkpoint: Path, number: int) -> dict[str, int]:
    """Where a batch ends in each log, by what Spark wrote down before it began; the last line is that of the source."""
    *_, last = (checkpoint / "offsets" / str(number)).read_text().splitlines()
    return shards(last)
