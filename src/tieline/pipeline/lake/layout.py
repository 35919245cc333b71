"""Where everything is in a lake, the one place that knows the names of its directories; and what a lake refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class LakeError(Exception):
    """Something about a lake is not as it must be."""


class NotALake(LakeError):
    """A directory holds no lake, or one of another version."""


class Overtaken(LakeError):
    """Another batch has landed while this one was made."""


class Changed(LakeError):
    """An event type is declared otherwise than the files that exist."""


#: The event type of topics that no declared type claims.
OTHER: Final = "other"
QUARANTINE: Final = "quarantine"
DUPLICATES: Final = "duplicates"
EVENTS: Final = "events"


class Table(NamedTuple):
    """A table by its place below the lake: ``events/reading``, ``quarantine``, ``duplicates``."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        return "/".join(self.parts)

    @property
    def event_type(self) -> str | None:
        """The event type whose table it is."""
        return self.parts[1] if self.parts[0] == EVENTS else None


def events(event_type: str) -> Table:
    """The table of an event type."""
    return Table((EVENTS, event_type))


def table(name: str) -> Table:
    """The table of a name."""
    return Table(tuple(name.split("/")))


class Layout:
    """The paths of one lake."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.document = root / "lake.json"
        #: Held while tables change; not while files are written.
        self.lock = root / "lock"
        #: Half-done work, one directory for each attempt.
        self.staging = root / "_staging"
        #: Batches that are decided and not yet in their tables.
        self.landing = root / "_landing"
        #: What was known after the last batches, one directory for each.
        self.state = root / "_state"
        #: Where Spark kept the place in the logs of lakes that were begun before it was part of the state.
        self.checkpoint = root / "_checkpoints" / "ingest"
        #: Held by the one process that ingests, and by the one that compacts.
        self.ingest_lock = root / "_state" / "ingest.lock"
        self.compact_lock = root / "_state" / "compact.lock"

    def table(self, table: Table) -> Path:
        """The directory of a table."""
        return self.root.joinpath(*table.parts)

    def batch(self, table: Table, day: str, number: int) -> Path:
        """The directory of what a batch has of a day (``day=YYYY-MM-DD``) in a table."""
        return self.table(table) / day / batch_name(number)

    def tables(self) -> list[Table]:
        """The tables that exist."""
        found = [Table((name,)) for name in (QUARANTINE, DUPLICATES) if (self.root / name).is_dir()]
        above = self.root / EVENTS
        if above.is_dir():
            found += [events(each.name) for each in sorted(above.iterdir()) if each.is_dir()]
        return found


def batch_name(number: int) -> str:
    """The directory name of a batch, as readers of partitions expect it."""
    return f"batch={number}"


def batch_of(path: Path) -> int:
    """The number of the batch that a file below a table came with."""
    return int(_key_of(path, "batch"))


def day_name(day: str) -> str:
    """The directory name of a day."""
    return f"day={day}"


def day_of(path: Path) -> str:
    """The day of a file below a table."""
    return _key_of(path, "day")


def _key_of(path: Path, key: str) -> str:
    """What a directory above a file says, in the way that readers of partitions expect."""
    return next(part for part in reversed(path.parts) if part.startswith(f"{key}=")).removeprefix(f"{key}=")


def files(table_directory: Path) -> list[Path]:
    """The Parquet files of a table, in the order of their batches; also of one whose batches are above its days."""
    found = table_directory.glob("*=*/*=*/*.parquet")
    return sorted(found, key=lambda path: (batch_of(path), day_of(path), path.name))
