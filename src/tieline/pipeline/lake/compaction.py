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

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.lake import landing
from tieline.pipeline.lake.delta import book
from tieline.pipeline.lake.delta import compaction as delta
from tieline.pipeline.lake.delta.keeper import Delta
from tieline.pipeline.lake.disk import locked
from tieline.pipeline.lake.lake import Lake
from tieline.pipeline.lake.layout import LakeError, Table, batch_name, batch_of, day_name, day_of, files
from tieline.pipeline.lake.merging import FILE_ROWS, Compacted, Merge, RunMerges, groups, here, on_spark, stretches
from tieline.pipeline.lake.plain import Plain
from tieline.pipeline.lake.writing import part_name, write_file

__all__ = ["FILE_ROWS", "Compacted", "Merge", "compact", "here", "on_spark", "sweep"]


class DirectoryMerge(NamedTuple):
    """Files of one day in a directory; see :class:`tieline.pipeline.lake.merging.Merge`."""

    sources: tuple[str, ...]
    #: Where the new files go, and the columns they have.
    target: str
    schema: pa.Schema

    def carry_out(self) -> list[str]:
        """Write the new files; their paths."""
        target = Path(self.target)
        target.mkdir(parents=True, exist_ok=True)
        paths: list[str] = []
        for rows in stretches((pq.read_table(path, partitioning=None) for path in self.sources), self.schema):
            path = target / part_name()
            write_file(rows, path)
            paths.append(str(path))
        return paths


def compact(
    lake: Lake, *, keep_from: date | None = None, run: RunMerges = here, small_only: bool = False
) -> Iterator[Compacted]:
    """Compact every table; days before ``keep_from`` are removed.

    With ``small_only`` only what is small beside the rest of its day is merged, as often as one likes, and files that
    are out of date stay until somebody sweeps.
    """
    if isinstance(lake.keeper, Delta):
        for table in lake.tables():
            found = delta.compact(
                lake.keeper.store,
                table,
                lake.keeper.schema(table),
                keep_from=keep_from,
                run=run,
                small_only=small_only,
            )
            if found is not None:
                yield found
        if not small_only:
            sweep(lake)
        return
    plain = lake.plain
    busy = f"another process compacts {lake.where} already."
    with locked(plain.layout.compact_lock, wait=False, busy=busy):
        for table in lake.tables():
            found = _compact(plain, table, keep_from, run, small_only=small_only)
            if found is not None:
                yield found


def sweep(lake: Lake) -> None:
    """Remove the files of Delta tables that have not counted for a week; plain tables keep none."""
    if isinstance(lake.keeper, Delta):
        lake.keeper.finish()
        delta.sweep(lake.keeper.store, [*(table.name for table in lake.tables()), book.NAME])


def _compact(
    plain: Plain, table: Table, keep_from: date | None, run: RunMerges, *, small_only: bool
) -> Compacted | None:
    live = plain.layout.table(table)
    before = files(live)
    kept = [path for path in before if keep_from is None or day_of(path) >= keep_from.isoformat()]
    with plain.attempt() as attempt:
        fresh, written = attempt.root / "table", attempt.root / "written"
        merges = list(_merges(plain, table, kept, written, small_only=small_only))
        if not merges and len(kept) == len(before):
            return None
        fresh.mkdir()
        merged = {path for each in merges for path in each.sources}
        # by name: a task that was given up and carried out again elsewhere may still write there
        _link(plain, map(Path, run(merges)), written, fresh)
        _link(plain, (path for path in kept if str(path) not in merged), live, fresh)
        plain.disk.sync_tree(fresh)
        with plain.changing():
            known = set(before)
            arrived = [path for path in files(live) if path not in known]
            _link(plain, arrived, live, fresh)
            plain.disk.sync_tree(fresh)
            rows, expected = _rows(files(fresh)), _rows(kept) + _rows(arrived)
            if rows != expected:
                raise LakeError(f"{table.name} would have {rows:,} rows after compaction and has {expected:,}.")
            removed = _rows(before) - _rows(kept)
            landing.replace_table(plain.layout, plain.disk, table, fresh)
    return Compacted(table.name, len(before) + len(arrived), len(files(live)), rows, removed)


def _merges(
    plain: Plain, table: Table, kept: Sequence[Path], fresh: Path, *, small_only: bool
) -> Iterator[DirectoryMerge]:
    days: dict[str, list[Path]] = {}
    for path in kept:
        days.setdefault(day_of(path), []).append(path)
    schema = plain.document.schema(table)
    for day, found in days.items():
        for group in groups([(path, pq.read_metadata(path).num_rows) for path in found], small_only=small_only):
            newest = max(map(batch_of, group))
            target = fresh / day_name(day) / batch_name(newest)
            yield DirectoryMerge(tuple(map(str, group)), str(target), schema)


def _link(plain: Plain, paths: Iterable[Path], live: Path, fresh: Path) -> None:
    for path in paths:
        target = fresh / path.relative_to(live)
        target.parent.mkdir(parents=True, exist_ok=True)
        plain.disk.link(path, target)


def _rows(paths: Iterable[Path]) -> int:
    return sum(pq.read_metadata(path).num_rows for path in paths)
