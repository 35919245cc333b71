"""The writer: a process of its own that makes a broker's batches permanent.

A thread would have to take turns with the broker's loop; a process has the other core.  Everything that arrives while
one commit runs becomes the next one, so the busier the broker, the larger the group and the cheaper each message.

When the broker is gone the socket ends: the writer commits what it has got and ends too.  Signals that stop a broker
are not for it, because the broker's last words come after them.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sqlite3
import sys
from collections import deque
from time import monotonic, time
from typing import Final
from zlib import crc32

import msgspec

from tieline.core.durable import facts
from tieline.net.store import declarations
from tieline.net.store.database import damaged, journal_row, open_to_write, portion, replay, rows
from tieline.net.store.directory import WRITER, Lock, Reserve
from tieline.net.store.frames import (
    QUESTION,
    AnswerKind,
    Batch,
    Batches,
    Options,
    Question,
    decode_question,
    encode_answer,
)
from tieline.net.store.retention import Retention
from tieline.net.store.schema import Unusable, path_of

#: Bytes taken into one group at most, so that nobody waits for a huge one; and bytes per read.
GROUP: Final = 4_194_304
READ: Final = 1_048_576
#: The journal becomes rows when it would touch this many, or has this many bytes, or nothing has come for this long.
FOLD_ROWS: Final = 4_000
FOLD_BYTES: Final = 8_388_608
IDLE_S: Final = 0.25
#: Between two looks at what retention may remove, and between two attempts to commit when there is no room.
RETENTION_S: Final = 5.0
RETRY_S: Final = 0.5
#: A writer whose broker was killed may take this long to finish.
HANDOVER_S: Final = 30.0
#: Rows per answer while loading.
PORTION: Final = 500


class Gone(Exception):
    """The broker has ended."""


class Writer:
    """One file, and the broker at the other end of the socket."""

    def __init__(self, sock: socket.socket, options: Options) -> None:
        self._sock = sock
        self._path = path_of(options.data)
        self._lock = Lock(options.data, WRITER, patience_s=HANDOVER_S)
        # what is left on a full disk is enough to begin with
        self._reserve = Reserve(options.data)
        self._reserve.give_back_all()
        #: Whether the broker was told that there is no room: so it is, until the reserve is there again.
        self._is_troubled = False
        self._reserve_at = 0.0
        self._db = open_to_write(options.data, tell=lambda text: self._answer(AnswerKind.ALARM, text))
        self._fold, self._sequence = replay(self._db, self._path)
        self._fold.write(self._db, self._sequence)
        self._next = dict(self._db.execute("SELECT name, next FROM stream"))
        declarations.keep(self._db, options.declared, self._next["log"])
        self._retention = Retention(self._db, options.data, options.keep)
        self._retention_at = 0.0
        #: Bytes of the journal that are not in the tables.
        self._unfolded = 0
        self._batches = Batches()
        #: What the broker would like to read and was not answered yet.
        self._questions: deque[Question] = deque()
        self._is_over = False
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def load(self) -> None:
        """Tell the broker everything it knew."""
        for table in facts.STATE:
            portion: list[tuple[object, ...]] = []
            for row in rows(self._db, table, self._path):
                portion.append(row)
                if len(portion) == PORTION:
                    self._answer(AnswerKind.ROWS, (table, portion))
                    portion = []
            if portion:
                self._answer(AnswerKind.ROWS, (table, portion))
        self._db.execute("UPDATE counter SET value = value + 1 WHERE name = 'starts'")
        starts = self._db.execute("SELECT value FROM counter WHERE name = 'starts'").fetchone()[0]
        messages = self._db.execute("SELECT ifnull(max(number), 0) FROM message").fetchone()[0]
        self._answer(AnswerKind.READY, {"starts": starts, "messages": messages})
        self._hold_reserve()

    def run(self) -> None:
        """Commit groups until the broker ends."""
        while not self._is_over:
            is_ready = bool(self._poll.poll(self._patience_s() * 1e3))
            batches = self._put_aside_questions(self._read()) if is_ready else []
            if batches:
                self._commit(batches)
                self._answer(AnswerKind.COMMITTED, batches[-1].token)
                # only now: nobody waits for this
                self._absorb(batches)
            if self._unfolded and (
                not is_ready or self._fold.rows > FOLD_ROWS or self._unfolded > FOLD_BYTES or self._is_over
            ):
                self._tidy()
            if self._questions:
                self._answer_questions()
            if monotonic() >= self._retention_at:
                self._trim()
            if self._is_troubled and monotonic() >= self._reserve_at:
                self._hold_reserve()

    def _put_aside_questions(self, batches: list[Batch]) -> list[Batch]:
        self._questions.extend(decode_question(batch) for batch in batches if batch.token == QUESTION)
        return [batch for batch in batches if batch.token != QUESTION]

    def _answer_questions(self) -> None:
        """Read what the broker asks for, once everything it has said before is in the tables."""
        if self._unfolded:
            self._tidy()
        while self._questions and not self._unfolded and not self._is_over:
            question = self._questions.popleft()
            last, found = portion(self._db, question, self._path)
            self._answer(AnswerKind.PORTION, (question.session, question.lane, last, found))

    def _hold_reserve(self) -> None:
        """Hold space for bad times; where there is none, these have begun, and nothing new should be taken."""
        self._reserve_at = monotonic() + RETRY_S
        has_room = self._reserve.take()
        if has_room and self._is_troubled:
            self._is_troubled = False
            self._answer(AnswerKind.TROUBLE, "")
        elif not has_room:
            self._complain("the disk is full")

    def _complain(self, why: str) -> None:
        if not self._is_troubled:
            self._is_troubled = True
            self._answer(AnswerKind.TROUBLE, f"the store cannot write: {why}")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
        self._lock.release()

    def _patience_s(self) -> float:
        until_retention = max(0.0, self._retention_at - monotonic())
        if self._is_troubled or self._questions:
            until_retention = min(until_retention, RETRY_S)
        return min(IDLE_S, until_retention) if self._unfolded else until_retention

    def _read(self) -> list[Batch]:
        """Everything that has arrived, up to a bound."""
        found: list[Batch] = []
        size = 0
        while size < GROUP:
            try:
                data = self._sock.recv(READ, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._is_over = True
                break
            size += len(data)
            found += self._batches.feed(data)
        return found

    def _commit(self, batches: list[Batch]) -> None:
        """Make a group permanent, all of it or nothing; without room use the reserve, then wait for some."""
        facts = [batch.facts for batch in batches if batch.facts]
        while True:
            try:
                self._write(batches, facts)
                break
            except sqlite3.OperationalError as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._complain(str(error))
                if self._reserve.give_back():
                    continue
                if self._is_over or self._has_hung_up(RETRY_S):
                    raise Gone from None
                self._make_room()
        if self._is_troubled and monotonic() >= self._reserve_at:
            self._hold_reserve()

    def _absorb(self, batches: list[Batch]) -> None:
        """Take in what a group says, to be brought into the tables later."""
        for batch in batches:
            if batch.facts:
                self._fold.take(batch.facts)
                self._unfolded += len(batch.facts)

    def _write(self, batches: list[Batch], facts: list[bytes]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        if facts:
            crc, blob = journal_row(facts)
            db.execute("INSERT INTO journal VALUES (?, ?, ?)", (self._sequence + 1, crc, blob))
        log = self._append("log", [(batch.records, batch.log) for batch in batches])
        events = self._append("events", [(batch.occurrences, batch.events) for batch in batches])
        db.execute("COMMIT")
        # only now: a transaction that failed has not happened
        self._sequence += bool(facts)
        self._advance("log", *log)
        self._advance("events", *events)

    def _append(self, stream: str, sections: list[tuple[int, bytes]]) -> tuple[int, int]:
        """Add one row to a stream; how many records and bytes it has."""
        count = sum(section[0] for section in sections)
        if not count:
            return 0, 0
        # a MessagePack array of 32 bits: its head, then the records as they came
        blob = b"".join((b"\xdd", count.to_bytes(4, "big"), *(section[1] for section in sections)))
        first = self._next[stream]
        self._db.execute(
            f"INSERT INTO {stream} VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
            (first, count, time(), len(blob), crc32(blob), blob),
        )
        self._db.execute("UPDATE stream SET next = ? WHERE name = ?", (first + count, stream))
        return count, len(blob)

    def _advance(self, stream: str, count: int, size: int) -> None:
        self._next[stream] += count
        self._retention.added(stream, size)

    def _tidy(self) -> None:
        """Bring the journal into the tables; without room it stays, and nothing is lost."""
        try:
            self._fold.write(self._db, self._sequence)
            self._unfolded = 0
        except sqlite3.OperationalError:
            self._fold, _ = replay(self._db, self._path)

    def _trim(self) -> None:
        self._retention_at = monotonic() + RETENTION_S
        try:
            is_more, alarms = self._retention.apply(time())
        except sqlite3.OperationalError:
            return  # no room to remove anything; tried again later
        if is_more:
            self._retention_at = 0.0
        for alarm in alarms:
            self._answer(AnswerKind.ALARM, alarm)
            occurrence = msgspec.msgpack.encode((int(time() * 1e9), "alarm", "", "", {"text": alarm}))
            self._commit([Batch(0, b"", 0, b"", 1, occurrence)])

    def _make_room(self) -> None:
        """Whatever can be given back while there is no room."""
        if self._unfolded:
            self._tidy()
        if monotonic() >= self._retention_at:
            self._retention_at = monotonic() + RETENTION_S
            try:
                self._retention.apply(time())
            except sqlite3.OperationalError:
                return

    def _has_hung_up(self, patience_s: float) -> bool:
        """Wait; whether the broker has ended meanwhile, however much of what it sent is still unread."""
        hung = select.poll()
        hung.register(self._sock, 0)
        return bool(hung.poll(patience_s * 1e3))

    def _answer(self, kind: AnswerKind, content: object) -> None:
        try:
            self._sock.sendall(encode_answer(kind, content))
        except OSError:
            self._is_over = True


def main() -> int:
    """Serve the broker at the other end of the given descriptor; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # most of what is made here lives for one group
    gc.set_threshold(50_000, 20, 100)
    # what clients said to each other is nobody else's business
    os.umask(0o077)
    sock = socket.socket(fileno=int(sys.argv[1]))
    told = sys.stdin.buffer.read()
    if not told:
        return 1  # the broker has ended before it said anything
    options = msgspec.json.decode(told, type=Options)
    writer: Writer | None = None
    try:
        writer = Writer(sock, options)
        writer.load()
        writer.run()
        writer.close()
    except Unusable as error:
        return _refuse(sock, str(error))
    except Gone:
        return 1
    except sqlite3.DatabaseError as error:
        return _refuse(sock, damaged(path_of(options.data), str(error)))
    return 0


def _refuse(sock: socket.socket, sentence: str) -> int:
    try:
        sock.sendall(encode_answer(AnswerKind.REFUSED, sentence))
    except OSError:
        print(f"tieline: {sentence}", file=sys.stderr)  # noqa: T201 - the broker is gone; somebody may read this
    return 1


if __name__ == "__main__":
    sys.exit(main())
