"""``spark.readStream.format("tieline")``: brokers' logs, a range after the other.

Theory of operation
-------------------
Spark keeps the object in a process of its own (the planner) for as long as the query runs, asks it for the next end
(:meth:`StreamReader.latestOffset`), writes that to the checkpoint, and asks how the range between two such places is
cut into tasks (:meth:`StreamReader.partitions`).  After a crash the second question comes first, for the range that
was written down and not finished.  So nothing here is remembered that a restart would miss: a range always means the
same records, wherever it is asked for.

A broker that joins a running query enters with an empty range: its starting place is written to the checkpoint before
any of its records is read, or a restart might find another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tieline.pipeline.options import SparkOffset
from tieline.pipeline.source.client import Gap
from tieline.pipeline.source.offsets import (
    Place,
    Places,
    Survey,
    check,
    chosen,
    decode,
    encode,
    missing,
    spread,
    survey,
)
from tieline.pipeline.source.options import SourceOptions, Where
from tieline.pipeline.source.ranges import REMEDY, cut, log, read_range, warn

#: Spark asks for news every ten milliseconds where the trigger allows it; a server is asked so often at most.
_CALM_S: Final = 0.05


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on and on."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        #: Where every log ended when a query with the trigger availableNow began; None for other triggers.
        self._target: dict[str, int] | None = None
        #: Records that were gone before they were read, in this run of the query.
        self.lost = 0
        self._asked = 0.0

    def initialOffset(self) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins."""
        return encode(chosen("startingOffsets", self._options.starting, survey(self._options)))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much one batch may hold."""
        return ReadAllAvailable() if self._options.max_rows is None else ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """From now on nothing new counts."""
        self._target = {name: shard.offsets.latest for name, shard in survey(self._options).items()}

    def reportLatestOffset(self) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where the logs end, for the progress that people watch."""
        return encode(chosen("endingOffsets", "latest", survey(self._options)))

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        self._calm()
        found = survey(self._options)
        kept = self._checked(start, found)
        begins = {name: self._kept_from(name, place, found) for name, place in kept.items()}
        waiting = {name: max(0, self._end(name, found) - begin) for name, begin in begins.items()}
        if isinstance(limit, ReadMaxRows):
            waiting = spread(waiting, limit.max_rows)
        # a place stays where nothing waits, also before a gap: else a batch would run for it alone
        ends: Places = {
            name: Place(begins[name] + waiting[name] if waiting[name] else place.offset, place.created)
            for name, place in kept.items()
        }
        if joined := found.keys() - kept.keys():
            ends |= chosen("startingOffsets", self._starting(), {name: found[name] for name in joined})
        return encode(ends)

    def partitions(self, start: SparkOffset, end: SparkOffset) -> Sequence[InputPartition]:
        """The ranges that are read in parallel."""
        found = survey(self._options)
        begins, ends = self._checked(start, found), self._checked(end, found)
        parts: list[InputPartition] = []
        for name, place in sorted(ends.items()):
            if name not in begins or begins[name].offset >= place.offset:
                continue
            first = min(self._kept_from(name, begins[name], found), place.offset)
            if lost := first - begins[name].offset:
                self.lost += lost
                warn(name, Gap("", begins[name].offset, first))
                log.warning("%d records were lost since this query was started", self.lost)
            parts += cut(name, found[name].url, first, place.offset, rows=self._options.partition_rows)
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range; called in executors, on a copy."""
        return read_range(self._options, partition)

    def commit(self, end: SparkOffset) -> None:
        """Spark needs nothing below a place any more: so says the named reader, if there is one."""
        if self._options.reader is None or self._options.stream != "log":
            return
        found = survey(self._options)
        for name, place in self._checked(end, found).items():
            self._options.client(found[name].url).move_reader(self._options.reader, place.offset)

    def stop(self) -> None:
        """Nothing is held open between questions."""

    def _checked(self, kept: SparkOffset, found: Survey) -> Places:
        return check(decode(kept), found, fail_on_data_loss=self._options.fail_on_data_loss)

    def _kept_from(self, name: str, place: Place, found: Survey) -> int:
        """The first offset at or behind a place that is still there."""
        gap = missing(name, place, found[name])
        if gap is not None and self._options.fail_on_data_loss:
            raise Gap(f"{gap}; {REMEDY}", gap.first, gap.last)
        return place.offset if gap is None else gap.last

    def _end(self, name: str, found: Survey) -> int:
        latest = found[name].offsets.latest
        return latest if self._target is None else min(latest, self._target.get(name, 0))

    def _starting(self) -> Where:
        # offsets by name were meant for the brokers of the start; one that joins later is read from its beginning
        return "earliest" if isinstance(self._options.starting, dict) else self._options.starting

    def _calm(self) -> None:
        pause = self._asked + _CALM_S - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        self._asked = time.monotonic()
