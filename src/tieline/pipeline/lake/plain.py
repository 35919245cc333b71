"""Tables of plain Parquet files in a directory: batches land by renames, and nobody needs a library to read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pyarrow.parquet as pq

from tieline.conf.schema import Settings
from tieline.pipeline.lake import document as documents
from tieline.pipeline.lake import earlier, keeper, landing
from tieline.pipeline.lake.columns import spark_schema
from tieline.pipeline.lake.disk import Disk, locked
from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.keeper import Days, TableStatus, size_of
from tieline.pipeline.lake.landing import Attempt
from tieline.pipeline.lake.layout import Layout, Table, day_of, files
from tieline.pipeline.options import SparkOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Plain:
    """Keeps a lake in a directory; see :class:`tieline.pipeline.lake.keeper.Keeper`."""

    def __init__(self, layout: Layout, document: Document, disk: Disk) -> None:
        self.layout = layout
        self.document = document
        self.disk = disk

    @classmethod
    def open(cls, path: Path, disk: Disk) -> Plain:
        """Open what exists; finishes what a killed process began, and removes what it left behind."""
        layout = Layout(path.absolute())
        found = cls(layout, documents.load_document(layout.document), disk)
        if not os.access(layout.root, os.W_OK):
            # for reading alone: whoever may write finishes and removes
            return found
        with found.changing():
            found.document = documents.load_document(layout.document)
            found._bring_forward()
            landing.land_decided(layout, disk)
            landing.finish_exchanges(layout, disk)
            landing.sweep(layout, disk)
        return found

    @classmethod
    def create(cls, path: Path, settings: Settings | None, disk: Disk) -> Plain:
        """Make an empty one; the directory must be empty or absent."""
        layout = Layout(path.absolute())
        documents.check_empty(layout.root, layout.document)
        for directory in (layout.root, layout.staging, layout.landing, layout.state):
            disk.make(directory)
        now = documents.now_text()
        document = documents.new_document("parquet", now)
        if settings is not None:
            document = document.evolved(settings.event, now)
        documents.save_document(document, layout.document, disk)
        return cls(layout, document, disk)

    @property
    def where(self) -> str:
        return str(self.layout.root)

    # --- what is in it ------------------------------------------------------------------------------------------------

    def state(self) -> State:
        return documents.newest_state(self.layout.state)[0]

    @contextmanager
    def memory(self) -> Iterator[Path | None]:
        yield documents.newest_state(self.layout.state)[1]

    def place(self, state: State) -> SparkOffset | None:
        return state.place or earlier.place(self.layout, self.document, state)

    def frame(self, spark: SparkSession, table: Table, days: Days) -> DataFrame:
        schema, directory = spark_schema(self.document.schema(table)), self.layout.table(table)
        # Spark would open the files of the right days alone, and list those of all others before
        paths = [str(each) for each in _directories(directory, days)]
        if paths:
            return spark.read.schema(schema).option("basePath", str(directory)).parquet(*paths)
        return spark.createDataFrame([], schema)

    def files(self, table: Table) -> list[str]:
        return [str(path) for path in files(self.layout.table(table))]

    def sizes(self, tables: Iterable[Table]) -> list[TableStatus]:
        return [
            size_of(
                table.name,
                (
                    (day_of(path), pq.read_metadata(path).num_rows, path.stat().st_size)
                    for path in files(self.layout.table(table))
                ),
            )
            for table in tables
        ]

    # --- how it changes -----------------------------------------------------------------------------------------------

    def evolve(self, settings: Settings) -> None:
        with self.changing():
            before = documents.load_document(self.layout.document)
            self.document = before.evolved(settings.event, documents.now_text())
            if self.document != before:
                documents.save_document(self.document, self.layout.document, self.disk)

    def attempt(self) -> AbstractContextManager[Attempt]:
        return landing.attempt(self.layout, self.disk)

    def land(self, attempt: keeper.Attempt, follows: State, state: State) -> State:
        """Bring an attempt into the tables."""
        mine = cast("Attempt", attempt)
        with self.changing():
            landing.land_decided(self.layout, self.disk)
            newest = self.state()
            documents.check_followed(self.where, newest, follows)
            number = newest.batch + 1
            state = msgspec.structs.replace(state, batch=number, landed=documents.now_text())
            documents.save_state(state, mine.state, self.disk)
            landing.decide_batch(self.layout, self.disk, mine, number)
            landing.land_decided(self.layout, self.disk)
        return state

    def ingesting(self) -> AbstractContextManager[None]:
        return locked(
            self.layout.ingest_lock, wait=False, busy=f"another process ingests into {self.layout.root} already."
        )

    def changing(self) -> AbstractContextManager[None]:
        """While this lasts, no other process changes the tables."""
        return locked(self.layout.lock)

    def _bring_forward(self) -> None:
        """Let a lake of an earlier version be as lakes are today, but for its place; the tables' lock is held."""
        if self.document.version == documents.VERSION:
            return
        earlier.put_days_above(self.layout, self.disk)
        self.document = msgspec.structs.replace(self.document, version=documents.VERSION)
        documents.save_document(self.document, self.layout.document, self.disk)


def _directories(table: Path, days: Days) -> list[Path]:
    """What has to be listed for some days of a table: all of it where nobody asks for days, or batches are above."""
    if not table.is_dir():
        return []
    if days == Days() or any(table.glob("batch=*")):
        return [table]
    return sorted(each for each in table.glob("day=*") if days.has(each.name.removeprefix("day=")))
