"""Opening the file to write it: what is damaged is refused with a sentence, never begun anew in silence."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any, Final  # Any: what a row holds depends on its table
from zlib import crc32

import msgspec

from tieline.net.store.fold import Fold
from tieline.net.store.frames import Question
from tieline.net.store.schema import COUNTERS, FILE, STREAMS, TABLES, Unusable, path_of, prepare

#: Says that there has been a store: a file that is missing or empty afterwards was lost.
MARK: Final = "store"
#: Pages of the write-ahead log after which it is brought into the file.
_CHECKPOINT_PAGES: Final = 4_000
#: Journal rows hold batches one after the other, each behind its length.
_LENGTH: Final = struct.Struct("<I")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite says about a file into a sentence for the operator."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise Unusable(f"{path} cannot be opened: {error}") from None
        raise Unusable(damaged(path, str(error))) from None


def damaged(path: Path, what: str) -> str:
    """The sentence about a file that is not as it was written."""
    return f"{path} is damaged: {what}. `tieline store repair {path.parent}` saves what can be read"


def open_to_write(
    data: str | Path, *, is_new: bool = False, tell: Callable[[str], None] = lambda _: None
) -> sqlite3.Connection:
    """Open or create the file of a data directory, check it, and bring its schema up to date.

    A file that should be there is refused when it is not, unless a new one is meant.
    """
    path = path_of(data)
    mark = path.with_name(MARK)
    is_lost = not path.exists() or not path.stat().st_size
    if is_lost and mark.exists() and not is_new:
        raise Unusable(
            f"{path} is missing or empty, but there was a store in {data}: put it back from a backup, "
            f"or remove {mark} to begin anew"
        )
    with told(path):
        db = sqlite3.connect(path, isolation_level=None, timeout=10, cached_statements=256)
        try:
            _configure(db)
            if not is_lost:
                check_shape(db, path)
            try:
                prepare(db, time(), tell=tell)
            except Unusable as error:
                raise Unusable(f"{path} {error}") from None
        except BaseException:
            db.close()
            raise
    if not mark.exists():
        with mark.open("w") as file:
            file.write(f"{FILE} holds what a broker has acknowledged: sessions, messages, the log\n")
            file.flush()
            os.fsync(file.fileno())
        descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return db


def _configure(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA locking_mode = NORMAL")
    db.execute("PRAGMA journal_mode = WAL")
    # the write-ahead log is on the disk when COMMIT returns; NORMAL would leave that to the next checkpoint
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    db.execute("PRAGMA journal_size_limit = 67108864")
    db.execute("PRAGMA temp_store = MEMORY")


def check_shape(db: sqlite3.Connection, path: Path) -> None:
    """What is quick to find: a file that was cut off, and tables of the broker's state that do not hold together."""
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        is_brought_in = True
    except sqlite3.OperationalError:
        # on a full disk the end of the file may still be in the write-ahead log, from where it is read
        is_brought_in = False
    pages, size = db.execute("PRAGMA page_count").fetchone()[0], db.execute("PRAGMA page_size").fetchone()[0]
    if is_brought_in and path.stat().st_size < pages * size:
        raise Unusable(damaged(path, f"{pages * size - path.stat().st_size} bytes are missing at its end"))
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for table in (TABLES.keys() | COUNTERS.keys()) - set(STREAMS):
        if table in names:
            (found,) = db.execute(f"PRAGMA quick_check({table})").fetchone()
            if found != "ok":
                raise Unusable(damaged(path, f"table {table}: {' '.join(found.split())}"))


def journal_row(batches: list[bytes]) -> tuple[int, bytes]:
    """The checksum and the blob of one group of batches."""
    blob = b"".join(part for facts in batches for part in (_LENGTH.pack(len(facts)), facts))
    return crc32(blob), blob


def replay(db: sqlite3.Connection, path: Path) -> tuple[Fold, int]:
    """What the journal holds that is not in the tables, and its last row."""
    last = db.execute(
        "SELECT max(ifnull((SELECT max(position) FROM queue), 0), ifnull((SELECT max(position) FROM inflight), 0))"
    ).fetchone()[0]
    fold = Fold(last)
    sequence = 0
    for sequence, crc, blob in db.execute("SELECT sequence, crc, blob FROM journal ORDER BY sequence"):
        if crc32(blob) != crc:
            raise Unusable(damaged(path, f"row {sequence} of the journal"))
        try:
            pos = 0
            while pos < len(blob):
                (size,) = _LENGTH.unpack_from(blob, pos)
                fold.take(blob[pos + 4 : pos + 4 + size])
                pos += 4 + size
        except (struct.error, msgspec.MsgspecError, LookupError, ValueError):
            raise Unusable(damaged(path, f"row {sequence} of the journal")) from None
    return fold, sequence


