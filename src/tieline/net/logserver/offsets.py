"""Where a stream begins and ends, how much it holds, and since when."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from tieline.net.logserver.question import Stream
from tieline.net.store.reading import Log, connect
from tieline.net.store.schema import Damaged

T = TypeVar("T")


class Offsets(NamedTuple):
    """The state of one stream."""

    stream: Stream
    #: The first offset still kept.
    earliest: int
    #: The offset that the next record will get.
    latest: int
    bytes: int
    #: When the oldest record still kept was committed, in seconds since 1970; None when there is none.
    oldest: float | None
    #: When the store was made: offsets of another store mean other records.
    created: float


def offsets_of(data: str | Path, stream: Stream) -> Offsets:
    """The state of a stream at this moment."""
    with Log(data) if stream == "log" else Log(data, stream="events") as log:
        latest = log.latest()
        earliest = log.earliest()
        size = log.bytes()
        oldest = next((group.time for group in log.groups(earliest, earliest + 1)), None) if earliest < latest else None
    return Offsets(stream, earliest, latest, size, oldest, created(data))


def created(data: str | Path) -> float:
    """When the store of a data directory was made."""
    db = connect(data)
    try:
        return float(db.execute("SELECT min(applied) FROM migration").fetchone()[0])
    finally:
        db.close()


def readable(work: Callable[[], T]) -> T:
    """Do something with the store; whatever SQLite says of the file then becomes a sentence for the operator."""
    try:
        return work()
    except sqlite3.Error as problem:
        raise Damaged(f"the store cannot be read ({problem}): run `tieline store check`") from None
