"""A data directory with a log in it, written straight into the store's own tables."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from tieline.conf.schema import Settings
from tieline.log.record import Occurrence, Record, digest_of
from tieline.net.store import declarations
from tieline.net.store.declared_types import declared_in
from tieline.net.store.schema import path_of, prepare


class Writer:
    """Appends groups of records, as the broker's writer does, and removes old ones, as retention does."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._db = sqlite3.connect(path_of(data), isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        prepare(self._db, now=0.0)

    def close(self) -> None:
        self._db.close()

    def append(self, records: Sequence[Record] | Sequence[Occurrence], *, stream: str = "log", at: float = 0.0) -> int:
        """One group commit; the offset of its first record."""
        # the offset is the reader's business: a record is written without it
        fields = [list(msgspec.structs.astuple(each))[:-1] for each in records]
        blob = msgspec.msgpack.encode(fields)
        first: int = self._db.execute("SELECT next FROM stream WHERE name = ?", (stream,)).fetchone()[0]
        self._db.execute("BEGIN")
        self._db.execute(
            f"INSERT INTO {stream} VALUES (?, ?, ?, ?, ?, ?)",
            (first, len(records), at or time.time(), len(blob), crc32(blob), blob),
        )
        self._db.execute("UPDATE stream SET next = ? WHERE name = ?", (first + len(records), stream))
        self._db.execute("COMMIT")
        return first

    def declare(self, settings: Settings) -> None:
        """A broker with these event types starts."""
        next_offset = self._db.execute("SELECT next FROM stream WHERE name = 'log'").fetchone()[0]
        declarations.keep(self._db, declared_in(settings), next_offset)

    def forget(self, below: int, *, stream: str = "log") -> None:
        """Retention: groups that end at or before an offset go."""
        self._db.execute(f"DELETE FROM {stream} WHERE first_offset + count <= ?", (below,))

    def damage(self, offset: int, *, stream: str = "log", blob: bytes | None = None) -> None:
        """Other bytes in the place of a group: with a wrong checksum, or, given a blob, with a right one."""
        if blob is None:
            self._db.execute(f"UPDATE {stream} SET blob = x'00' WHERE first_offset = ?", (offset,))
        else:
            self._db.execute(
                f"UPDATE {stream} SET blob = ?, crc = ? WHERE first_offset = ?", (blob, crc32(blob), offset)
            )


def record(number: int = 0, *, topic: str = "", payload: bytes | None = None, **other: object) -> Record:
    """A record that knows its number."""
    topic = topic or f"grid/{number % 7}/pcc"
    payload = b'{"number": %d, "voltage": %d}' % (number, 200 + number % 60) if payload is None else payload
    fields: dict[str, object] = {
        "received": 1_700_000_000_000_000_123 + number * 1_000,
        "publisher": f"meter-{number % 3}",
        "epoch": 1,
        "packet_id": number % 65_535 + 1,
        "dup": False,
        "qos": 1,
        "retain": False,
        "level": number % 4,
        "class_": "normal",
        "topic": topic,
        "payload": payload,
        "properties": b"",
        "digest": digest_of(topic.encode(), payload),
    }
    return Record(**(fields | other))  # type: ignore[arg-type]


def fill(writer: Writer, count: int, *, group: int = 10) -> None:
    """So many numbered records, in groups."""
    for first in range(0, count, group):
        writer.append([record(number) for number in range(first, min(first + group, count))])
