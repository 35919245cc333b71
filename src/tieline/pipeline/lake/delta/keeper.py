"""Keeps a lake in Delta tables: tasks write into the tables' places, one commit decides, and each table follows."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec
import pyarrow as pa

from tieline.conf.schema import Settings
from tieline.pipeline.lake import document as documents
from tieline.pipeline.lake import earlier, keeper
from tieline.pipeline.lake.columns import BATCH
from tieline.pipeline.lake.delta import before, book, commits, frames
from tieline.pipeline.lake.delta.book import Manifest, Opened, Page
from tieline.pipeline.lake.delta.compaction import KEPT_HOURS
from tieline.pipeline.lake.delta.store import Store, check, is_address
from tieline.pipeline.lake.delta.target import InPlace
from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.keeper import Days, TableStatus, size_of
from tieline.pipeline.lake.layout import LakeError, Layout, Overtaken, Table, table
from tieline.pipeline.lake.written import Written
from tieline.pipeline.options import SparkOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def has_delta(where: str | Path, options: Mapping[str, str]) -> bool:
    """Whether a place holds a lake of Delta tables."""
    if is_address(where):
        check()
        return book.is_there(Store(where, options))
    return book.is_there(Store(where, options)) or before.is_there(Path(where))


#: How often the book is turned anew when others came before.
_TRIES: Final = 20


class Attempt:
    """A batch in the making; see :class:`tieline.pipeline.lake.keeper.Attempt`."""

    def __init__(self, store: Store, number: int, state: Path) -> None:
        self._store = store
        self.began_s = time.time()
        #: The number that the batch will have.
        self.number = number
        self.state = state
        self.manifest: Manifest = {}

    @property
    def target(self) -> InPlace:
        """The tables' own places: tasks write there, and what they wrote counts once the batch is committed."""
        return InPlace(self._store, self.number)

    def adopt(self, file: Written) -> None:
        """Make a file of a task part of the batch."""
        self.manifest.setdefault(file.table, []).append(file)

    def discard(self, files: Iterable[Written]) -> None:
        """Remove files at once, instead of when they have come of age."""
        for each in files:
            self._store.remove(f"{each.table}/{each.path}")


