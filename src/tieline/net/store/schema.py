"""The SQLite file: where it is, its tables, and how an older file becomes a newer one.

Theory of operation
-------------------
What the broker submits is first written to ``journal``, one row per group commit, as the bytes it came in.  That is
all an acknowledgement waits for.  Later the writer *folds* the journal into the tables of the broker's state and
removes it, in one transaction; most messages have been delivered by then and never become rows.  Whoever opens the file
folds what is left first, so the tables alone say what a broker knows when it starts.

``log`` and ``events`` are append-only: one row per group commit, holding the records of that group as one MessagePack
array.  A record's offset is ``first_offset`` plus its place in the array.  ``stream.next`` never goes back, even when
retention has removed every row.  ``declared`` says under which event types the records of ``log`` arrived.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

#: Written into the header of the file (PRAGMA application_id): "TieL".
APPLICATION: Final = 0x5469654C

FILE: Final = "tieline.db"

_FIRST: Final = """
CREATE TABLE journal (
    sequence INTEGER PRIMARY KEY,           -- one per group commit
    crc INTEGER NOT NULL,                   -- of the blob
    blob BLOB NOT NULL                      -- batches of facts, length-prefixed, as submitted
);
CREATE TABLE session (
    number INTEGER PRIMARY KEY,             -- never used again
    client_id TEXT NOT NULL,
    user TEXT,                              -- who the client is; NULL for nobody in particular
    expiry_s INTEGER NOT NULL,
    left REAL,                              -- when the client left, in seconds since 1970; NULL while it is connected
    will BLOB,                              -- MessagePack: topic, payload, qos, retain, properties
    patience BLOB                           -- MessagePack: what it asked for its low classes
);
CREATE TABLE subscription (
    session INTEGER NOT NULL,
    filter TEXT NOT NULL,                   -- as the client wrote it
    options INTEGER NOT NULL,               -- the byte of SUBSCRIBE
    identifier INTEGER NOT NULL,            -- 0 for none
    conditions BLOB NOT NULL,               -- MessagePack: conditions from user properties
    PRIMARY KEY (session, filter)
) WITHOUT ROWID;
CREATE TABLE message (
    number INTEGER PRIMARY KEY,
    crc INTEGER NOT NULL,
    blob BLOB NOT NULL                      -- MessagePack: everything about it, once for all queues
);
CREATE TABLE retained (
    topic BLOB PRIMARY KEY,
    message INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX retained_message ON retained (message);
CREATE TABLE queue (
    position INTEGER PRIMARY KEY,           -- the order in which messages came
    session INTEGER NOT NULL,
    message INTEGER NOT NULL,
    options INTEGER NOT NULL,               -- granted QoS and retain flags
    identifiers BLOB NOT NULL,              -- subscription identifiers, encoded
    share TEXT NOT NULL                     -- the group of a shared subscription
);
CREATE INDEX queue_entry ON queue (session, message);
CREATE INDEX queue_message ON queue (message);
CREATE TABLE inflight (
    session INTEGER NOT NULL,
    packet_id INTEGER NOT NULL,
    position INTEGER NOT NULL,              -- the order in which they are sent again
    message INTEGER,                        -- NULL once PUBREC was received
    options INTEGER NOT NULL,
    identifiers BLOB NOT NULL,
    share TEXT NOT NULL,
    PRIMARY KEY (session, packet_id)
) WITHOUT ROWID;
CREATE INDEX inflight_message ON inflight (message);
CREATE TABLE inbound (
    session INTEGER NOT NULL,
    packet_id INTEGER NOT NULL,
    PRIMARY KEY (session, packet_id)
) WITHOUT ROWID;
CREATE TABLE stream (
    name TEXT PRIMARY KEY,                  -- log or events
    next INTEGER NOT NULL                   -- the offset of the next record
) WITHOUT ROWID;
CREATE TABLE log (
    first_offset INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    time REAL NOT NULL,                     -- of the commit, in seconds since 1970
    bytes INTEGER NOT NULL,                 -- length of the blob
    crc INTEGER NOT NULL,
    blob BLOB NOT NULL                      -- MessagePack array of records (log/record.py)
);
CREATE TABLE events (
    first_offset INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    time REAL NOT NULL,
    bytes INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    blob BLOB NOT NULL
);
CREATE TABLE counter (
    name TEXT PRIMARY KEY,                  -- starts: how often a broker has opened this file
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO stream VALUES ('log', 0), ('events', 0);
INSERT INTO counter VALUES ('starts', 0);
"""

#: Since then QoS 2 messages are routed after their commit, and producers may publish once.
_SECOND: Final = """
CREATE TABLE unrouted (
    message INTEGER PRIMARY KEY             -- taken over and not routed; numbers grow in the order of arrival
);
CREATE TABLE producer (
    name TEXT PRIMARY KEY,                  -- USER/PRODUCER, or the producer alone
    number INTEGER NOT NULL,                -- the highest one that was accepted
    at REAL NOT NULL                        -- when, in seconds since 1970
) WITHOUT ROWID;
"""

#: Since then captured messages are not read by the broker, but by whoever reads the log.
_THIRD: Final = """
CREATE TABLE declared (
    first_offset INTEGER PRIMARY KEY,       -- of the log: records from here on arrived under this declaration
    crc INTEGER NOT NULL,
    blob BLOB NOT NULL                      -- JSON: the event types (net/store/declared_types.py); empty for none
);
"""

#: Since then what waits for a session may wait here alone.
_FOURTH: Final = """
ALTER TABLE queue ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;   -- 0: the broker has it as well
ALTER TABLE queue ADD COLUMN size INTEGER NOT NULL DEFAULT 0;   -- as the broker counts it; 0 in lane 0
CREATE INDEX queue_spilled ON queue (session, lane) WHERE lane > 0;
"""

#: Since then the store keeps what the broker notes for others, such as what is owed to other brokers.
_FIFTH: Final = """
CREATE TABLE note (
    key BLOB PRIMARY KEY,
    crc INTEGER NOT NULL,
    blob BLOB NOT NULL                      -- the value, whatever it means
);
"""

#: What makes a file of version n into one of version n + 1.
STEPS: Final[Sequence[str]] = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH)


class StoreTable(NamedTuple):
    """What those who look after a file have to know of a table."""

    #: Columns by which it is read in both directions.
    key: str
    #: Where the checksum and the blob are in a row; None for a table without.
    checksum: tuple[int, int] | None = None
    #: The version that brought it.
    since: int = 1


#: Every table whose rows are a broker's own; ``stream`` and ``counter`` hold one number for each name.
TABLES: Final = {
    "journal": StoreTable("sequence", checksum=(1, 2)),
    "session": StoreTable("number"),
    "subscription": StoreTable("session, filter"),
    "message": StoreTable("number", checksum=(1, 2)),
    "retained": StoreTable("topic"),
    "queue": StoreTable("position"),
    "inflight": StoreTable("session, packet_id"),
    "inbound": StoreTable("session, packet_id"),
    "unrouted": StoreTable("message", since=2),
    "producer": StoreTable("name", since=2),
    "note": StoreTable("key", checksum=(1, 2), since=5),
    "log": StoreTable("first_offset", checksum=(4, 5)),
    "events": StoreTable("first_offset", checksum=(4, 5)),
    "declared": StoreTable("first_offset", checksum=(1, 2), since=3),
}
COUNTERS: Final = {"stream": "next", "counter": "value"}
STREAMS: Final = ("log", "events")


class Unusable(Exception):
    """The file cannot be used; the message is a sentence for the operator."""


class Damaged(Exception):
    """Records that are there cannot be read, most of all because their bytes are not those that were written."""


def path_of(data: str | Path) -> Path:
    """Where the file is in a data directory."""
    return Path(data) / FILE


def version_of(db: sqlite3.Connection) -> int:
    """How many steps the file has had."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def prepare(
    db: sqlite3.Connection, now: float, steps: Sequence[str] = STEPS, tell: Callable[[str], None] = lambda _: None
) -> None:
    """Bring the schema up to date, each step in its own transaction; a newer file is refused."""
    version = version_of(db)
    found = db.execute("PRAGMA application_id").fetchone()[0]
    if version and found != APPLICATION:
        raise Unusable("is a database of another program")
    if version > len(steps):
        raise Unusable(f"has version {version}; this program knows versions up to {len(steps)}: use a newer one")
    for number in range(version, len(steps)):
        db.execute("BEGIN IMMEDIATE")
        try:
            if not number:
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute("CREATE TABLE migration (version INTEGER PRIMARY KEY, applied REAL NOT NULL)")
            for statement in _statements(steps[number]):
                db.execute(statement)
            db.execute("INSERT INTO migration VALUES (?, ?)", (number + 1, now))
            db.execute(f"PRAGMA user_version = {number + 1}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        if version:
            tell(f"the store was migrated from version {number} to {number + 1}")


def _statements(script: str) -> list[str]:
    """``executescript`` would commit in between: one statement at a time."""
    lines = [line.partition("--")[0] for line in script.splitlines()]
    return [statement for part in "\n".join(lines).split(";") if (statement := part.strip())]
