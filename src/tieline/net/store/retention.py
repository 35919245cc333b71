"""How much of the log is kept: by age and by bytes, but not past readers that have not read it yet.

Named readers hold what they have not read, up to a hard number of bytes; then it goes all the same, and an alarm says
whose it was.

Ages are by the wall clock.  Where that has gone back, rows from before are of the future, and would be kept until it
has come.  They are older than what stands behind them, so they go when the first row does that is not.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from tieline.net.store.frames import Keep
from tieline.net.store.reading import position
from tieline.net.store.schema import STREAMS, Unusable

#: Rows removed in one transaction.
PORTION: Final = 64


class Retention:
    """Removes what need not be kept any longer, a portion at a time."""

    def __init__(self, db: sqlite3.Connection, data: str | Path, keep: Keep) -> None:
        self._db = db
        self._data = data
        self._keep = keep
        self._bytes = {
            stream: int(db.execute(f"SELECT total(bytes) FROM {stream}").fetchone()[0])  # noqa: S608 - a constant
            for stream in STREAMS
        }

    def added(self, stream: str, size: int) -> None:
        """A group was appended."""
        self._bytes[stream] += size

    def apply(self, now: float) -> tuple[bool, list[str]]:
        """Remove a portion of each stream; whether there may be more to remove, and alarms."""
        is_more = False
        alarms: list[str] = []
        for stream in STREAMS:
            more, alarm = self._trim(stream, now)
            is_more = is_more or more
            if alarm:
                alarms.append(alarm)
        return is_more, alarms

    def _trim(self, stream: str, now: float) -> tuple[bool, str]:
        keep, total = self._keep, self._bytes[stream]
        oldest = self._db.execute(
            f"SELECT first_offset, count, time, bytes FROM {stream} ORDER BY first_offset LIMIT ?",  # noqa: S608 - ours
            (PORTION,),
        ).fetchall()
        slowest, needed = self._needed() if stream == "log" else ("", None)
        # rows of the future are as old as the first one behind them that is not
        latest = now
        if keep.age_s is not None and oldest and oldest[0][2] > now:
            found = self._db.execute(
                f"SELECT time FROM {stream} WHERE time <= ? ORDER BY first_offset LIMIT 1",  # noqa: S608 - a constant
                (now,),
            ).fetchone()
            latest = now if found is None else found[0]
        last: int | None = None
        lost = 0
        for first, count, when, size in oldest:
            is_old = keep.age_s is not None and (latest if when > now else when) < now - keep.age_s
            is_much = keep.bytes is not None and total > keep.bytes
            if not (is_old or is_much):
                break
            if needed is not None and first + count > needed:
                if keep.hard_bytes is None or total <= keep.hard_bytes:
                    break
                lost += first + count - max(first, needed)
            total -= size
            last = first
        if last is None:
            return False, ""
        self._db.execute(f"DELETE FROM {stream} WHERE first_offset <= ?", (last,))  # noqa: S608 - a constant
        self._bytes[stream] = total
        alarm = f"{lost} records that reader {slowest} has not read were removed: the log is full" if lost else ""
        return len(oldest) == PORTION, alarm

    def _needed(self) -> tuple[str, int | None]:
        """The named reader that is furthest behind, and where it is; None when there are no readers."""
        places = [(self._place(reader), reader) for reader in self._keep.readers]
        if not places:
            return "", None
        offset, reader = min(places)
        return reader, offset

    def _place(self, reader: str) -> int:
        """Where a reader is; one that has never said so, or nothing that can be understood, may need everything."""
        try:
            return position(self._data, reader) or 0
        except Unusable:
            return 0
