"""Merging the files of a day: which belong together, in which order their rows come, and who carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from tieline.pipeline.lake.writing import clustered
from tieline.pipeline.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows of a file after compaction, and rows that one merge holds in memory (some 150 bytes each).
FILE_ROWS: Final = 1_048_576
MERGE_ROWS: Final = 8 * FILE_ROWS
#: A file with fewer rows is worth merging with others.
_SMALL_ROWS: Final = FILE_ROWS // 2

File = TypeVar("File")


class Compacted(NamedTuple):
    """What became of a table."""

    table: str
    files_before: int
    files_after: int
    rows: int
    #: Rows of days that were removed.
    removed: int


class Merge(Protocol):
    """Files of one day that become one stretch of sorted rows; it may travel to a task."""

    def carry_out(self) -> list[str]:
        """Write the new files; what is to be told about each."""
        ...


#: Carries out merges, here or on a cluster; returns what each told.
RunMerges = Callable[[Sequence[Merge]], Sequence[str]]


def here(merges: Sequence[Merge]) -> list[str]:
    """Carry out merges in this process, one after the other."""
    return [told for each in merges for told in each.carry_out()]


def on_spark(spark: SparkSession) -> RunMerges:
    """Carries out each merge as one task."""

    def run(merges: Sequence[Merge]) -> list[str]:
        def work(mine: Sequence[Merge]) -> Iterator[pa.RecordBatch]:
            for each in mine:
                yield pa.RecordBatch.from_arrays([pa.array(each.carry_out(), pa.string())], names=["told"])

        return [row["told"] for row in in_tasks(spark, merges, work, "told string")]

    return run


def groups(found: Sequence[tuple[File, int]], *, small_only: bool = False) -> Iterator[list[File]]:
    """Files of a day, with their rows, that are merged with each other.

    Nothing is gained from one alone, nor from several full ones.  With ``small_only`` those that are much larger than
    the rest are left as they are (:func:`alike`): then what is written stays in proportion to what is new.
    """
    if small_only:
        found = alike(found)
    if len(found) < 2 or all(rows >= _SMALL_ROWS for _file, rows in found):
        return
    group: list[File] = []
    total = 0
    for file, rows in found:
        if group and total + rows > MERGE_ROWS:
            if len(group) > 1:
                yield group
            group, total = [], 0
        group.append(file)
        total += rows
    if len(group) > 1:
        yield group


def alike(found: Sequence[tuple[File, int]]) -> list[tuple[File, int]]:
    """The small files of a day, without those that are larger than all smaller ones together.

    So a row is in a file of at least twice the size after each merge, and is merged some twenty times at the most until
    its file is full, however small the batches are in which rows come.  No more are given than fill one file.
    """
    kept: list[tuple[File, int]] = []
    total = 0
    best = 0
    for file, rows in sorted(found, key=lambda each: each[1]):
        if rows >= _SMALL_ROWS or total + rows > FILE_ROWS:
            break
        if kept and rows <= total:
            best = len(kept) + 1
        kept.append((file, rows))
        total += rows
    return kept[:best]


def stretches(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of some files, sorted together and cut into files of one size: a small rest would be merged again."""
    rows = clustered(pa.concat_tables([with_columns(each, schema) for each in parts]))
    count = -(-len(rows) // FILE_ROWS)
    for number in range(count):
        begin, end = len(rows) * number // count, len(rows) * (number + 1) // count
        yield rows.slice(begin, end - begin)


def with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of today; those that their file does not have are null."""
    columns = [
        rows[field.name] if field.name in rows.schema.names else pa.nulls(len(rows), field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)
