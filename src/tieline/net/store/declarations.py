"""Which event types were declared when a record arrived: kept beside the log, so that whoever reads it can read those.

The log keeps messages as they arrived; what they say is read from them later, by the declarations of their time.  A
broker that starts with other declarations than the one before it writes them down with the offset that its first record
will get.  They are text here: the writer need not understand them.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple
from zlib import crc32

from tieline.net.store.schema import TABLES, Damaged, version_of


class Declaration(NamedTuple):
    """What was declared from one offset of the log on, up to that of the next declaration."""

    first_offset: int
    #: As :mod:`tieline.net.store.declared_types` writes it; empty if no event type was declared.
    text: str


def keep(db: sqlite3.Connection, text: str, next_offset: int) -> None:
    """Write down what is declared from the next record on; what no record needs any longer is forgotten."""
    known = db.execute("SELECT blob FROM declared ORDER BY first_offset DESC LIMIT 1").fetchone()
    blob = text.encode()
    if blob != (b"" if known is None else known[0]):
        # in place of declarations under which nothing has arrived
        db.execute("INSERT OR REPLACE INTO declared VALUES (?, ?, ?)", (next_offset, crc32(blob), blob))
    db.execute(
        "DELETE FROM declared WHERE first_offset < (SELECT max(first_offset) FROM declared"
        " WHERE first_offset <= ifnull((SELECT min(first_offset) FROM log), ?))",
        (next_offset,),
    )


def declarations(db: sqlite3.Connection) -> list[Declaration]:
    """All that are kept, in the order of the log; none in files of a version that had none."""
    if version_of(db) < TABLES["declared"].since:
        return []
    found: list[Declaration] = []
    for first_offset, crc, blob in db.execute("SELECT first_offset, crc, blob FROM declared ORDER BY first_offset"):
        if crc32(blob) != crc:
            raise Damaged(f"the event types from offset {first_offset} on are damaged: run `tieline store check`")
        found.append(Declaration(first_offset, blob.decode()))
    return found
