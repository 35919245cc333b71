"""Looking after a store without its broker: is it whole, save what can be read, copy it.

``check`` and ``backup`` only read, and may run beside the broker.  ``repair`` needs the directory for itself; the
damaged file is put aside, never changed and never removed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import strftime
from typing import Any, Final  # Any: what a row holds depends on its table
from urllib.parse import quote
from zlib import crc32

from tieline.net.store.database import open_to_write, replay
from tieline.net.store.directory import BROKER, WRITER, Lock
from tieline.net.store.reading import connect
from tieline.net.store.schema import COUNTERS, FILE, STREAMS, TABLES, Unusable, path_of, version_of

#: What refers to what: rows without their counterpart are of no use.
_REFERENCES: Final = (
    ("subscription", "session", "session", "number"),
    ("queue", "session", "session", "number"),
    ("inflight", "session", "session", "number"),
    ("inbound", "session", "session", "number"),
    ("queue", "message", "message", "number"),
    ("inflight", "message", "message", "number"),
    ("retained", "message", "message", "number"),
    ("unrouted", "message", "message", "number"),
)


@dataclass
class Findings:
    """What was found in a store."""

    #: Rows by table.
    rows: dict[str, int] = field(default_factory=dict)
    #: Sentences; none when it is whole.
    problems: list[str] = field(default_factory=list)
    #: Where the damaged file was put.
    aside: Path | None = None


def check(data: str | Path) -> Findings:
    """Read everything and compare it with its checksums; the log may be long."""
    found = Findings()
    with closing(connect(data)) as db:
        try:
            lines = [" ".join(line.split()) for (line,) in db.execute("PRAGMA integrity_check")]
            found.problems += [line for line in lines if line != "ok"]
        except sqlite3.DatabaseError as error:
            found.problems.append(str(error))
        for table in _tables(db):
            try:
                found.rows[table] = 0
                for row in db.execute(f"SELECT * FROM {table}"):  # noqa: S608 - names from above
                    found.rows[table] += 1
                    if _is_damaged(table, row):
                        found.problems.append(f"{table} {row[0]} is not as it was written")
            except sqlite3.DatabaseError as error:
                found.problems.append(f"{table}: {error}")
        with suppress(sqlite3.DatabaseError):
            found.problems += _holes(db)
    return found


def _tables(db: sqlite3.Connection) -> list[str]:
    """The tables that a file of its version has."""
    try:
        version = version_of(db)
    except sqlite3.DatabaseError:
        return list(TABLES)
    return [name for name, table in TABLES.items() if table.since <= version]


def _holes(db: sqlite3.Connection) -> Iterator[str]:
    """Offsets that are missing inside a stream; at its beginning they are retention's."""
    for stream in STREAMS:
        expected: int | None = None
        for first, count in db.execute(f"SELECT first_offset, count FROM {stream} ORDER BY 1"):  # noqa: S608 - ours
            if expected is not None and first != expected:
                yield f"{stream}: offsets {expected} to {first - 1} are missing"
            expected = first + count


