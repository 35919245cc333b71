"""``spark.read.format("tieline")``: every log as it stands when the query is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tieline.pipeline.options import OptionError
from tieline.pipeline.source.client import Gap
from tieline.pipeline.source.offsets import LogPlace, chosen, missing, survey
from tieline.pipeline.source.options import SourceOptions
from tieline.pipeline.source.ranges import REMEDY, Range, cut, read_range, warn


class BatchReader(DataSourceReader):
    """Reads once; Spark makes it on the driver and sends copies to executors."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges that are read in parallel."""
        options, found = self._options, survey(self._options)
        starts = chosen("startingOffsets", options.starting, found)
        ends = chosen("endingOffsets", options.ending, found)
        parts: list[Range] = []
        for name, shard in sorted(found.items()):
            start, end = starts[name].offset, ends[name].offset
            if start > end:
                raise OptionError(f"startingOffsets ({start}) lies behind endingOffsets ({end}) for {name}")
            gap = missing(name, LogPlace(start, 0.0), shard) if start < end else None
            if gap is not None:
                if options.fail_on_data_loss:
                    raise Gap(f"{gap}; {REMEDY}", gap.first, gap.last)
                warn(name, Gap(str(gap), gap.first, min(gap.last, end)))
                start = min(gap.last, end)
            parts += cut(name, shard.url, start, end, rows=options.partition_rows)
        return [InputPartition(each) for each in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range."""
        if partition.value is not None:  # Spark makes a partition of its own where there is nothing to read
            yield from read_range(self._options, partition.value)
