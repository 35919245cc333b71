"""Messages that have arrived and that Spark has not finished with, in a SQLite file that survives any crash.

A message is acknowledged to its broker only after the commit here, and leaves only when Spark has committed the batch
that read it.  Offsets are row numbers that are never used twice, also when all rows are gone.  One process at a time
has a spool: it holds a lock on a file beside it, which the system takes back however the process ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from tieline.pipeline.broker import BrokerError

#: Rows of one Arrow batch.
_BATCH: Final = 8_192
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS message (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    received INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL,
    qos INTEGER NOT NULL, retain INTEGER NOT NULL, dup INTEGER NOT NULL, properties TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""

#: Fields of :class:`Arrival`, and the columns that hold them.
_FIELDS: Final = "received, topic, payload, qos, retain, dup, properties"


class Arrival(NamedTuple):
    """A message as it came."""

    #: Microseconds since 1970.
    received: int
    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    #: User properties in their order.
    properties: list[tuple[str, str]]


class Spool:
    """The file of one query; usable from several threads."""

    def __init__(self, directory: Path, *, patience_s: float = 0.0) -> None:
        """Waits for another process to let go of it, as long as ``patience_s``."""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(directory / "lock", patience_s)
            self._db = sqlite3.connect(directory / "spool.db", isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as problem:
            raise BrokerError(f"the spool {directory} cannot be used: {problem}") from None
        self._guard = threading.Lock()
        with self._guard:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_TABLES)
        #: Says that offsets are of this spool and not of one that stood here before.
        self.id = self.fact("id") or self.remember("id", secrets.token_hex(8))

    def close(self) -> None:
        """Let go of it."""
        with self._guard:
            self._db.close()
        os.close(self._lock)

    def fact(self, name: str) -> str | None:
        """What :meth:`remember` was told under a name, in this run or an earlier one."""
        with self._guard:
            row = self._db.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def remember(self, name: str, value: str) -> str:
        """Remember something, for good."""
        with self._guard:
            self._db.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))
        return value

    def append(self, arrivals: Iterable[Arrival]) -> None:
        """Keep messages; they are permanent when this returns."""
        rows = [(*each[:-1], json.dumps(each.properties) if each.properties else "") for each in arrivals]
        with self._guard:
            self._db.execute("BEGIN")
            try:
                self._db.executemany(f"INSERT INTO message ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608 - names of ours
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def bounds(self) -> tuple[int, int]:
        """The offset of the first message that is kept, and the one that the next will get."""
        with self._guard:
            first = self._db.execute("SELECT min(place) FROM message").fetchone()[0]
            last = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'message'").fetchone()
        latest = 0 if last is None else int(last[0])
        return (latest if first is None else int(first) - 1), latest

    def trim(self, below: int) -> None:
        """Forget what Spark has finished with."""
        with self._guard:
            self._db.execute("DELETE FROM message WHERE place <= ?", (below,))

    def read(self, start: int, end: int, schema: pa.Schema) -> list[pa.RecordBatch]:
        """The messages from an offset up to, and without, another."""
        with self._guard:
            rows = self._db.execute(
                f"SELECT place - 1, {_FIELDS} FROM message WHERE place > ? AND place <= ? ORDER BY place",  # noqa: S608 - the same
                (start, end),
            ).fetchall()
        if len(rows) != end - start:
            raise BrokerError(f"the spool should have offsets {start} to {end - 1} and has {len(rows)} of them")
        return [_batch(rows[first : first + _BATCH], schema) for first in range(0, len(rows), _BATCH)]


def _locked(path: Path, patience_s: float) -> int:
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return held
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(held)
                raise BrokerError(f"the spool {path.parent} belongs to another query that is running") from None
            time.sleep(0.1)


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    columns[-1] = [_pairs(str(text)) for text in columns[-1]]
    for place in (5, 6):  # retain and dup: SQLite has no booleans
        columns[place] = [bool(each) for each in columns[place]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _pairs(text: str) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in json.loads(text)] if text else []
