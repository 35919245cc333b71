"""From facts to rows: what the journal holds, brought into the tables of the broker's state.

Theory of operation
-------------------
Facts are taken in as they are committed, and most of them cancel out: a message is queued, sent and acknowledged within
milliseconds.  What remains becomes rows when :meth:`Fold.write` is called, which removes the journal in the same
transaction.  So the tables are always the state after the facts that are no longer in the journal.

Three things keep this cheap.  A packet id that was taken here is known not to be in the table, so giving it back leaves
nothing to do.  A message lives as long as something refers to it; of those in the table, only messages that lost a
reference are looked at.  The number of a session that ended does not come back, so its facts are passed over when rows
are made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final  # Any: what a row holds depends on its table
from zlib import crc32

import msgspec

from tieline.core.durable import facts
from tieline.core.ports import Fact

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode

#: session, message, options, identifiers, share.
Entry = tuple[int, int, int, bytes, str]
#: session, packet id.
Key = tuple[int, int]


class Flight:
    """A packet id of ours in use."""

    __slots__ = ("is_fresh", "message", "position", "terms")

    def __init__(self, position: int, message: int | None, terms: tuple[int, bytes, str], *, is_fresh: bool) -> None:
        self.position = position
        self.message = message
        self.terms = terms
        #: It was taken since the last write, and is not in the table.
        self.is_fresh = is_fresh


class Fold:
    """The facts that are not in the tables yet."""

    def __init__(self, position: int = 0) -> None:
        #: The last position given; queue and in-flight entries are ordered by it.
        self._position = position
        self._clear()

    def _clear(self) -> None:
        self._sessions: dict[int, Fact] = {}
        self._forgotten: set[int] = set()
        #: Sessions that have left something behind, and are nothing else any more.
        self._ended: set[int] = set()
        self._subscriptions: dict[tuple[int, str], Fact | None] = {}
        self._messages: dict[int, Fact] = {}
        #: How many entries here refer to each of those messages.
        self._references: dict[int, int] = {}
        #: Messages that may have lost their last reference: here, and in the table.
        self._loose: list[int] = []
        self._touched: set[int] = set()
        self._retained: dict[bytes, int | None] = {}
        self._queued: dict[Entry, list[int]] = {}
        #: Of those, what waits here alone: session, lane and size, by position.
        self._spilled: dict[int, tuple[int, int, int]] = {}
        #: Sessions of which nothing in the table waits there alone any more.
        self._gathered: set[int] = set()
        #: Entries of the table that are gone.
        self._unqueued: list[Entry] = []
        self._flights: dict[Key, Flight | None] = {}
        #: Flights of the table whose message is the client's by now.
        self._landed: list[Key] = []
        #: Whether an inbound packet id is taken; and those that are not in the table.
        self._inbound: dict[Key, bool] = {}
        self._fresh: set[Key] = set()
        #: Messages to be routed that are not in the table, and those of the table that have been.
        self._unrouted: set[int] = set()
        self._routed: list[int] = []
        #: Producers as they are now; None for those that are forgotten.
        self._producers: dict[str, Fact | None] = {}
        #: Notes as they are now; None for those that are gone.
        self._notes: dict[bytes, bytes | None] = {}

    @property
    def rows(self) -> int:
        """About how many rows :meth:`write` will touch."""
        return (
            len(self._messages)
            + len(self._queued)
            + len(self._unqueued)
            + len(self._flights)
            + len(self._inbound)
            + len(self._unrouted)
            + len(self._routed)
            + len(self._producers)
            + len(self._notes)
            + len(self._retained)
            + len(self._sessions)
            + len(self._subscriptions)
            + 10 * len(self._forgotten)
        )

    def take(self, batch: bytes) -> None:
        """Take in the facts of one batch, as they were submitted."""
        for fact in _decode(batch):
            self._apply[fact[0]](self, fact)
        if self._loose:
            references, messages = self._references, self._messages
            for number in self._loose:
                if references.get(number) == 0:
                    del references[number], messages[number]
            self._loose = []

    # -- one method per kind of fact

    def _session(self, fact: Fact) -> None:
        self._sessions[fact[1]] = fact

    def _forget(self, fact: Fact) -> None:
        self._forgotten.add(fact[1])

    def _subscribe(self, fact: Fact) -> None:
        self._subscriptions[fact[1], fact[2]] = fact

    def _unsubscribe(self, fact: Fact) -> None:
        self._subscriptions[fact[1], fact[2]] = None

    def _message(self, fact: Fact) -> None:
        self._messages[fact[2]] = fact
        self._references[fact[2]] = 0

    def _retain(self, fact: Fact) -> None:
        self._let_go(self._retained.get(fact[2]))
        self._retained[fact[2]] = fact[3]
        self._refer(fact[3])

    def _unretain(self, fact: Fact) -> None:
        self._let_go(self._retained.get(fact[2]))
        self._retained[fact[2]] = None

    def _queue(self, fact: Fact) -> None:
        _, session, number, options, identifiers, share = fact
        self._position = position = self._position + 1
        self._queued.setdefault((session, number, options, identifiers, share), []).append(position)
        self._refer(number)

    def _spill(self, fact: Fact) -> None:
        self._queue(fact[:6])
        self._spilled[self._position] = (fact[1], fact[6], fact[7])

    def _gather(self, fact: Fact) -> None:
        session = fact[1]
        self._gathered.add(session)
        self._spilled = {at: row for at, row in self._spilled.items() if row[0] != session}

    def _end(self, fact: Fact) -> None:
        _, session, client_id, user, left = fact
        self._ended.add(session)
        self._sessions[session] = (facts.SESSION, session, client_id, user, facts.OVER, left, None, None)

    def _sent(self, fact: Fact) -> None:
        _, session, number, options, identifiers, share, packet_id = fact
        self._unqueue((session, number, options, identifiers, share))
        self._position = position = self._position + 1
        key = (session, packet_id)
        is_fresh = key not in self._flights
        self._flights[key] = Flight(position, number, (options, identifiers, share), is_fresh=is_fresh)

    def _drop(self, fact: Fact) -> None:
        self._unqueue((fact[1], fact[2], fact[3], fact[4], fact[5]))
        self._let_go(fact[2])

    def _received(self, fact: Fact) -> None:
        key = (fact[1], fact[2])
        self._position = position = self._position + 1
        flight = self._flights.get(key)
        if flight is None:
            self._landed.append(key)
            flight = self._flights[key] = Flight(0, None, (2, b"", ""), is_fresh=False)
        else:
            self._let_go(flight.message)
        flight.position = position
        flight.message = None

    def _settled(self, fact: Fact) -> None:
        key = (fact[1], fact[2])
        flight = self._flights.get(key)
        if flight is None:
            self._landed.append(key)
            self._flights[key] = None
            return
        self._let_go(flight.message)
        if flight.is_fresh:
            del self._flights[key]
        else:
            self._flights[key] = None

    def _take_id(self, fact: Fact) -> None:
        key = (fact[1], fact[2])
        if key not in self._inbound:
            self._fresh.add(key)
        self._inbound[key] = True

    def _release(self, fact: Fact) -> None:
        key = (fact[1], fact[2])
        if key in self._fresh:
            self._fresh.discard(key)
            del self._inbound[key]
        else:
            self._inbound[key] = False

    def _take_over(self, fact: Fact) -> None:
        self._unrouted.add(fact[2])
        self._refer(fact[2])

    def _route(self, fact: Fact) -> None:
        if fact[2] in self._unrouted:
            self._unrouted.discard(fact[2])
        else:
            self._routed.append(fact[2])
        self._let_go(fact[2])

    def _produce(self, fact: Fact) -> None:
        self._producers[fact[2]] = fact

    def _unproduce(self, fact: Fact) -> None:
        self._producers[fact[2]] = None

    def _note(self, fact: Fact) -> None:
        self._notes[fact[2]] = fact[3]

    _apply: Final = {
        facts.SESSION: _session,
        facts.FORGET: _forget,
        facts.SUBSCRIBE: _subscribe,
        facts.UNSUBSCRIBE: _unsubscribe,
        facts.MESSAGE: _message,
        facts.RETAIN: _retain,
        facts.CLEAR: _unretain,
        facts.QUEUE: _queue,
        facts.SENT: _sent,
        facts.DROP: _drop,
        facts.RECEIVED: _received,
        facts.SETTLED: _settled,
        facts.TAKE: _take_id,
        facts.RELEASE: _release,
        facts.UNROUTED: _take_over,
        facts.ROUTED: _route,
        facts.PRODUCED: _produce,
        facts.UNPRODUCED: _unproduce,
        facts.SPILL: _spill,
        facts.GATHERED: _gather,
        facts.ENDED: _end,
        facts.NOTE: _note,
    }

    def _refer(self, number: int) -> None:
        if number in self._references:
            self._references[number] += 1

    def _let_go(self, number: int | None) -> None:
        """Something no longer refers to a message."""
        if number is None:
            return
        if number in self._references:
            self._references[number] -= 1
            self._loose.append(number)
        else:
            self._touched.add(number)

    def _unqueue(self, entry: Entry) -> None:
        """The oldest of equal entries leaves its queue."""
        positions = self._queued.get(entry)
        if positions is None:
            self._unqueued.append(entry)
        else:
            self._spilled.pop(positions.pop(0), None)
            if not positions:
                del self._queued[entry]

    # -- rows

    def write(self, db: sqlite3.Connection, journal: int) -> None:
        """Bring everything into the tables and remove the journal up to this row, in one transaction."""
        db.execute("BEGIN IMMEDIATE")
        try:
            self._write_sessions(db)
            self._write_flights(db)
            self._write_queues(db)
            self._write_retained(db)
            self._write_unrouted(db)
            self._write_producers(db)
            self._write_notes(db)
            self._write_messages(db)
            db.execute("DELETE FROM journal WHERE sequence <= ?", (journal,))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._clear()

    def _is_live(self, session: int) -> bool:
        return session not in self._forgotten and session not in self._ended

    def _write_sessions(self, db: sqlite3.Connection) -> None:
        for number in self._forgotten:
            for table in ("queue", "inflight"):
                self._touch(db.execute(f"SELECT message FROM {table} WHERE session = ?", (number,)))  # noqa: S608 - ours
            db.execute("DELETE FROM session WHERE number = ?", (number,))
            for table in ("subscription", "queue", "inflight", "inbound"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))  # noqa: S608 - names from above
        for number in self._ended:
            self._touch(db.execute("SELECT message FROM inflight WHERE session = ?", (number,)))
            for table in ("subscription", "inflight", "inbound"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))  # noqa: S608 - names from above
        db.executemany(
            "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (number, client_id, user, expiry_s, left, _blob(will), _blob(patience))
                for _, number, client_id, user, expiry_s, left, will, patience in self._sessions.values()
                if number not in self._forgotten
            ),
        )
        for (session, filter_), fact in self._subscriptions.items():
            if fact is None:
                db.execute("DELETE FROM subscription WHERE session = ? AND filter = ?", (session, filter_))
            elif self._is_live(session):
                row = (session, filter_, fact[3], fact[4], _encode(fact[5]))
                db.execute("INSERT OR REPLACE INTO subscription VALUES (?, ?, ?, ?, ?)", row)
        for key, is_taken in self._inbound.items():
            if not is_taken:
                db.execute("DELETE FROM inbound WHERE session = ? AND packet_id = ?", key)
            elif self._is_live(key[0]):
                db.execute("INSERT OR IGNORE INTO inbound VALUES (?, ?)", key)

    def _write_flights(self, db: sqlite3.Connection) -> None:
        for key in self._landed:
            self._touch(db.execute("SELECT message FROM inflight WHERE session = ? AND packet_id = ?", key))
        gone = [key for key, flight in self._flights.items() if flight is None]
        db.executemany("DELETE FROM inflight WHERE session = ? AND packet_id = ?", gone)
        rows: list[tuple[Any, ...]] = []
        for key, flight in self._flights.items():
            if flight is None:
                continue
            if self._is_live(key[0]):
                rows.append((*key, flight.position, flight.message, *flight.terms))
            else:
                self._let_go(flight.message)
        db.executemany("INSERT OR REPLACE INTO inflight VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _write_queues(self, db: sqlite3.Connection) -> None:
        db.executemany(
            "DELETE FROM queue WHERE position = (SELECT min(position) FROM queue WHERE session = ? AND message = ?"
            " AND options = ? AND identifiers = ? AND share = ?)",
            self._unqueued,
        )
        db.executemany(
            "UPDATE queue SET lane = 0 WHERE session = ? AND lane > 0", [(session,) for session in self._gathered]
        )
        rows: list[tuple[Any, ...]] = []
        here_as_well = (0, 0, 0)
        for entry, positions in self._queued.items():
            if entry[0] not in self._forgotten:
                rows += [(at, *entry, *self._spilled.get(at, here_as_well)[1:]) for at in positions]
            else:
                for _ in positions:
                    self._let_go(entry[1])
        db.executemany("INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def _write_retained(self, db: sqlite3.Connection) -> None:
        for topic, number in self._retained.items():
            self._touch(db.execute("SELECT message FROM retained WHERE topic = ?", (topic,)))
            if number is None:
                db.execute("DELETE FROM retained WHERE topic = ?", (topic,))
            else:
                db.execute("INSERT OR REPLACE INTO retained VALUES (?, ?)", (topic, number))

    def _write_unrouted(self, db: sqlite3.Connection) -> None:
        db.executemany("DELETE FROM unrouted WHERE message = ?", [(number,) for number in self._routed])
        db.executemany("INSERT INTO unrouted VALUES (?)", [(number,) for number in self._unrouted])

    def _write_producers(self, db: sqlite3.Connection) -> None:
        for name, fact in self._producers.items():
            if fact is None:
                db.execute("DELETE FROM producer WHERE name = ?", (name,))
            else:
                db.execute("INSERT OR REPLACE INTO producer VALUES (?, ?, ?)", fact[2:])

    def _write_notes(self, db: sqlite3.Connection) -> None:
        db.executemany(
            "DELETE FROM note WHERE key = ?", [(key,) for key, value in self._notes.items() if value is None]
        )
        db.executemany(
            "INSERT OR REPLACE INTO note VALUES (?, ?, ?)",
            [(key, crc32(value), value) for key, value in self._notes.items() if value is not None],
        )

    def _write_messages(self, db: sqlite3.Connection) -> None:
        """Last: by now it is known who refers to what."""
        rows = []
        for number, fact in self._messages.items():
            if self._references[number] > 0:
                blob = _encode(fact[3:])
                rows.append((number, crc32(blob), blob))
        db.executemany("INSERT INTO message VALUES (?, ?, ?)", rows)
        db.executemany(
            "DELETE FROM message WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM queue WHERE message = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM inflight WHERE message = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM retained WHERE message = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM unrouted WHERE message = ?1)",
            [(number,) for number in self._touched],
        )

    def _touch(self, found: Iterable[tuple[int | None]]) -> None:
        self._touched.update(number for (number,) in found if number is not None)


def _blob(content: object) -> bytes | None:
    return None if content is None else _encode(content)
