"""Commits to the logs of Delta tables: which files count is all that passes through the driver.

A commit names an application and a number, and is refused if the same application has committed since the table was
looked at.  So a batch is in a table once, whoever brings it and however often, and of two compactions that race one
wins.  A store that does not refuse to write what is there already would let both win; that is checked when a lake is
made.

In a directory, delta-rs gives a file of the log its name without synchronising it.  So whoever commits synchronises the
last files of the log afterwards, and nothing that relies on a commit is done before.  After a loss of power the last
file may be there without its content; nobody has relied on it, and it is removed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.lake.columns import DAY
from tieline.pipeline.lake.delta.store import Store
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.layout import LakeError
from tieline.pipeline.lake.written import Written

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

#: How often a commit that others came before is tried anew.
_TRIES: Final = 20
#: Files of a log that may be newer than the last time that somebody synchronised them.
_RECENT: Final = 16


class Live(NamedTuple):
    """A file of a table as its log has it."""

    path: str
    day: str
    rows: int
    size: int


class Refused(Exception):
    """Somebody else has committed first."""


def live(table: DeltaTable | None) -> list[Live]:
    """The files of a table as it is, in the order in which they were written."""
    if table is None:
        return []
    actions = pa.table(table.get_add_actions(flatten=True))
    named = [actions[name].to_pylist() for name in ("path", "partition.day", "num_records", "size_bytes")]
    order = actions["modification_time"].to_pylist()
    rows = zip(order, *named, strict=True)
    return [
        Live(path, str(day), records, size) for _when, path, day, records, size in sorted(rows, key=lambda row: row[:2])
    ]


def add_once(store: Store, name: str, schema: pa.Schema, files: Sequence[Written], app: str, number: int) -> None:
    """Commit the files of a batch to a table; changes nothing if the batch is there."""
    for _ in range(_TRIES):
        table = store.table(name) or _created(store, name, schema)
        landed = table.transaction_version(app)
        if landed is not None and landed >= number:
            return
        if _columns_added(table, schema):
            settle(store, name)
            continue
        with contextlib.suppress(Refused):
            commit(store, name, table, [_add(each, is_new=True) for each in files], app, number)
            return
    raise LakeError(f"{store.address(name)} is changed by others all the time; batch {number} could not be committed.")


def exchange(
    store: Store, name: str, table: DeltaTable, gone: Iterable[Live], files: Iterable[Written], app: str
) -> None:
    """Commit that some files of a table take the place of others with the same rows; raises :class:`Refused`."""
    number = (table.transaction_version(app) or 0) + 1
    actions: list[AddAction | RemoveAction] = [
        *(_remove(each, is_new=False) for each in gone),
        *(_add(each, is_new=False) for each in files),
    ]
    commit(store, name, table, actions, app, number)


def remove(store: Store, name: str, table: DeltaTable, gone: Iterable[Live], app: str) -> None:
    """Commit that the rows of some files are wanted no longer; raises :class:`Refused`."""
    number = (table.transaction_version(app) or 0) + 1
    commit(store, name, table, [_remove(each, is_new=True) for each in gone], app, number)


def commit(
    store: Store, name: str, table: DeltaTable, actions: Sequence[AddAction | RemoveAction], app: str, number: int
) -> None:
    """Commit to a table as it was when it was opened; raises :class:`Refused` if the same application has since."""
    from deltalake import CommitProperties, Transaction
    from deltalake.exceptions import CommitFailedError

    try:
        table.create_write_transaction(
            list(actions),
            "append",
            table.schema(),
            partition_by=table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=[Transaction(app, number)]),
        )
    except CommitFailedError as problem:
        raise Refused(str(problem)) from None
    settle(store, name)


def settle(store: Store, name: str) -> None:
    """In a directory, see to it that the last commits of a table survive a loss of power."""
    if store.directory is None:
        return
    log, disk = store.directory / name / "_delta_log", Disk()
    for path in [*sorted(log.glob("*.json"))[-_RECENT:], *sorted(log.glob("*.parquet"))[-1:], log]:
        with contextlib.suppress(FileNotFoundError):  # of a log that was cleaned meanwhile
            disk.sync(path)
    disk.sync(log.parent)


def mend(store: Store, name: str) -> None:
    """In a directory, remove what a loss of power left of the last commit of a table."""
    if store.directory is None:
        return
    log = store.directory / name / "_delta_log"
    for path in _torn(log):
        path.unlink(missing_ok=True)
        Disk().sync(log)


def _torn(log: Path) -> Iterator[Path]:
    commits = sorted(log.glob("*.json"))
    if commits and not _is_whole(commits[-1]):
        yield commits[-1]
    for path in sorted(log.glob("*.checkpoint*.parquet"))[-1:]:
        try:
            pq.read_metadata(path)
        except (pa.ArrowInvalid, OSError):
            yield path
    last = log / "_last_checkpoint"
    if last.exists() and not _is_whole(last):
        yield last


def _is_whole(path: Path) -> bool:
    try:
        lines = path.read_bytes().splitlines()
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _created(store: Store, name: str, schema: pa.Schema) -> DeltaTable:
    from deltalake import DeltaTable

    if store.directory is not None:
        Disk().make(store.directory / name)
    DeltaTable.create(
        store.address(name),
        pa.schema([*schema, DAY]),
        mode="ignore",
        partition_by=[DAY.name],
        storage_options=store.options,
    )
    settle(store, name)
    return DeltaTable(store.address(name), storage_options=store.options)


def _columns_added(table: DeltaTable, schema: pa.Schema) -> bool:
    """Give a table the columns that it lacks; a schema that comes with a commit adds none."""
    from deltalake import Schema

    known = {field.name for field in table.schema().fields}
    wanted = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
    if wanted:
        table.alter.add_columns(wanted)
    return bool(wanted)


def _add(file: Written, *, is_new: bool) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={DAY.name: file.day},
        modification_time=_now_ms(),
        data_change=is_new,
        stats=file.statistics,
    )


def _remove(file: Live, *, is_new: bool) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(file.path, is_new, _now_ms(), file.size, {DAY.name: file.day})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
