"""Work in pieces on Spark: one task for each, which finds its pieces itself and gives back a few rows.

The rows of a plain range stand for the pieces, so that this works with every version of Spark, on a cluster and behind
Spark Connect alike, and nothing of what the tasks read passes through Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

Piece = TypeVar("Piece")


def in_tasks(
    spark: SparkSession,
    pieces: Sequence[Piece],
    work: Callable[[Sequence[Piece]], Iterator[pa.RecordBatch]],
    columns: str,
) -> list[Row]:
    """Do the work of all pieces, each in a task, and bring back what it gives; ``columns`` are its columns in DDL."""
    if not pieces:
        return []

    def task(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = [pieces[number] for batch in numbers for number in batch.column("id").to_pylist()]
        if mine:
            yield from work(mine)

    return spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(task, columns).collect()
