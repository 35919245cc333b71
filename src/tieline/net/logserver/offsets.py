"""Where a stream begins and ends, how much it holds, and since when."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from tieline.net.logserver.question import Stream
from tieline.net.store.reading import Log, connect, keep_position, position
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


#: What a reader may be called; the store's rule.
READER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Readers whose positions are kept where no configuration names them: each is a file.
MOST: Final = 100


class Unknown(Exception):
    """No reader has this name."""


class Backwards(Exception):
    """A reader would be moved back."""

    def __init__(self, name: str, asked: int, now: int) -> None:
        super().__init__(f"reader {name} is at {now} already, and {asked} lies before: only with force")
        self.position = now


class Readers:
    """The readers of one data directory."""

    def __init__(self, data: str | Path, known: Collection[str] | None) -> None:
        """``known`` are the readers of the configuration; None where there is none to say so."""
        self._data = data
        self.known = known
        #: Between looking where a reader is and moving it, nobody else moves it.
        self._moving = threading.Lock()

    def positions(self) -> dict[str, int | None]:
        """Where each reader is, by name; None for one that has not said so yet."""
        names = set(self.known or ())
        folder = Path(self._data) / "readers"
        if folder.is_dir():
            # what somebody else put there is no reader
            names.update(each.name for each in folder.iterdir() if READER.fullmatch(each.name))
        return {name: position(self._data, name) for name in sorted(names)}

    def move(self, name: str, to: int, *, force: bool = False) -> None:
        """Say where a reader is; ValueError names what is wrong with a name."""
        with self._moving:
            now = position(self._data, name)
            if now is None and not self._is_welcome(name):
                raise Unknown(f'no reader is called "{name}": name it in log.readers of the configuration')
            if now is not None and to < now and not force:
                raise Backwards(name, to, now)
            if to != now:
                keep_position(self._data, name, to)

    def _is_welcome(self, name: str) -> bool:
        return len(self.positions()) < MOST if self.known is None else name in self.known
