"""The merges of a compaction as Spark tasks, for lakes on a file system that all machines of a cluster share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tieline.pipeline.lake.compaction import Merge, RunMerges, merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def on_spark(spark: SparkSession) -> RunMerges:
    """Carries out each merge as one task."""

    def run(merges: Sequence[Merge]) -> list[str]:
        if not merges:
            return []

        def task(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch.column("id").to_pylist():
                    yield pa.RecordBatch.from_arrays([pa.array(merge(merges[number]), pa.string())], names=["path"])

        found = spark.range(0, len(merges), 1, len(merges)).mapInArrow(task, "path string").collect()
        return [row["path"] for row in found]

    return run