def rows(db: sqlite3.Connection, table: str, path: Path) -> Iterator[tuple[Any, ...]]:
    """The rows of one state table in the order in which they matter, with their blobs decoded."""
    decode = msgspec.msgpack.decode
    match table:
        case "session":
            for number, client_id, user, expiry_s, left, will, patience in db.execute("SELECT * FROM session"):
                yield (
                    number,
                    client_id,
                    user,
                    expiry_s,
                    left,
                    None if will is None else decode(will),
                    None if patience is None else decode(patience),
                )
        case "subscription":
            for *plain, conditions in db.execute("SELECT * FROM subscription"):
                yield (*plain, decode(conditions))
        case "message":
            # what waits in the store alone is read when somebody comes for it
            for number, crc, blob in db.execute(
                "SELECT * FROM message WHERE NOT EXISTS (SELECT 1 FROM queue WHERE lane > 0)"
                " OR number IN (SELECT message FROM queue WHERE lane = 0 UNION SELECT message FROM inflight"
                " UNION SELECT message FROM retained UNION SELECT message FROM unrouted)"
            ):
                yield _message(path, number, crc, blob)
        case "queue":
            _refers(db, path, table)
            yield from db.execute(
                "SELECT session, message, options, identifiers, share FROM queue WHERE lane = 0 ORDER BY position"
            )
        case "spilled":
            yield from db.execute(
                "SELECT session, lane, count(*), sum(size), max(size) FROM queue WHERE lane > 0 GROUP BY session, lane"
            )
        case "inflight":
            _refers(db, path, table)
            yield from db.execute(
                "SELECT session, packet_id, message, options, identifiers, share FROM inflight ORDER BY position"
            )
        case "retained":
            _refers(db, path, table)
            yield from db.execute("SELECT topic, message FROM retained")
        case "unrouted":
            _refers(db, path, table)
            yield from db.execute("SELECT message FROM unrouted ORDER BY message")
        case "producer":
            yield from db.execute("SELECT name, number FROM producer ORDER BY at")
        case "note":
            for key, crc, value in db.execute("SELECT key, crc, blob FROM note ORDER BY key"):
                if crc32(value) != crc:
                    raise Unusable(damaged(path, f"the note {key!r}"))
                yield key, value
        case _:
            yield from db.execute("SELECT session, packet_id FROM inbound")


def portion(db: sqlite3.Connection, question: Question, path: Path) -> tuple[int, list[tuple[Any, ...]]]:
    """The next of what waits for a session in the store alone: where that ends, and messages with their terms."""
    found: list[tuple[Any, ...]] = []
    last, size = question.after, 0
    for at, held, options, identifiers, share, number, crc, blob in db.execute(
        "SELECT position, size, options, identifiers, share, number, crc, blob"
        " FROM queue JOIN message ON number = message"
        " WHERE session = ? AND lane = ? AND lane > 0 AND position > ? ORDER BY position LIMIT ?",
        (question.session, question.lane, question.after, question.messages),
    ):
        size += held
        if found and size > question.size:
            break
        last = at
        found.append((_message(path, number, crc, blob), (options, identifiers, share)))
    return last, found


def _message(path: Path, number: int, crc: int, blob: bytes) -> tuple[Any, ...]:
    if crc32(blob) != crc:
        raise Unusable(damaged(path, f"message {number}"))
    return (number, *msgspec.msgpack.decode(blob))


def _refers(db: sqlite3.Connection, path: Path, table: str) -> None:
    """Nothing may refer to a message that is not there."""
    (lost,) = db.execute(
        f"SELECT count(*) FROM {table} WHERE message IS NOT NULL"  # noqa: S608 - one of our tables
        " AND message NOT IN (SELECT number FROM message)"
    ).fetchone()
    if lost:
        raise Unusable(damaged(path, f"{lost} rows of {table} refer to messages that are not there"))
