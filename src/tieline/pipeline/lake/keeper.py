"""What differs between the formats of a lake: who keeps its tables and its state, and how a batch gets into them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from tieline.conf.schema import Settings
from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.layout import Table
from tieline.pipeline.lake.written import Target, Written
from tieline.pipeline.options import SparkOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Days(NamedTuple):
    """Days from one to another, both included; None is no bound."""

    first: date | None = None
    last: date | None = None

    def has(self, day: str) -> bool:
        """Whether a day, ``YYYY-MM-DD``, is one of them."""
        return (self.first is None or day >= self.first.isoformat()) and (
            self.last is None or day <= self.last.isoformat()
        )


class TableStatus(msgspec.Struct, frozen=True):
    """What one table holds."""

    name: str
    rows: int
    files: int
    bytes: int
    #: The first and the last day that has rows.
    first_day: str | None
    last_day: str | None


class Attempt(Protocol):
    """A batch in the making: what it has written counts when it has landed."""

    @property
    def target(self) -> Target:
        """Where its tasks write."""
        ...

    @property
    def state(self) -> Path:
        """A directory of this machine for what is to be remembered after this batch."""
        ...

    def adopt(self, file: Written) -> None:
        """Make a file of a task part of the batch."""
        ...

    def discard(self, files: Iterable[Written]) -> None:
        """These files are not wanted, because the tasks are carried out again."""
        ...


class Keeper(Protocol):
    """Keeps the tables and the state of one lake."""

    document: Document

    @property
    def where(self) -> str:
        """The lake's directory, or its address in an object store."""
        ...

    def state(self) -> State:
        """The state after the last batch."""
        ...

    def memory(self) -> AbstractContextManager[Path | None]:
        """A directory with what was remembered after the last batch."""
        ...

    def place(self, state: State) -> SparkOffset | None:
        """Where reading the logs goes on after a state; None if nothing was read yet."""
        ...

    def evolve(self, settings: Settings) -> None:
        """Take over the event types of a configuration."""
        ...

    def attempt(self) -> AbstractContextManager[Attempt]:
        """A place for the files of the next batch."""
        ...

    def land(self, attempt: Attempt, follows: State, state: State) -> State:
        """Bring an attempt into the tables as the next batch, together with the state after it.

        Raises :class:`tieline.pipeline.lake.layout.Overtaken` unless the newest state is the one that it follows.
        """
        ...

    def ingesting(self) -> AbstractContextManager[None]:
        """While this lasts, no other process ingests, where the store can tell."""
        ...

    def frame(self, spark: SparkSession, table: Table, days: Days) -> DataFrame:
        """The rows of a table; those of other days may be among them."""
        ...

    def files(self, table: Table) -> list[str]:
        """The paths or addresses of a table's files."""
        ...

    def sizes(self, tables: Iterable[Table]) -> list[TableStatus]:
        """What some tables hold."""
        ...


def size_of(name: str, files: Iterable[tuple[str, int, int]]) -> TableStatus:
    """What a table holds, from the day, rows and bytes of each file."""
    found = list(files)
    days = sorted({day for day, _rows, _size in found})
    return TableStatus(
        name=name,
        rows=sum(rows for _day, rows, _size in found),
        files=len(found),
        bytes=sum(size for _day, _rows, size in found),
        first_day=days[0] if days else None,
        last_day=days[-1] if days else None,
    )
