"""The conversation between a broker and its writer: batches one way, answers the other, over a socket pair.

A batch is a head and three sections, each already encoded: the facts as one MessagePack array, the records of the log
and the occurrences one array after the other.  The writer copies sections into the file; it need not understand them
before it has answered.  What a writer must know at its start comes on standard input: a command line has no room for
many event types.

A batch with the token 0 is a question instead: which part of what waits for a session in the store alone the broker
would like to have.  It is about everything that was submitted before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

import msgspec

#: token, bytes of facts, records, their bytes, occurrences, their bytes.
_HEAD: Final = Struct("<QIIIII")
#: kind, bytes.
_ANSWER: Final = Struct("<BI")
_encode: Final = msgspec.msgpack.Encoder().encode


class Batch(NamedTuple):
    """What was submitted under one token."""

    token: int
    facts: bytes
    records: int
    log: bytes
    occurrences: int
    events: bytes


def encode_batch(
    token: int,
    facts: Sequence[tuple[object, ...]],
    log: Sequence[tuple[object, ...]] = (),
    events: Sequence[tuple[object, ...]] = (),
) -> bytes:
    """One batch as bytes."""
    section = _encode(facts) if facts else b""
    records = b"".join(map(_encode, log)) if log else b""
    occurrences = b"".join(map(_encode, events)) if events else b""
    head = _HEAD.pack(token, len(section), len(log), len(records), len(events), len(occurrences))
    return b"".join((head, section, records, occurrences))


class Question(NamedTuple):
    """What the broker would like to have of what waits for a session in the store alone."""

    session: int
    lane: int
    #: Where the last portion of that lane ended.
    after: int
    #: At most so many messages, and no more than so many bytes, but one message at least.
    messages: int
    size: int


#: The token of a batch that is a question.
QUESTION: Final = 0


def encode_question(question: Question) -> bytes:
    """A question as bytes."""
    return encode_batch(QUESTION, [question])


def decode_question(batch: Batch) -> Question:
    """The question of a batch whose token says that it is one."""
    return msgspec.msgpack.decode(batch.facts, type=tuple[Question])[0]


class Batches:
    """Makes batches of bytes that arrive in any pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Batch]:
        """The batches that are complete now."""
        data = self._rest + data if self._rest else data
        found: list[Batch] = []
        pos = 0
        while len(data) - pos >= _HEAD.size:
            token, facts, records, log, occurrences, events = _HEAD.unpack_from(data, pos)
            start = pos + _HEAD.size
            if len(data) - start < facts + log + events:
                break
            middle = start + facts
            end = middle + log
            pos = end + events
            found.append(Batch(token, data[start:middle], records, data[middle:end], occurrences, data[end:pos]))
        self._rest = data[pos:]
        return found


class AnswerKind(IntEnum):
    """What the writer has to say."""

    ROWS = 1  # of one table, before READY: (table, rows)
    READY = 2  # the file is open and the broker knows everything: counters
    COMMITTED = 3  # everything up to this token is permanent
    TROUBLE = 4  # nothing can be made permanent at the moment, and why; empty: it can again
    ALARM = 5  # a sentence for the operator
    REFUSED = 6  # the store cannot be used at all, and why: the writer ends
    PORTION = 7  # of what waits for a session: (session, lane, where it ends, [(message as a row, its terms)])


def encode_answer(kind: AnswerKind, content: object) -> bytes:
    """One answer as bytes."""
    body = _encode(content)
    return _ANSWER.pack(kind, len(body)) + body


class Answers:
    """Makes answers of bytes that arrive in any pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[AnswerKind, bytes]]:
        """The answers that are complete now, each with its encoded content."""
        data = self._rest + data if self._rest else data
        found: list[tuple[AnswerKind, bytes]] = []
        pos = 0
        while len(data) - pos >= _ANSWER.size:
            kind, size = _ANSWER.unpack_from(data, pos)
            start = pos + _ANSWER.size
            if len(data) - start < size:
                break
            pos = start + size
            found.append((AnswerKind(kind), data[start:pos]))
        self._rest = data[pos:]
        return found


class Keep(msgspec.Struct, frozen=True):
    """How much of the log is kept; None for no bound."""

    age_s: float | None = None
    bytes: int | None = None
    #: What named readers have not read is kept up to this.
    hard_bytes: int | None = None
    readers: tuple[str, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """Where to write, how much to keep, and what is declared about what is written."""

    data: str
    keep: Keep = Keep()
    #: The event types under which messages are captured from now on, as the store keeps them.
    declared: str = ""