class Delta:
    """Keeps a lake in Delta tables; see :class:`tieline.pipeline.lake.keeper.Keeper`."""

    def __init__(self, store: Store, opened: Opened) -> None:
        self.store = store
        self.document: Document = opened.page.document
        self._opened = opened

    @classmethod
    def open(cls, where: str | Path, options: Mapping[str, str]) -> Delta:
        """Open what exists; in a directory, finish what a killed process began."""
        check()
        store = Store(where, options)
        directory = store.directory
        may_write = directory is not None and os.access(directory, os.W_OK)
        if directory is not None and may_write and before.is_there(directory):
            before.bring_forward(store, directory)
        if may_write:
            commits.mend(store, book.NAME)
        found = cls(store, book.read(store))
        if may_write:
            for name in {*found._opened.page.state.rows, *found._opened.page.manifest}:
                commits.mend(store, name)
            found._finish()
        return found

    @classmethod
    def create(cls, where: str | Path, settings: Settings | None, options: Mapping[str, str]) -> Delta:
        """Make an empty one; its place must be empty or absent."""
        check()
        store = Store(where, options)
        if store.directory is not None:
            layout = Layout(store.directory)
            if book.is_there(store):
                raise LakeError(f"{store.where} is a lake already.")
            documents.check_empty(layout.root, layout.document)
            layout.root.mkdir(parents=True, exist_ok=True)
        elif book.is_there(store):
            raise LakeError(f"{store.where} is a lake already.")
        now = documents.now_text()
        document = documents.new_document("delta", now)
        if settings is not None:
            document = document.evolved(settings.event, now)
        book.create(store, Page(document, State(), {}, {}))
        return cls(store, book.read(store))

    @property
    def where(self) -> str:
        return self.store.where

    # --- what is in it ------------------------------------------------------------------------------------------------

    def state(self) -> State:
        return self._read().page.state

    @contextmanager
    def memory(self) -> Iterator[Path | None]:
        memory = self._opened.page.memory
        if not memory:
            yield None
            return
        folder = Path(tempfile.mkdtemp(prefix="tieline-"))
        try:
            for name, content in memory.items():
                (folder / name).write_bytes(content)
            yield folder
        finally:
            shutil.rmtree(folder)

    def place(self, state: State) -> SparkOffset | None:
        if state.place or self.store.directory is None:
            return state.place or None
        return earlier.place(Layout(self.store.directory), self.document, state)

    def frame(self, spark: SparkSession, table: Table, days: Days) -> DataFrame:
        return frames.frame(spark, self.store, table, self.schema(table), days)

    def files(self, table: Table) -> list[str]:
        above = self.store.address(table.name)
        return [f"{above}/{each.path}" for each in commits.live(self.store.table(table.name))]

    def sizes(self, tables: Iterable[Table]) -> list[TableStatus]:
        return [
            size_of(
                each.name,
                ((file.day, file.rows, file.size) for file in commits.live(self.store.table(each.name))),
            )
            for each in tables
        ]

    def schema(self, table: Table) -> pa.Schema:
        """The columns in the files of a table."""
        return self.document.schema(table).append(BATCH)

    # --- how it changes -----------------------------------------------------------------------------------------------

    def evolve(self, settings: Settings) -> None:
        while True:
            opened = self._read()
            document = opened.page.document.evolved(settings.event, documents.now_text())
            if document == opened.page.document:
                return
            try:
                self._turn(opened, opened.page._replace(document=document))
            except commits.Refused:
                continue
            return

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        number = self._read().page.state.batch + 1
        folder = Path(tempfile.mkdtemp(prefix="tieline-"))
        try:
            yield Attempt(self.store, number, folder)
        finally:
            shutil.rmtree(folder)

    def land(self, attempt: keeper.Attempt, follows: State, state: State) -> State:
        """Commit the files that tasks have reported.

        The book is turned only if it stands where the batch began; then the tables follow.
        """
        mine = cast("Attempt", attempt)
        if (hours := (time.time() - mine.began_s) / 3_600) > KEPT_HOURS / 2:
            raise LakeError(
                f"batch {mine.number} was begun {hours:.0f} hours ago: its files may have been swept away as nobody's. "
                "Nothing of it was brought in; begin again."
            )
        state = msgspec.structs.replace(state, batch=mine.number, landed=documents.now_text())
        memory = {path.name: path.read_bytes() for path in sorted(mine.state.iterdir())}
        for _ in range(_TRIES):
            opened = self._read()
            documents.check_followed(self.where, opened.page.state, follows)
            # the files have the number in them
            if mine.number != follows.batch + 1:
                raise Overtaken(f"{self.where} had other batches when this one was begun: {documents.SOMEBODY_ELSE}")
            self._finish()
            try:
                self._turn(opened, Page(opened.page.document, state, mine.manifest, memory))
            except commits.Refused:
                # another batch, or only other event types: the next look tells
                continue
            self._finish()
            return state
        raise LakeError(f"{self.where} is changed by others all the time; batch {mine.number} could not be committed.")

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        """Of two that ingest at once, the second to land is told so: a store knows no locks that end with a process."""
        self.finish()
        yield

    def finish(self) -> None:
        """Commit what a process has decided that died before its tables followed."""
        self._read()
        self._finish()

    def _read(self) -> Opened:
        self._opened = book.read(self.store, self._opened)
        self.document = self._opened.page.document
        return self._opened

    def _turn(self, opened: Opened, page: Page) -> None:
        book.turn(self.store, opened, page)
        self._read()
        if opened.file is not None:
            self.store.remove(f"{book.NAME}/{opened.file}")

    def _finish(self) -> None:
        """Commit the files of the last batch to its tables, those that lack them."""
        document, state, manifest, _memory = self._opened.page
        for name in manifest:
            schema = document.schema(table(name)).append(BATCH)
            commits.add_once(self.store, name, schema, manifest[name], document.id, state.batch)
