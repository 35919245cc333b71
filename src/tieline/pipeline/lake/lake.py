"""A lake: a directory of tables that many may read and one ingest fills, batch by batch."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from tieline.conf.schema import Settings
from tieline.pipeline.lake import document as documents
from tieline.pipeline.lake import earlier, landing, reading
from tieline.pipeline.lake.disk import Disk, locked
from tieline.pipeline.lake.document import Document, Format, State
from tieline.pipeline.lake.landing import Attempt
from tieline.pipeline.lake.layout import DUPLICATES, QUARANTINE, LakeError, Layout, Overtaken, Table, events
from tieline.pipeline.lake.reading import Status, status_of
from tieline.pipeline.options import SparkOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """One lake; :meth:`open` and :meth:`create` make the object."""

    def __init__(self, layout: Layout, document: Document, disk: Disk) -> None:
        self.layout = layout
        self.document = document
        self.disk = disk

    def __repr__(self) -> str:
        return f"<Lake {self.layout.root}: {', '.join(self.document.types) or 'no event types'}>"

    @classmethod
    def open(cls, path: str | Path, *, disk: Disk | None = None) -> Lake:
        """Open a lake that exists; finishes what a killed process began, and removes what it left behind."""
        layout, disk = Layout(Path(path).absolute()), disk or Disk()
        lake = cls(layout, documents.load_document(layout.document), disk)
        if not os.access(layout.root, os.W_OK):
            # for reading alone: whoever may write finishes and removes
            return lake
        with lake.changing():
            lake.document = documents.load_document(layout.document)
            lake._bring_forward()
            landing.land_decided(layout, disk, lake._place())
            landing.finish_exchanges(layout, disk)
            landing.sweep(layout, disk)
        return lake

    @classmethod
    def create(
        cls, path: str | Path, settings: Settings | None = None, *, form: Format = "parquet", disk: Disk | None = None
    ) -> Lake:
        """Make an empty lake; the directory must be empty or absent."""
        layout, disk = Layout(Path(path).absolute()), disk or Disk()
        if layout.document.exists():
            raise LakeError(f"{layout.root} is a lake already.")
        if layout.root.is_dir() and any(layout.root.iterdir()):
            raise LakeError(f"{layout.root} is not empty, and no lake.")
        if form == "delta":
            from tieline.pipeline.lake import delta

            delta.check()
        for directory in (layout.root, layout.staging, layout.landing, layout.state):
            disk.make(directory)
        now = documents.now_text()
        document = documents.new_document(form, now)
        if settings is not None:
            document = document.evolved(settings.event, now)
        documents.save_document(document, layout.document, disk)
        return cls(layout, document, disk)

    # --- what is in it ------------------------------------------------------------------------------------------------

    def read(
        self, spark: SparkSession, event_type: str, start: datetime | None = None, end: datetime | None = None
    ) -> DataFrame:
        """The events of a type from ``start`` up to, and without, ``end``, by event time."""
        return reading.within(self._frame(spark, self.known(event_type)), "_time", start, end)

    def quarantine(self, spark: SparkSession, start: datetime | None = None, end: datetime | None = None) -> DataFrame:
        """The records that could not be read, each with the reason."""
        return reading.within(self._frame(spark, Table((QUARANTINE,))), "received", start, end)

    def duplicates(self, spark: SparkSession, start: datetime | None = None, end: datetime | None = None) -> DataFrame:
        """The records that were in the log before."""
        return reading.within(self._frame(spark, Table((DUPLICATES,))), "received", start, end)

    def status(self) -> Status:
        """What the tables hold and what landed last; needs no Spark."""
        return status_of(self.layout, self.document, self.state(), self.tables())

    def state(self) -> State:
        """The state after the last batch."""
        return documents.newest_state(self.layout.state)[0]

    def known(self, event_type: str) -> Table:
        """The table of an event type; refuses one that the lake does not know."""
        if event_type != "other" and event_type not in self.document.types:
            known = ", ".join((*self.document.types, "other"))
            raise LakeError(f'{self.layout.root} knows no event type "{event_type}"; it has {known}.')
        return events(event_type)

    def tables(self) -> list[Table]:
        """All tables that may hold rows."""
        names = (*self.document.types, "other")
        return [*(events(name) for name in names), Table((QUARANTINE,)), Table((DUPLICATES,))]

    def schema(self, table: Table) -> pa.Schema:
        """The columns in the files of a table, as they are written today."""
        return self.document.schema(table)

    # --- how it changes -----------------------------------------------------------------------------------------------

    def evolve(self, settings: Settings) -> None:
        """Take over the event types of a configuration: new types, new attributes."""
        with self.changing():
            before = documents.load_document(self.layout.document)
            self.document = before.evolved(settings.event, documents.now_text())
            if self.document != before:
                documents.save_document(self.document, self.layout.document, self.disk)

    def place(self) -> SparkOffset | None:
        """Where reading the logs goes on; None if nothing was read yet."""
        return self.state().place or earlier.place(self.layout, self.document, self.state())

    def attempt(self) -> AbstractContextManager[Attempt]:
        """A place for the files of the next batch."""
        return landing.attempt(self.layout, self.disk)

    def land(self, attempt: Attempt, state: State) -> State:
        """Bring an attempt into the tables as the next batch, together with the state after it.

        ``state`` was made of the state that the batch follows.  If another batch has landed since, this one may hold
        the same records: it is refused with :class:`Overtaken`.
        """
        with self.changing():
            landing.land_decided(self.layout, self.disk, self._place())
            newest = self.state()
            if newest.batch != state.batch:
                raise Overtaken(
                    f"batch {newest.batch} has landed in {self.layout.root} while another one was made that follows "
                    f"batch {state.batch}: somebody else fills this lake. Nothing of the latter was brought in."
                )
            number = newest.batch + 1
            state = msgspec.structs.replace(state, batch=number, landed=documents.now_text())
            documents.save_state(state, attempt.state, self.disk)
            landing.decide_batch(self.layout, self.disk, attempt, number)
            landing.land_decided(self.layout, self.disk, self._place())
        return state

    def ingesting(self) -> AbstractContextManager[None]:
        """While this lasts, no other process ingests into the lake."""
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
        if self.document.format == "parquet":
            earlier.put_days_above(self.layout, self.disk)
        self.document = msgspec.structs.replace(self.document, version=documents.VERSION)
        documents.save_document(self.document, self.layout.document, self.disk)

    def _frame(self, spark: SparkSession, table: Table) -> DataFrame:
        return reading.frame(spark, self.layout, self.document, table)

    def _place(self) -> landing.Place:
        if self.document.format == "delta":
            from tieline.pipeline.lake.delta import Appended

            return Appended(self.layout, self.document, self.disk)
        return landing.Renamed(self.layout, self.disk)
