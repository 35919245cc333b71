"""Reading the log of a data directory, beside the broker that writes it or without one.

    with Log(data) as log:
        for record in log.read(log.earliest(), log.latest()):
            ...

An offset is a place in the log: the first record ever has 0, and no offset is given twice.  ``earliest()`` is the first
one still kept, ``latest()`` the one that the next record will get, and ``read(first, last)`` gives the records from
``first`` up to, and without, ``last``.  Ranges that do not overlap can be read by different processes at once.
Retention may remove the oldest records at any time: who asks for them gets a :class:`Gap` that names what is missing,
never a shorter answer.  ``Log(data, stream="events")`` reads the broker's events in the same way.

The blob of one row is a MessagePack array of records, each an array of the fields of
:class:`tieline.log.record.Record` (or ``Occurrence``) without its offset.  What a message says is read from it
(:mod:`tieline.net.store.declared_types`): ``read`` has done so, who takes ``groups`` asks ``types``.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    overload,
)  # Any: the stream decides what its records are
from urllib.parse import quote
from zlib import crc32

import msgspec

from tieline.log.record import Occurrence, Record
from tieline.net.store.declarations import declarations
from tieline.net.store.declared_types import DeclaredTypes
from tieline.net.store.schema import APPLICATION, STEPS, Damaged, Unusable, path_of, version_of

R = TypeVar("R", Record, Occurrence)

#: The folder of reader positions, and what a reader may be called: the name becomes a file name.
_READERS: Final = "readers"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Gap(Exception):
    """Records that were asked for are no longer there: ``first`` up to, and without, ``last``."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(
            f"offsets {first} to {last - 1} are not there any more; the next record that is kept has offset {last}"
        )
        self.first = first
        self.last = last


class Group(NamedTuple):
    """The records of one group commit, still encoded."""

    first_offset: int
    records: int
    #: When it was committed, in seconds since 1970.
    time: float
    blob: bytes


class Log(Generic[R]):
    """A stream of one data directory, opened for reading only."""

    @overload
    def __init__(self: Log[Record], data: str | Path, *, stream: Literal["log"] = "log") -> None: ...
    @overload
    def __init__(self: Log[Occurrence], data: str | Path, *, stream: Literal["events"]) -> None: ...
    def __init__(self, data: str | Path, *, stream: Literal["log", "events"] = "log") -> None:
        """Open; raises :class:`tieline.net.store.schema.Unusable` when there is no log to read."""
        self._db = connect(data)
        self._table = stream
        kind: Any = Record if stream == "log" else Occurrence
        self._decoder: msgspec.msgpack.Decoder[list[R]] = msgspec.msgpack.Decoder(list[kind])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def earliest(self) -> int:
        """The first offset still kept; the same as ``latest()`` when nothing is."""
        first = self._db.execute(f"SELECT min(first_offset) FROM {self._table}").fetchone()[0]  # noqa: S608 - our own
        return self.latest() if first is None else int(first)

    def latest(self) -> int:
        """The offset that the next record will get."""
        return int(self._db.execute("SELECT next FROM stream WHERE name = ?", (self._table,)).fetchone()[0])

    def bytes(self) -> int:
        """How much the stream holds."""
        return int(self._db.execute(f"SELECT total(bytes) FROM {self._table}").fetchone()[0])  # noqa: S608 - our own

    def read(self, first: int, last: int | None = None) -> Iterator[R]:
        """The records from ``first`` up to, and without, ``last``, or as many of them as there are by now."""
        types = self.types()
        for group in self.groups(first, last):
            for place, record in enumerate(self._decoder.decode(group.blob), group.first_offset):
                if place >= first and (last is None or place < last):
                    record.offset = place
                    if isinstance(record, Record):
                        types.complete(record)
                    yield record

    def since(self, time_s: float) -> int:
        """The first offset that may have come at or after a time, in seconds since 1970: that of the first commit then.

        A broker whose clock was set back may have later offsets that came earlier.
        """
        query = f"SELECT first_offset FROM {self._table} WHERE time >= ? ORDER BY first_offset LIMIT 1"  # noqa: S608 - our own
        row = self._db.execute(query, (time_s,)).fetchone()
        return self.latest() if row is None else int(row[0])

    def types(self) -> DeclaredTypes:
        """The event types of all records that are there by now."""
        return DeclaredTypes(declarations(self._db))

    def groups(self, first: int, last: int | None = None) -> Iterator[Group]:
        """The groups that hold these records; the first and the last may hold others as well.

        One row at a time, each found by its offset: no transaction stays open while the caller takes its time.
        """
        end = self.latest() if last is None else min(last, self.latest())
        expected = first
        query = f"SELECT first_offset, count, time, crc, blob FROM {self._table} "  # noqa: S608 - our own
        before = query + "WHERE first_offset <= ? ORDER BY first_offset DESC LIMIT 1"
        after = query + "WHERE first_offset >= ? ORDER BY first_offset LIMIT 1"
        row = self._fetch(before, first)
        if row is not None and row[0] + row[1] <= first:
            row = None
        while expected < end:
            if row is None:
                row = self._fetch(after, expected)
            if row is None or row[0] > expected:
                raise Gap(expected, self.latest() if row is None else row[0])
            begin, count, when, crc, blob = row
            if crc32(blob) != crc:
                raise Damaged(
                    f"the {self._table} records from offset {begin} on are damaged: run `tieline store check`"
                )
            yield Group(begin, count, when, blob)
            expected, row = begin + count, None

    def _fetch(self, query: str, offset: int) -> Any:
        try:
            return self._db.execute(query, (offset,)).fetchone()
        except sqlite3.DatabaseError as error:
            text = f"the {self._table} records near offset {offset} cannot be read ({error})"
            raise Damaged(f"{text}: see `tieline store check`") from None


def connect(data: str | Path) -> sqlite3.Connection:
    """The file of a data directory, opened for reading only."""
    path = path_of(data)
    if not path.exists():
        raise Unusable(f"{path} does not exist: no broker has kept anything in {data} yet")
    try:
        db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None, timeout=10)
        try:
            found = db.execute("PRAGMA application_id").fetchone()[0]
            version = version_of(db)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise Unusable(f"{path} cannot be read ({error}); `tieline store check {data}` says more") from None
    if found != APPLICATION or not 0 < version <= len(STEPS):
        db.close()
        raise Unusable(f"{path} is not a store that this program can read")
    return db


def position(data: str | Path, reader: str) -> int | None:
    """Where a named reader has got to; None when it has never said so."""
    try:
        return int(_place(data, reader).read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        raise Unusable(f"{_place(data, reader)} does not hold an offset") from None


def keep_position(data: str | Path, reader: str, offset: int) -> None:
    """Say that a named reader needs nothing below ``offset`` any more: retention may have it."""
    place = _place(data, reader)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, b"%d\n" % offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.replace(place)


def _place(data: str | Path, reader: str) -> Path:
    if not _NAME.fullmatch(reader):
        raise ValueError(f'"{reader}" is no name for a reader: letters, digits, dots, dashes and underscores')
    return Path(data) / _READERS / reader
