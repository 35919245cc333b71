"""``spark.readStream.format("mqtt")``: any broker's messages, through a spool on the driver's machine.

Theory of operation
-------------------
The object lives in Spark's planner process for as long as the query does; there it holds the connection and the spool.
Copies of it in executors hold neither: the rows of a task travel inside its partition, because an executor on another
machine could not read the spool.  A batch is therefore bounded.

An offset is a place in the spool, and says which spool: ``{"offset": 1200, "spool": "5f0e…"}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tieline.pipeline.broker import BrokerError
from tieline.pipeline.foreign.intake import Intake
from tieline.pipeline.foreign.options import MQTT_ARROW, ForeignOptions
from tieline.pipeline.foreign.spool import Spool
from tieline.pipeline.options import SparkOffset

#: A broker that has sent nothing for so long has sent all that it had queued.
_QUIET_S: Final = 1.0
#: Rows of one task.
_PART_ROWS: Final = 25_000


@dataclass(frozen=True)
class Rows(InputPartition):
    """The rows of one task, as an Arrow stream."""

    stream: bytes


class ForeignReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on and on."""

    def __init__(self, options: ForeignOptions) -> None:
        self._options = options
        self._open: tuple[Spool, Intake] | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, object]:
        """Copies for executors hold nothing open."""
        return {"_options": self._options, "_open": None, "_target": None}

    def initialOffset(self) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins: at whatever the spool has."""
        return self._offset(self._spool().bounds()[0])

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much one batch may hold."""
        return ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take what the broker has queued for us; from then on nothing new counts."""
        spool = self._spool()
        self._intake().drain(_QUIET_S)
        self._target = spool.bounds()[1]

    def reportLatestOffset(self) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where the spool ends, for the progress that people watch."""
        return self._offset(self._spool().bounds()[1])

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        begin = self._place(start)
        self._intake().check()
        latest = self._spool().bounds()[1]
        end = latest if self._target is None else min(latest, self._target)
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        return self._offset(max(begin, end))

    def partitions(self, start: SparkOffset, end: SparkOffset) -> Sequence[InputPartition]:
        """The rows of a batch, in parts."""
        first, last = self._place(start), self._place(end)
        spool = self._spool()
        return [
            Rows(_packed(spool.read(place, min(place + _PART_ROWS, last), MQTT_ARROW)))
            for place in range(first, last, _PART_ROWS)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if isinstance(partition, Rows):
            yield from pa.ipc.open_stream(partition.stream)

    def commit(self, end: SparkOffset) -> None:
        """Spark has finished with everything before a place."""
        self._spool().trim(self._place(end))

    def stop(self) -> None:
        """Disconnect, and let go of the spool."""
        if self._open is not None:
            spool, intake = self._open
            self._open = None
            intake.close()
            spool.close()

    def _spool(self) -> Spool:
        return self._opened()[0]

    def _intake(self) -> Intake:
        return self._opened()[1]

    def _opened(self) -> tuple[Spool, Intake]:
        if self._open is None:
            spool = Spool(self._options.spool, patience_s=self._options.patience_s)
            intake = Intake(self._options, spool)
            try:
                intake.open()
            except BaseException:
                intake.close()
                spool.close()
                raise
            self._open = spool, intake
        return self._open

    def _offset(self, place: int) -> SparkOffset:
        return {"offset": place, "spool": self._spool().id}

    def _place(self, offset: SparkOffset) -> int:
        if offset["spool"] != self._spool().id:
            raise BrokerError(
                f"the spool {self._options.spool} is not the one that the checkpoint has read: begin with a new "
                "checkpoint, or put the old spool back"
            )
        place: int = offset["offset"]
        return place


def _packed(batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, MQTT_ARROW) as writer:
        for batch in batches:
            writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
