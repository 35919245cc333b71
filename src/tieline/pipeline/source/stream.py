"""``spark.readStream.format("tieline")``: brokers' logs, a range after the other.

Theory of operation
-------------------
Spark keeps the object in a process of its own (the planner) for as long as the query runs, asks it for the next end
(:meth:`StreamReader.latestOffset`), writes that to the checkpoint, and asks how the range between two such places is
cut into tasks (:meth:`StreamReader.partitions`).  After a crash the second question comes first, for the range that
was written down and not finished.  All answers are those of :mod:`tieline.pipeline.source.following`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tieline.pipeline.options import SparkOffset
from tieline.pipeline.source.following import Following
from tieline.pipeline.source.options import SourceOptions
from tieline.pipeline.source.ranges import read_range

#: Spark asks for news every ten milliseconds where the trigger allows it; a server is asked so often at most.
_CALM_S: Final = 0.05


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on and on."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._following = Following(options)
        self._asked = 0.0

    @property
    def lost(self) -> int:
        """Records that were gone before they were read, in this run of the query."""
        return self._following.lost

    def initialOffset(self) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins."""
        return self._following.begin()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much one batch may hold."""
        return ReadAllAvailable() if self._options.max_rows is None else ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """From now on nothing new counts."""
        self._following.stop_at_latest()

    def reportLatestOffset(self) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where the logs end, for the progress that people watch."""
        return self._following.latest()

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        self._calm()
        return self._following.next_end(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def partitions(self, start: SparkOffset, end: SparkOffset) -> Sequence[InputPartition]:
        """The ranges that are read in parallel."""
        return [InputPartition(each) for each in self._following.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range; called in executors, on a copy."""
        if partition.value is not None:  # Spark makes a partition of its own where there is nothing to read
            yield from read_range(self._options, partition.value)

    def commit(self, end: SparkOffset) -> None:
        """Spark needs nothing below a place any more: so says the named reader, if there is one."""
        self._following.commit(end)

    def stop(self) -> None:
        """Nothing is held open between questions."""

    def _calm(self) -> None:
        pause = self._asked + _CALM_S - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        self._asked = time.monotonic()