def backup(data: str | Path, target: Path) -> None:
    """Copy a store as it is at one moment, beside the broker that writes it; the copy is complete or not there."""
    if target.exists():
        raise Unusable(f"{target} exists already: a backup replaces nothing")
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with closing(connect(data)) as db:
            db.execute("VACUUM INTO ?", (str(beside),))
        descriptor = os.open(beside, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.chmod(0o600)
        beside.rename(target)
    except (sqlite3.Error, OSError) as error:
        beside.unlink(missing_ok=True)
        raise Unusable(f"{target} could not be written: {error}") from None


def repair(data: str | Path) -> Findings:
    """Put the damaged file aside and make a new one of everything that can be read in it."""
    path = path_of(data)
    if not path.exists():
        raise Unusable(f"{path} does not exist: there is nothing to repair")
    broker, writer = Lock(data, BROKER), Lock(data, WRITER)
    try:
        found = Findings(aside=_put_aside(path))
        assert found.aside is not None
        with closing(open_to_write(data, is_new=True)) as new:
            _save(found.aside, new, found)
            _prune(new, found)
            fold, last = _replay(new, path, found)
            fold.write(new, last)
            _prune(new, found)
            for table in [name for name in TABLES if name != "journal"]:
                found.rows[table] = new.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - ours
        return found
    finally:
        writer.release()
        broker.release()


def _put_aside(path: Path) -> Path:
    aside = path.with_name(f"{FILE}.damaged-{strftime('%Y%m%d-%H%M%S')}")
    while aside.exists():
        aside = aside.with_name(f"{aside.name}+")
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside


def _save(aside: Path, new: sqlite3.Connection, found: Findings) -> None:
    """Copy every row that can be read and is as it was written."""
    new.execute("BEGIN IMMEDIATE")
    with closing(sqlite3.connect(f"file:{quote(str(aside))}?mode=ro", uri=True, isolation_level=None)) as old:
        # a file that is shorter than it says is read as far as it goes
        old.execute("PRAGMA writable_schema = ON")
        for table in _tables(old):
            key = TABLES[table].key
            try:
                columns = len(new.execute(f"SELECT * FROM {table}").description)  # noqa: S608 - names from above
                insert = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * columns)})"  # noqa: S608 - ours
                for row in _readable(old, table, key, found):
                    if _is_damaged(table, row):
                        found.problems.append(f"{table} {row[0]} was not as it was written, and is lost")
                    else:
                        # older files have fewer columns, and nothing but zeros belongs into the others
                        new.execute(insert, (*row, *[0] * (columns - len(row))))
            except sqlite3.DatabaseError as error:
                found.problems.append(f"{table}: {error}")
        for table, column in COUNTERS.items():
            with suppress(sqlite3.DatabaseError):
                for name, value in old.execute(f"SELECT name, {column} FROM {table}"):  # noqa: S608 - as above
                    new.execute(f"UPDATE {table} SET {column} = ? WHERE name = ?", (value, name))  # noqa: S608 - ours
    for stream in STREAMS:
        # an offset never goes back
        new.execute(
            f"UPDATE stream SET next = max(next, (SELECT ifnull(max(first_offset + count), 0) FROM {stream}))"  # noqa: S608 - ours
            " WHERE name = ?",
            (stream,),
        )
    new.execute("COMMIT")


def _readable(db: sqlite3.Connection, table: str, key: str, found: Findings) -> Iterator[tuple[Any, ...]]:
    """The rows of a table from its beginning to the damage, then from its end back to it."""
    try:
        yield from db.execute(f"SELECT * FROM {table} ORDER BY {key}")  # noqa: S608 - names from above
        return
    except sqlite3.DatabaseError as error:
        found.problems.append(f"{table}: {error}; rows in the middle are lost")
    back = ", ".join(f"{column} DESC" for column in key.split(", "))
    with suppress(sqlite3.DatabaseError):
        yield from db.execute(f"SELECT * FROM {table} ORDER BY {back}")  # noqa: S608 - as above


def _replay(new: sqlite3.Connection, path: Path, found: Findings) -> tuple[Any, int]:
    try:
        return replay(new, path)
    except Unusable as error:
        found.problems.append(f"the journal cannot be applied and is lost: {error}")
        new.execute("DELETE FROM journal")
        return replay(new, path)


def _prune(new: sqlite3.Connection, found: Findings) -> None:
    """Remove what refers to something that is lost, and say so."""
    for table, column, other, key in _REFERENCES:
        gone = new.execute(
            f"DELETE FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608 - names from above
            f" AND {column} NOT IN (SELECT {key} FROM {other})"
        ).rowcount
        if gone:
            found.problems.append(f"{gone} rows of {table} referred to a lost {other} and are gone")


def _is_damaged(table: str, row: tuple[Any, ...]) -> bool:
    sums = TABLES[table].checksum
    return sums is not None and crc32(row[sums[1]]) != row[sums[0]]
