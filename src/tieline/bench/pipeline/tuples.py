"""The same source with another reader: rows as tuples, one Python object for each value, to show what Arrow is worth.

Nobody should use it.  It reads the same ranges of the same log servers through the same client.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieline.pipeline.source.batch import BatchReader
from tieline.pipeline.source.format import TielineSource
from tieline.pipeline.source.options import SourceOptions, read_options
from tieline.pipeline.source.ranges import read_range


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
    """The format ``tieline_tuples``."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tieline_tuples"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads once, slowly."""
        return TupleReader(read_options(self.options))
