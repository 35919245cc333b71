"""What must survive at the ends, as notes: bytes by a key, which a store keeps without knowing what they mean.

::

    L                               life, incarnation
    N number                        the name of a broker
    I broker                        the life in which its last incarnation was heard of, and its incarnations
    V broker                        the version of its interest
    W broker, entry                 an entry of that with its terms
    S destination, lane             settled, and for each incarnation of the destination where its numbers begin
    O destination, lane, number     a message that is owed
    T origin, lane, incarnation     the number of the last message that was taken in

Brokers and lanes are a byte each, numbers and incarnations in keys eight, so that keys are in the order of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tieline.overlay.carrier.durable import (
    Begun,
    Ends,
    Fact,
    Named,
    Owed,
    Owing,
    Renewed,
    Replaced,
    Settled,
    Taken,
    Wanted,
    add_incarnation,
)
from tieline.overlay.frames.fields import Reader, put
from tieline.overlay.interests.entries import Known, Terms, put_entry, read_entry

#: A key, and what is to be kept under it; None if nothing any more.
Note = tuple[bytes, bytes | None]
_LIFE, _NAME, _INCARNATIONS, _VERSION, _WANTED, _STREAM, _OWED, _TAKEN = b"LNIVWSOT"
#: The terms of an entry are no part of its key; a group has at least one member.
_ANY: Final = Terms(0, 1)


class Notes:
    """Makes notes of facts, and from notes the state that they add up to."""

    def __init__(self) -> None:
        self._incarnations: dict[int, tuple[int, ...]] = {}
        #: By destination and lane, without what is owed.
        self._streams: dict[tuple[int, int], Owing] = {}
        #: Origin, incarnation and lane of what was taken in.
        self._positions: set[tuple[int, int, int]] = set()

    # -- from facts to notes

    def write(self, facts: Iterable[Fact]) -> Iterator[Note]:
        """The notes that are different after some facts, in their order."""
        for fact in facts:
            if isinstance(fact, Owed):
                yield from self._owed(fact)
            elif isinstance(fact, Taken):
                self._positions.add((fact.origin, fact.incarnation, fact.lane))
                yield _taken(fact.origin, fact.incarnation, fact.lane), put(fact.number)
            elif isinstance(fact, Replaced):
                yield _owed((fact.destination, fact.lane), fact.number), fact.payload
            elif isinstance(fact, Settled):
                yield from self._settled(fact)
            elif isinstance(fact, Wanted):
                yield bytes((_VERSION, fact.broker)), put(fact.version)
                for entry in fact.removed:
                    yield bytes((_WANTED, fact.broker)) + put_entry(entry, _ANY), None
                for entry, terms in fact.added.items():
                    yield bytes((_WANTED, fact.broker)) + put_entry(entry, _ANY), put_entry(entry, terms)
            elif isinstance(fact, Named):
                yield bytes((_NAME, fact.number)), fact.name.encode()
            elif isinstance(fact, Renewed):
                yield from self._renewed(fact)
            elif isinstance(fact, Begun):
                yield bytes((_LIFE,)), put(*fact)

    def _owed(self, fact: Owed) -> Iterator[Note]:
        for destination, first in fact.firsts.items():
            key = destination, fact.lane
            stream = self._streams.get(key)
            if stream is None:
                stream = self._streams[key] = Owing()
                if destination in self._incarnations:
                    stream.renew(self._incarnations[destination])
                yield _stream(key, stream)
            for number, payload in enumerate(fact.payloads, first):
                yield _owed(key, number), payload

    def _settled(self, fact: Settled) -> Iterator[Note]:
        key = fact.destination, fact.lane
        stream = self._streams[key]
        for number in range(stream.settled + 1, fact.number + 1):
            yield _owed(key, number), None
        stream.settle(fact.number)
        yield _stream(key, stream)

    def _renewed(self, fact: Renewed) -> Iterator[Note]:
        broker = fact.broker
        known = add_incarnation(self._incarnations.get(broker, ()), fact.incarnation)
        self._incarnations[broker] = known
        yield bytes((_INCARNATIONS, broker)), put(fact.life, *known)
        for key, stream in self._streams.items():
            if key[0] == broker:
                stream.renew(known)
                yield _stream(key, stream)
        gone = [position for position in self._positions if position[0] == broker and position[1] not in known]
        for position in gone:
            self._positions.discard(position)
            yield _taken(*position), None

    # -- and back

    def restore(self, notes: Iterable[tuple[bytes, bytes]]) -> Ends:
        """What notes say, in the order of their keys; from then on the notes of later facts fit them."""
        ends = Ends()
        versions: dict[int, int] = {}
        for key, value in notes:
            kind, reader = key[0], Reader(value)
            if kind == _LIFE:
                ends.life, ends.incarnation = reader.integer(), reader.integer()
            elif kind == _NAME:
                ends.names[key[1]] = value.decode()
            elif kind == _INCARNATIONS:
                ends.lives[key[1]], *known = _integers(reader)
                ends.incarnations[key[1]] = tuple(known)
            elif kind == _VERSION:
                versions[key[1]] = reader.integer()
            elif kind == _WANTED:
                entry, terms = read_entry(reader)
                ends.interests.setdefault(key[1], Known(0, {})).entries[entry] = terms
            elif kind == _TAKEN:
                ends.positions[key[1], int.from_bytes(key[3:]), key[2]] = reader.integer()
            else:
                stream = ends.owing.setdefault((key[1], key[2]), Owing())
                if kind == _OWED:
                    stream.put_back(int.from_bytes(key[3:]), value)
                else:
                    stream.settled, *rest = _integers(reader)
                    stream.bases = dict(zip(rest[::2], rest[1::2], strict=True))
        for broker, version in versions.items():
            ends.interests[broker] = Known(version, ends.interests.get(broker, Known(0, {})).entries)
        for (destination, _lane), stream in ends.owing.items():
            stream.last = stream.settled + len(stream.unsettled)
            if destination in ends.incarnations:
                stream.renew(ends.incarnations[destination])
        self._begin(ends)
        return ends

    def _begin(self, ends: Ends) -> None:
        self._incarnations = dict(ends.incarnations)
        self._positions = set(ends.positions)
        for key, stream in ends.owing.items():
            twin = self._streams[key] = Owing()
            twin.base, twin.bases = stream.base, dict(stream.bases)
            twin.settled = twin.last = stream.settled


def _stream(key: tuple[int, int], stream: Owing) -> Note:
    bases = (value for pair in stream.bases.items() for value in pair)
    return bytes((_STREAM, *key)), put(stream.settled, *bases)


def _owed(key: tuple[int, int], number: int) -> bytes:
    return bytes((_OWED, *key)) + number.to_bytes(8)


def _taken(origin: int, incarnation: int, lane: int) -> bytes:
    return bytes((_TAKEN, origin, lane)) + incarnation.to_bytes(8)


def _integers(reader: Reader) -> list[int]:
    values = []
    while not reader.is_over:
        values.append(reader.integer())
    return values
