"""What must survive of a passage, as notes: the passage (P), each of its parts (R) and each message that is held (H).

They are noted in the batch with what has changed them, so a broker that begins goes on where its predecessor was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec

from tieline.core.durable.journal import Journal
from tieline.core.handover import Subscribed
from tieline.core.message import Message, Origin
from tieline.overlay.frames.fields import Reader, put, put_bytes
from tieline.overlay.frames.parcel import Run, Writing, read_parcel
from tieline.overlay.sessions.passage import HeldMessage, Mark, Passage

#: Kinds of notes.
PASSAGE, PART, HELD = b"PRH"
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode


def message_parcel(message: Message, now: float) -> bytes:
    """One message as a parcel of its own."""
    writing = Writing(message)
    writing.add(message, now)
    return writing.done()


class PassageNotes:
    """Writes and reads them; a broker without a store has none."""

    def __init__(self, journal: Journal, origin_of: Callable[[int, str], Origin]) -> None:
        self._journal = journal
        self._origin_of = origin_of

    def _write(self, key: bytes, value: bytes | None) -> None:
        if not self._journal.is_volatile:
            self._journal.note(key, value)

    def passage(self, passage: Passage) -> None:
        """A passage has begun, or has come further."""
        if self._journal.is_volatile:
            return
        flags = passage.is_complete | passage.is_open << 1 | passage.is_followed << 2
        fields = (
            passage.client_id,
            passage.user,
            passage.before,
            passage.epoch,
            flags,
            passage.after,
            passage.after_epoch,
            passage.estate,
            [tuple(each) for each in passage.subscriptions],
        )
        self._write(_key(PASSAGE, passage), _encode(fields))

    def part(self, passage: Passage, origin: int) -> None:
        """More is known about an origin."""
        if self._journal.is_volatile:
            return
        part = passage.parts[origin]
        flags = part.has_tail | part.is_ended << 1 | part.is_deferred << 2
        self._write(_key(PART, passage) + bytes((origin,)), _encode((_pairs(part.floor), _pairs(part.ceiling), flags)))

    def held(self, passage: Passage, held: HeldMessage, now: float) -> None:
        """A message waits until what precedes it has come."""
        if not self._journal.is_volatile:
            head = put(held.origin, held.lane, held.number) + put_bytes(_encode(held.terms))
            self._write(_key(HELD, passage) + held.place.to_bytes(8), head + message_parcel(held.message, now))

    def released(self, passage: Passage, held: HeldMessage) -> None:
        """It does no longer."""
        self._write(_key(HELD, passage) + held.place.to_bytes(8), None)

    def forget(self, passage: Passage) -> None:
        """A passage is over."""
        self._write(_key(PASSAGE, passage), None)
        for origin in passage.parts:
            self._write(_key(PART, passage) + bytes((origin,)), None)
        for held in passage.held:
            self.released(passage, held)

    # -- and back

    def read(self, notes: Iterable[tuple[bytes, bytes]], now: float) -> list[Passage]:
        """The passages that were under way."""
        by_number: dict[int, Passage] = {}
        for key, value in sorted(notes, key=_in_order):
            number = int.from_bytes(key[1:9])
            if key[0] == PASSAGE:
                by_number[number] = _read_passage(number, value, now)
            elif number in by_number and key[0] == PART:
                _read_part(by_number[number], key[9], value)
            elif number in by_number:
                self._read_held(by_number[number], int.from_bytes(key[9:17]), value, now)
        return list(by_number.values())

    def _read_held(self, passage: Passage, place: int, value: bytes, now: float) -> None:
        reader = Reader(value)
        origin, lane, number = reader.integer(), reader.integer(), reader.integer()
        options, identifiers, share = _decode(reader.raw())
        read = read_parcel(reader.rest(), partial(self._origin_of, origin), now)
        assert not isinstance(read, Run), "what is held is a message"
        for message in read:
            passage.put_back(HeldMessage(place, origin, lane, number, message, (options, identifiers, share)))


def _read_passage(number: int, value: bytes, now: float) -> Passage:
    client_id, user, before, epoch, flags, after, after_epoch, estate, asked = _decode(value)
    passage = Passage(number, client_id, user, now)
    passage.before, passage.epoch, passage.after, passage.after_epoch = before, epoch, after, after_epoch
    passage.is_complete, passage.is_open, passage.is_followed = bool(flags & 1), bool(flags & 2), bool(flags & 4)
    passage.estate = estate
    passage.subscriptions = tuple([Subscribed(each[0], each[1], each[2], tuple(each[3])) for each in asked])
    return passage


def _read_part(passage: Passage, origin: int, value: bytes) -> None:
    floor, ceiling, flags = _decode(value)
    part = passage.part(origin)
    part.floor = None if floor is None else dict(floor)
    part.ceiling = None if ceiling is None else dict(ceiling)
    part.has_tail, part.is_ended, part.is_deferred = bool(flags & 1), bool(flags & 2), bool(flags & 4)


def _key(kind: int, passage: Passage) -> bytes:
    return bytes((kind,)) + passage.number.to_bytes(8)


def _pairs(mark: Mark | None) -> list[tuple[int, int]] | None:
    return None if mark is None else list(mark.items())


def _in_order(note: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """Passages first, then their parts, then what is held."""
    return (PASSAGE, PART, HELD).index(note[0][0]), note[0]
