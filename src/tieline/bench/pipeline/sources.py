"""Two more Spark sources, to show what Arrow is worth: rows as tuples, and records that are in memory already.

Nobody should use them.  The tuples are read from the same ranges of the same log servers through the same client as
batches are.  Reading through a log server, what the server takes is the same for both and hides the difference; from
memory there is nothing else.  Those records are the ones of :mod:`tieline.bench.pipeline.readings`, one batch of them
again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final  # Any: batches of pyarrow, which has no types

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieline.bench.pipeline.readings import log_table, readings
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.source.format import TielineSource
from tieline.pipeline.source.options import LOG, SourceOptions, read_options
from tieline.pipeline.source.ranges import BatchReader, read_range


class TupleReader(BatchReader):
    """Hands out one tuple for each record."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._asked = options

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range, row by row."""
        for batch in read_range(self._asked, partition):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class TupleSource(TielineSource):
    """The source that Spark knows as the format ``tieline_tuples``."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tieline_tuples"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that makes a tuple of every record."""
        return TupleReader(read_options(self.options))


#: Rows of one batch, as a log server makes them.
BATCH_ROWS: Final = 8_192


class MemorySource(DataSource):
    """The format ``tieline_memory``; options: ``batches`` of each task, ``tasks``, and ``tuples`` = true or false."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tieline_memory"

    def schema(self) -> StructType:
        """The columns that ingest reads."""
        return StructType([LOG[name] for name in NEEDED])

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that hands the records out."""
        options = self.options
        return MemoryReader(int(options["tasks"]), int(options["batches"]), options["tuples"] == "true")


class MemoryReader(DataSourceReader):
    """Gives the same batch to Spark, so many times in each task."""

    def __init__(self, tasks: int, batches: int, is_tuples: bool) -> None:
        self._tasks = tasks
        self._batches = batches
        self._is_tuples = is_tuples

    def partitions(self) -> list[InputPartition]:
        """One for each task."""
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, _partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        batch = _batch()
        for _ in range(self._batches):
            if self._is_tuples:
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
            else:
                yield batch


@lru_cache(maxsize=1)
def _batch() -> pa.RecordBatch:
    """Made once in a process that Spark uses again and again."""
    return log_table(readings(0, BATCH_ROWS)).select(NEEDED).combine_chunks().to_batches()[0]
