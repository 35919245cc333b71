"""The book of a lake of Delta tables: its document, its state and what the last batch brought, in a table of its own.

One commit to this table decides a batch: its state, what ingest remembers, and the manifest, which says which files of
which tables belong to it.  Then the tables get their commits.  Whoever finds a manifest whose tables lack it goes on,
and a table that has it already says so by the number in its log.  So a batch that spans several tables is in all of
them or will be, and never in some for good.

The table has one file at a time, with a row for each piece: a name and its content.  Every page follows the one that
it was made from, or is refused.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.lake.delta.commits import Refused, settle
from tieline.pipeline.lake.delta.store import Store
from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.layout import LakeError, NotALake
from tieline.pipeline.lake.written import Written

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: The directory of the table.
NAME: Final = "_lake"
_APP: Final = "tieline"
#: Commits older than that are no longer looked at by anybody, and leave the log when it is summed up; there may be
#: thousands a day, and all of them would be listed with each commit.
_KEPT: Final = {"delta.logRetentionDuration": "interval 7 days"}
_SCHEMA: Final = pa.schema([("name", pa.string()), ("content", pa.binary())])
_DOCUMENT, _STATE, _MANIFEST, _MEMORY = "lake.json", "state.json", "manifest.json", "memory/"

#: The files of the last batch, by table.
Manifest = dict[str, list[Written]]


class Page(NamedTuple):
    """What the book says."""

    document: Document
    state: State
    manifest: Manifest
    #: What ingest remembers, by the names of its files.
    memory: dict[str, bytes]


class Opened(NamedTuple):
    """A page, and the table as it was when the page was read."""

    page: Page
    table: DeltaTable
    version: int
    #: The file in which the page is; None in a book without pages.
    file: str | None


def is_there(store: Store) -> bool:
    """Whether the place has a book."""
    if store.directory is not None:
        return (store.directory / NAME / "_delta_log").is_dir()
    return store.table(NAME) is not None


def read(store: Store, known: Opened | None = None) -> Opened:
    """The newest page, which may be the one that is known already; raises :class:`NotALake`."""
    if known is None:
        table = store.table(NAME)
    else:
        table, version = known.table, known.version
        table.update_incremental()
        if table.version() == version:
            return known
    if table is None:
        raise NotALake(f"{store.where} is no lake: it has no {NAME}.")
    for _ in range(3):
        paths = pa.table(table.get_add_actions())["path"].to_pylist()
        if not paths:
            raise NotALake(f"{store.where} is no lake: whoever made it was interrupted. Remove it and begin anew.")
        try:
            rows = pq.read_table(f"{NAME}/{paths[0]}", filesystem=store.files(), partitioning=None)
        except FileNotFoundError:
            # a newer page has replaced it
            table.update_incremental()
            continue
        return Opened(_page(dict(zip(*rows.to_pydict().values(), strict=True))), table, table.version(), paths[0])
    raise LakeError(f"{store.where}: the page that {NAME} names is not there.")


def create(store: Store, page: Page) -> None:
    """Begin a book; raises :class:`LakeError` if two writers of this store could both believe to be first."""
    from deltalake import DeltaTable

    table = DeltaTable.create(
        store.address(NAME), _SCHEMA, mode="error", configuration=_KEPT, storage_options=store.options
    )
    settle(store, NAME)
    name = _put(store, page)
    rival = DeltaTable(store.address(NAME), storage_options=store.options)
    _commit(store, table, name, page, gone=None)
    try:
        _commit(store, rival, name, page, gone=None)
    except Refused:
        return
    raise LakeError(
        f"{store.where} writes a file that is there already though it was asked not to, so two writers would both "
        "believe that they were first. A lake needs a store with conditional puts (If-None-Match)."
    )


def turn(store: Store, before: Opened, page: Page) -> None:
    """Write the page that follows another one; raises :class:`Refused` if somebody else has."""
    if before.table.version() != before.version:
        raise Refused("the table has been looked at since")
    _commit(store, before.table, _put(store, page), page, gone=before.file)


def _commit(store: Store, table: DeltaTable, name: str, page: Page, gone: str | None) -> None:
    from deltalake import CommitProperties, Transaction
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import AddAction, RemoveAction

    size = store.size(f"{NAME}/{name}")
    if size is None:
        raise LakeError(f"{store.address(NAME)}/{name} was written and is not there.")
    statistics = msgspec.json.encode({"numRecords": 3 + len(page.memory)}).decode()
    actions: list[AddAction | RemoveAction] = [AddAction(name, size, {}, 0, True, statistics)]
    if gone is not None:
        actions.append(RemoveAction(gone, data_change=True, deletion_timestamp=0))
    try:
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            commit_properties=CommitProperties(
                max_commit_retries=0, app_transactions=[Transaction(_APP, table.version() + 1)]
            ),
        )
    except CommitFailedError as problem:
        raise Refused(str(problem)) from None
    settle(store, NAME)


def _put(store: Store, page: Page) -> str:
    pieces = {
        _DOCUMENT: msgspec.json.encode(page.document),
        _STATE: msgspec.json.encode(page.state),
        _MANIFEST: msgspec.json.encode(page.manifest),
        **{f"{_MEMORY}{name}": content for name, content in page.memory.items()},
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([list(pieces), list(pieces.values())], schema=_SCHEMA), sink, compression="zstd")
    name = f"page-{secrets.token_hex(8)}.parquet"
    store.put(f"{NAME}/{name}", memoryview(sink.getvalue()))
    return name


def _page(pieces: dict[str, bytes]) -> Page:
    try:
        return Page(
            msgspec.json.decode(pieces[_DOCUMENT], type=Document),
            msgspec.json.decode(pieces[_STATE], type=State),
            msgspec.json.decode(pieces[_MANIFEST], type=Manifest),
            {name.removeprefix(_MEMORY): data for name, data in pieces.items() if name.startswith(_MEMORY)},
        )
    except (KeyError, msgspec.DecodeError) as problem:
        raise NotALake(f"the lake's book cannot be read: {problem}.") from None
