"""A lake: tables that many may read and one ingest fills, batch by batch, in a directory or in an object store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tieline.conf.schema import Settings
from tieline.pipeline.lake import reading
from tieline.pipeline.lake.delta.keeper import Delta, has_delta
from tieline.pipeline.lake.delta.store import is_address
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.document import Document, Format, State
from tieline.pipeline.lake.keeper import Attempt, Keeper
from tieline.pipeline.lake.layout import DUPLICATES, QUARANTINE, LakeError, Table, events
from tieline.pipeline.lake.layout import table as table_of
from tieline.pipeline.lake.plain import Plain
from tieline.pipeline.lake.reading import Status
from tieline.pipeline.options import SparkOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})


class Lake:
    """One lake; :meth:`open` and :meth:`create` make the object.

    Where it is, is a directory, or the address of a place in an object store: ``s3://``, ``abfss://``, ``gs://``,
    ``hdfs://``.  ``options`` are what the store asks for besides; what is in the environment need not be said.
    """

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper

    def __repr__(self) -> str:
        return f"<Lake {self.where}: {', '.join(self.document.types) or 'no event types'}>"

    @classmethod
    def open(cls, where: str | Path, *, options: Mapping[str, str] = _NO_OPTIONS, disk: Disk | None = None) -> Lake:
        """Open a lake that exists; finishes what a killed process began, and removes what it left behind."""
        if is_address(where) or has_delta(where, options):
            return cls(Delta.open(where, options))
        return cls(Plain.open(Path(where), disk or Disk()))

    @classmethod
    def exists(cls, where: str | Path, *, options: Mapping[str, str] = _NO_OPTIONS) -> bool:
        """Whether a lake is there."""
        return has_delta(where, options) or (not is_address(where) and (Path(where) / "lake.json").exists())

    @classmethod
    def create(
        cls,
        where: str | Path,
        settings: Settings | None = None,
        *,
        form: Format = "parquet",
        options: Mapping[str, str] = _NO_OPTIONS,
        disk: Disk | None = None,
    ) -> Lake:
        """Make an empty lake; its place must be empty or absent."""
        if form == "delta":
            return cls(Delta.create(where, settings, options))
        if is_address(where):
            raise LakeError(f"{where} is in an object store, where only Delta tables can be kept.")
        return cls(Plain.create(Path(where), settings, disk or Disk()))

    @property
    def where(self) -> str:
        """The directory, or the address."""
        return self.keeper.where

    @property
    def document(self) -> Document:
        """What the lake says about itself."""
        return self.keeper.document

    @property
    def plain(self) -> Plain:
        """Where its files are, if they are in a directory without a log of their own."""
        if not isinstance(self.keeper, Plain):
            raise LakeError(f"{self.where} keeps its tables in the Delta format.")
        return self.keeper

    # --- what is in it ------------------------------------------------------------------------------------------------

    def read(
        self, spark: SparkSession, event_type: str, start: datetime | None = None, end: datetime | None = None
    ) -> DataFrame:
        """The events of a type from ``start`` up to, and without, ``end``, by event time."""
        return self._within(spark, self.known(event_type), "_time", start, end)

    def quarantine(self, spark: SparkSession, start: datetime | None = None, end: datetime | None = None) -> DataFrame:
        """The records that could not be read, each with the reason."""
        return self._within(spark, Table((QUARANTINE,)), "received", start, end)

    def duplicates(self, spark: SparkSession, start: datetime | None = None, end: datetime | None = None) -> DataFrame:
        """The records that were in the log before."""
        return self._within(spark, Table((DUPLICATES,)), "received", start, end)

    def status(self) -> Status:
        """What the tables hold and what landed last; needs no Spark."""
        return reading.status_of(self.where, self.document, self.state(), self.keeper.sizes(self.tables()))

    def state(self) -> State:
        """The state after the last batch."""
        return self.keeper.state()

    def memory(self) -> AbstractContextManager[Path | None]:
        """A directory with what ingest remembered after the last batch; None before the first."""
        return self.keeper.memory()

    def known(self, event_type: str) -> Table:
        """The table of an event type; refuses one that the lake does not know."""
        if event_type != "other" and event_type not in self.document.types:
            known = ", ".join((*self.document.types, "other"))
            raise LakeError(f'{self.where} knows no event type "{event_type}"; it has {known}.')
        return events(event_type)

    def tables(self) -> list[Table]:
        """All tables that may hold rows."""
        names = (*self.document.types, "other")
        return [*(events(name) for name in names), Table((QUARANTINE,)), Table((DUPLICATES,))]

    def files(self, table: str) -> list[str]:
        """The files that are a table now, for readers that know nothing of its log."""
        return self.keeper.files(table_of(table))

    def schema(self, table: Table) -> pa.Schema:
        """The columns in the files of a table, as they are written today."""
        return self.document.schema(table)

    # --- how it changes -----------------------------------------------------------------------------------------------

    def evolve(self, settings: Settings) -> None:
        """Take over the event types of a configuration: new types, new attributes."""
        self.keeper.evolve(settings)

    def place(self, state: State) -> SparkOffset | None:
        """Where reading the logs goes on after a state; None if nothing was read yet."""
        return self.keeper.place(state)

    def attempt(self) -> AbstractContextManager[Attempt]:
        """A place for the files of the next batch."""
        return self.keeper.attempt()

    def land(self, attempt: Attempt, follows: State, state: State) -> State:
        """Bring an attempt into the tables as the next batch, together with the state after it.

        ``follows`` is the state that the batch was made for.  If the lake has come further since, this batch may hold
        records that are there: it is refused with :class:`tieline.pipeline.lake.layout.Overtaken`.
        """
        return self.keeper.land(attempt, follows, state)

    def ingesting(self) -> AbstractContextManager[None]:
        """While this lasts, no other process ingests into the lake, where its store can tell."""
        return self.keeper.ingesting()

    def _within(
        self, spark: SparkSession, table: Table, by: str, start: datetime | None, end: datetime | None
    ) -> DataFrame:
        rows = self.keeper.frame(spark, table, reading.days(start, end))
        return reading.within(rows, by, start, end)
