"""Compaction and retention: a table built anew beside the old one, and exchanged with it in one step.

Theory of operation
-------------------
Batches are small and each is clustered for itself.  Compaction puts the files of a day together, sorts all their rows
along the Hilbert curve and cuts the result into large files, each of which then covers a short stretch of the curve.
Files that need nothing are linked into the new directory, not copied.  Retention is the same without the old days.

The new directory is built while batches go on landing.  Only at the end, with the tables' lock held, what landed
meanwhile is linked too, the rows are counted, and the directories change places.  A process that is killed before has
changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.lake import landing
from tieline.pipeline.lake.disk import locked
from tieline.pipeline.lake.lake import Lake
from tieline.pipeline.lake.layout import LakeError, Table, batch_name, batch_of, day_name, day_of, files
from tieline.pipeline.lake.writing import clustered, part_name, write_file
from tieline.pipeline.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Rows of a file after compaction, and rows that one merge holds in memory (some 150 bytes each).
FILE_ROWS: Final = 1_048_576
MERGE_ROWS: Final = 8 * FILE_ROWS


class Merge(NamedTuple):
    """Files of one day that become one stretch of sorted rows."""

    sources: tuple[str, ...]
    #: Where the new files go, and the columns they have.
    target: str
    schema: pa.Schema


class Compacted(NamedTuple):
    """What became of a table."""

    table: str
    files_before: int
    files_after: int
    rows: int
    #: Rows of days that were removed.
    removed: int


#: Carries out merges, here or on a cluster; returns the files that they wrote.
RunMerges = Callable[[Sequence[Merge]], Sequence[str]]


def here(merges: Sequence[Merge]) -> list[str]:
    """Carry out merges in this process, one after the other."""
    return [path for each in merges for path in merge(each)]


def compact(lake: Lake, *, keep_from: date | None = None, run: RunMerges = here) -> Iterator[Compacted]:
    """Compact every table; days before ``keep_from`` are removed."""
    busy = f"another process compacts {lake.layout.root} already."
    with locked(lake.layout.compact_lock, wait=False, busy=busy):
        for table in lake.tables():
            if lake.document.format == "delta":
                found = _compact_delta(lake, table, keep_from)
            else:
                found = _compact(lake, table, keep_from, run)
            if found is not None:
                yield found


def merge(work: Merge) -> list[str]:
    """Sort the rows of some files together, and write them as few large ones; returns their paths."""
    rows = pa.concat_tables(
        [_with_columns(pq.read_table(path, partitioning=None), work.schema) for path in work.sources]
    )
    rows = clustered(rows)
    target = Path(work.target)
    target.mkdir(parents=True, exist_ok=True)
    # files of one size: a small rest would be merged again the next time
    count = -(-len(rows) // FILE_ROWS)
    paths: list[str] = []
    for number in range(count):
        begin, end = len(rows) * number // count, len(rows) * (number + 1) // count
        path = target / part_name()
        write_file(rows.slice(begin, end - begin), path)
        paths.append(str(path))
    return paths


def _compact(lake: Lake, table: Table, keep_from: date | None, run: RunMerges) -> Compacted | None:
    live = lake.layout.table(table)
    before = files(live)
    kept = [path for path in before if keep_from is None or day_of(path) >= keep_from.isoformat()]
    with lake.attempt() as attempt:
        fresh, written = attempt.root / "table", attempt.root / "written"
        merges = list(_merges(lake, table, kept, written))
        if not merges and len(kept) == len(before):
            return None
        fresh.mkdir()
        merged = {path for each in merges for path in each.sources}
        # by name: a task that was given up and carried out again elsewhere may still write there
        _link(lake, map(Path, run(merges)), written, fresh)
        _link(lake, (path for path in kept if str(path) not in merged), live, fresh)
        lake.disk.sync_tree(fresh)
        with lake.changing():
            known = set(before)
            arrived = [path for path in files(live) if path not in known]
            _link(lake, arrived, live, fresh)
            lake.disk.sync_tree(fresh)
            rows, expected = _rows(files(fresh)), _rows(kept) + _rows(arrived)
            if rows != expected:
                raise LakeError(f"{table.name} would have {rows:,} rows after compaction and has {expected:,}.")
            removed = _rows(before) - _rows(kept)
            landing.replace_table(lake.layout, lake.disk, table, fresh)
    return Compacted(table.name, len(before) + len(arrived), len(files(live)), rows, removed)


def _compact_delta(lake: Lake, table: Table, keep_from: date | None) -> Compacted | None:
    from tieline.pipeline.lake import delta

    live = lake.layout.table(table)
    before = delta.files(live)
    if not before:
        return None
    known = None if table.event_type is None else lake.document.types.get(table.event_type)
    clustering = () if known is None or known.clustering is None else known.clustering.attributes
    with lake.changing():
        removed = delta.compacted(live, clustering, keep_from)
    after = delta.files(live)
    return Compacted(table.name, len(before), len(after), _rows(after), removed)


def _merges(lake: Lake, table: Table, kept: Sequence[Path], fresh: Path) -> Iterator[Merge]:
    days: dict[str, list[Path]] = {}
    for path in kept:
        days.setdefault(day_of(path), []).append(path)
    schema = lake.schema(table)
    for day, found in days.items():
        for group in _groups(found):
            newest = max(map(batch_of, group))
            target = fresh / day_name(day) / batch_name(newest)
            yield Merge(tuple(map(str, group)), str(target), schema)


def _groups(found: Sequence[Path]) -> Iterator[list[Path]]:
    """Files that are merged with each other: nothing is gained from one alone, nor from several full ones."""
    counts = {path: pq.read_metadata(path).num_rows for path in found}
    if len(found) < 2 or all(count >= FILE_ROWS // 2 for count in counts.values()):
        return
    group: list[Path] = []
    total = 0
    for path in found:
        if group and total + counts[path] > MERGE_ROWS:
            if len(group) > 1:
                yield group
            group, total = [], 0
        group.append(path)
        total += counts[path]
    if len(group) > 1:
        yield group


def _link(lake: Lake, paths: Iterable[Path], live: Path, fresh: Path) -> None:
    for path in paths:
        target = fresh / path.relative_to(live)
        target.parent.mkdir(parents=True, exist_ok=True)
        lake.disk.link(path, target)


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of today; those that their file does not have are null."""
    columns = [
        rows[field.name] if field.name in rows.schema.names else pa.nulls(len(rows), field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)


def _rows(paths: Iterable[Path]) -> int:
    return sum(pq.read_metadata(path).num_rows for path in paths)


def on_spark(spark: SparkSession) -> RunMerges:
    """Carries out each merge as one task."""

    def run(merges: Sequence[Merge]) -> list[str]:
        def work(mine: Sequence[Merge]) -> Iterator[pa.RecordBatch]:
            for each in mine:
                yield pa.RecordBatch.from_arrays([pa.array(merge(each), pa.string())], names=["path"])

        return [row["path"] for row in in_tasks(spark, merges, work, "path string")]

    return run
