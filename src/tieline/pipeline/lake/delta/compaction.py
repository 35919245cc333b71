"""Compaction and retention of Delta tables: single days are exchanged in the log, and old files removed when of age.

Files of a day that are merged give way to the merged ones in one commit that says that no row has changed.  Batches may
land meanwhile; a second compaction that began earlier is refused, because both commit as one application.

What no version of the last week names is removed now and then, whoever wrote it: files of batches that never landed,
those that were merged, and pages of the book that nobody has turned to.  Until then they are there, and readers that
take every file of the directory read rows twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.lake.delta.commits import Live, Refused, exchange, live, remove, settle
from tieline.pipeline.lake.delta.store import Store
from tieline.pipeline.lake.delta.target import put
from tieline.pipeline.lake.layout import LakeError, Table
from tieline.pipeline.lake.merging import Compacted, Merge, RunMerges, groups, stretches
from tieline.pipeline.lake.written import Written

_APP: Final = "tieline compaction"
#: Somebody may still read files that were merged so long ago, and may be about to commit what was written since.
KEPT_HOURS: Final = 168


class InPlaceMerge(NamedTuple):
    """Files of one day of a Delta table; see :class:`tieline.pipeline.lake.merging.Merge`."""

    store: Store
    table: Table
    day: str
    sources: tuple[str, ...]
    schema: pa.Schema

    def carry_out(self) -> list[str]:
        """Write the new files below their table."""
        files = self.store.files()
        parts = (
            pq.read_table(f"{self.table.name}/{path}", filesystem=files, partitioning=None) for path in self.sources
        )
        return [
            msgspec.json.encode(put(self.store, rows, self.table, self.day)).decode()
            for rows in stretches(parts, self.schema)
        ]


def compact(
    store: Store,
    table: Table,
    schema: pa.Schema,
    *,
    keep_from: date | None,
    run: RunMerges,
    small_only: bool = False,
) -> Compacted | None:
    """Merge the small files of each day of a table, and remove days before ``keep_from``."""
    before = live(store.table(table.name))
    removed = _retained(store, table, before, keep_from) if keep_from is not None else 0
    days: dict[str, list[Live]] = {}
    for each in live(store.table(table.name)):
        days.setdefault(each.day, []).append(each)
    is_changed = bool(removed)
    for day, found in days.items():
        for group in groups([(each, each.rows) for each in found], small_only=small_only):
            merge = InPlaceMerge(store, table, day, tuple(each.path for each in group), schema)
            _exchanged(store, table, group, merge, run)
            is_changed = True
    if not is_changed:
        return None
    after = live(store.table(table.name))
    return Compacted(table.name, len(before), len(after), sum(each.rows for each in after), removed)


def sweep(store: Store, tables: Iterable[str]) -> None:
    """Remove every file of these tables that no version names and that nobody may be about to commit.

    What is decided has to be in the tables before: until then, no version of theirs names it.
    """
    from deltalake.exceptions import DeltaError

    for name in tables:
        opened = store.table(name)
        if opened is None:
            continue
        try:
            opened.vacuum(retention_hours=KEPT_HOURS, dry_run=False, full=True)
        except DeltaError as problem:
            raise LakeError(f"{store.address(name)}: old files stay until the next time: {problem}.") from None
        settle(store, name)


def _exchanged(store: Store, table: Table, group: Sequence[Live], merge: Merge, run: RunMerges) -> None:
    opened = store.table(table.name)
    files = [msgspec.json.decode(told, type=Written) for told in run([merge])]
    rows, expected = sum(each.rows for each in files), sum(each.rows for each in group)
    if rows != expected:
        raise LakeError(f"{table.name} would have {rows:,} rows after compaction and has {expected:,}.")
    if opened is None:
        raise LakeError(f"{table.name} is gone.")
    _alone(table, lambda: exchange(store, table.name, opened, group, files, _APP))


def _retained(store: Store, table: Table, before: Sequence[Live], keep_from: date) -> int:
    old = [each for each in before if each.day < keep_from.isoformat()]
    opened = store.table(table.name)
    if old and opened is not None:
        _alone(table, lambda: remove(store, table.name, opened, old, _APP))
    return sum(each.rows for each in old)


def _alone(table: Table, commit: Callable[[], None]) -> None:
    try:
        commit()
    except Refused:
        raise LakeError(f"{table.name} was compacted by somebody else meanwhile; this has changed nothing.") from None
