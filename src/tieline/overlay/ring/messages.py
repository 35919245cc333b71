"""What brokers of a ring say to each other: one tuple for each kind of message, and its bytes.

A peer is an identifier, which says where it stands, and a link, which says how to reach it: the address that is
dialled, or the name to which links lead by the shortest path.  Whoever carries messages knows the sender of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntFlag
from itertools import starmap
from typing import Any, Final, NamedTuple  # Any: a field is written by the type that its place in the table names

from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.ring.events import Sent, put_sent, read_sent
from tieline.overlay.ring.identifiers import BITS
from tieline.overlay.ring.summary import Summary

#: Peers and identifiers of one list, and events of one batch, that are taken from somebody.
_MOST: Final = 16_384
#: Bytes within which the lane of a publication stands: behind its origin and two integers.
_HEAD: Final = BITS // 8 + 20


class Peer(NamedTuple):
    """A broker of the ring."""

    identifier: int
    link: str

    def __repr__(self) -> str:
        return f"<Peer {self.link} {self.identifier >> BITS - 16:04x}>"


class Find(NamedTuple):
    """Who stands at a place or first behind it?  Passed on until somebody knows, who tells the asker."""

    key: int
    asker: Peer
    hops: int


class Found(NamedTuple):
    """The sender stands before the place, and these behind it, the nearest first."""

    key: int
    successors: tuple[Peer, ...]


class Role(IntFlag):
    """What the sender of a probe takes the other for."""

    FINGER = 0
    SUCCESSOR = 1


class Probe(NamedTuple):
    """Are you there?  The last version that the sender has of what the other told it; 0 if it does not ask for that."""

    role: Role
    version: int


class Answer(NamedTuple):
    """Yes; to a broker that takes it for its successor also who stands before it, and who behind."""

    before: tuple[Peer, ...]
    successors: tuple[Peer, ...]


class Behind(NamedTuple):
    """The sender stands right behind the receiver, as far as it knows."""


class Before(NamedTuple):
    """Another broker stands before the sender now, and may be who the receiver is looking for."""

    peer: Peer


class Watch(NamedTuple):
    """Tell me what is wanted from you up to a place, now and when it grows; ``start`` is where I looked for you."""

    start: int
    end: int


class Unwatch(NamedTuple):
    """No more of that."""


class Forgotten(NamedTuple):
    """The sender does not know that the receiver watches it, and tells it nothing."""


class Anew(NamedTuple):
    """The sender has begun anew: the one that the receiver knows is dead, and nothing that it was told is known."""


class Member(NamedTuple):
    """One broker of an arc, and what it wants."""

    peer: Peer
    summary: Summary


class ArcWanted(NamedTuple):
    """What is wanted from the sender up to a place: all of it, or what comes to what was told before."""

    version: int
    end: int
    #: Who wants more, or the sender, if it tells the whole.
    place: int
    is_whole: int
    #: By broker, as far as brokers are told apart; then the rest is nothing.
    is_apart: int
    members: tuple[Member, ...]
    summary: Summary


class Echo(NamedTuple):
    """What was told under a version is known here and by everybody who has to know it from here."""

    version: int


class Leaving(NamedTuple):
    """The sender leaves; who stands before it, and who behind."""

    before: tuple[Peer, ...]
    successors: tuple[Peer, ...]


class Left(NamedTuple):
    """The sender goes by another successor now."""


class Data(NamedTuple):
    """Publications of one origin and lane, for everybody from ``start`` up to ``end``."""

    origin: int
    incarnation: int
    lane: int
    number: int
    is_assured: int
    hops: int
    start: int
    end: int
    #: Who has matched, where a strategy keeps a list.
    matched: tuple[int, ...]
    events: tuple[Sent, ...]

    @property
    def key(self) -> Key:
        return Key(self.origin, self.incarnation, self.lane, self.number)


class Key(NamedTuple):
    """By which a batch is known to everybody."""

    origin: int
    incarnation: int
    lane: int
    number: int


class Settled(NamedTuple):
    """Everybody from ``start`` up to ``end`` who wants a batch has committed it."""

    origin: int
    incarnation: int
    lane: int
    number: int
    start: int
    end: int


Message = (
    Find
    | Found
    | Probe
    | Answer
    | Behind
    | Before
    | Watch
    | Unwatch
    | Forgotten
    | Anew
    | ArcWanted
    | Echo
    | Leaving
    | Left
    | Data
    | Settled
)


def _put_place(place: int) -> bytes:
    return place.to_bytes(BITS // 8, "little")


def _read_place(reader: Reader) -> int:
    return int.from_bytes(reader.take(BITS // 8), "little")


def _put_peer(peer: Peer) -> bytes:
    return _put_place(peer.identifier) + put_bytes(peer.link.encode())


def _read_peer(reader: Reader) -> Peer:
    return Peer(_read_place(reader), reader.text())


class _Field(NamedTuple):
    put: Callable[[Any], bytes]
    read: Callable[[Reader], Any]


def _several(field: _Field) -> _Field:
    def write(values: Sequence[object]) -> bytes:
        return put(len(values)) + b"".join(map(field.put, values))

    def read(reader: Reader) -> tuple[object, ...]:
        count = reader.count()
        if count > _MOST:
            raise BadFrame(f"a list of {count}")
        return tuple([field.read(reader) for _ in range(count)])

    return _Field(write, read)


_NUMBER: Final = _Field(put, Reader.integer)
_PLACE: Final = _Field(_put_place, _read_place)
_PEER: Final = _Field(_put_peer, _read_peer)
_PEERS: Final = _several(_PEER)
_ROLE: Final = _Field(put, lambda reader: Role(reader.integer() & Role.SUCCESSOR))
_SUMMARY: Final = _Field(Summary.encode, Summary.read)
_MEMBER: Final = _Field(
    lambda member: _put_peer(member.peer) + member.summary.encode(),
    lambda reader: Member(_read_peer(reader), Summary.read(reader)),
)
#: By kind, whose place is the number that it travels under, how its fields are written.
_FIELDS: Final[dict[type[Any], tuple[_Field, ...]]] = {
    Find: (_PLACE, _PEER, _NUMBER),
    Found: (_PLACE, _PEERS),
    Probe: (_ROLE, _NUMBER),
    Answer: (_PEERS, _PEERS),
    Behind: (),
    Before: (_PEER,),
    Watch: (_PLACE, _PLACE),
    Unwatch: (),
    Forgotten: (),
    ArcWanted: (_NUMBER, _PLACE, _PLACE, _NUMBER, _NUMBER, _several(_MEMBER), _SUMMARY),
    Echo: (_NUMBER,),
    Leaving: (_PEERS, _PEERS),
    Left: (),
    Data: (
        _PLACE, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _PLACE, _PLACE,
        _several(_PLACE), _several(_Field(put_sent, read_sent)),
    ),
    Settled: (_PLACE, _NUMBER, _NUMBER, _NUMBER, _PLACE, _PLACE),
    Anew: (),
}  # fmt: skip
_KINDS: Final = tuple(_FIELDS)
_NUMBERS: Final = {kind: bytes((number,)) for number, kind in enumerate(_KINDS)}


def is_publication(data: bytes) -> bool:
    """Whether some bytes are publications under way, and not about the ring itself."""
    return data[:1] == _NUMBERS[Data]


def lane_in(data: bytes) -> int | None:
    """The lane of publications under way; None where some bytes are about the ring itself."""
    if not is_publication(data):
        return None
    reader = Reader(data[1 : 2 + _HEAD])
    reader.take(BITS // 8)
    reader.integer()
    return reader.integer()


def encode(message: Message) -> bytes:
    """A message as bytes."""
    kind = type(message)
    return _NUMBERS[kind] + b"".join(starmap(_written, zip(_FIELDS[kind], message, strict=True)))


def _written(field: _Field, value: object) -> bytes:
    return field.put(value)


def decode(data: bytes) -> Message:
    """The message in some bytes; :class:`BadFrame` if there is none."""
    if not data or data[0] >= len(_KINDS):
        raise BadFrame("a message of no kind that is known")
    kind = _KINDS[data[0]]
    reader = Reader(data[1:])
    message: Message = kind(*[field.read(reader) for field in _FIELDS[kind]])
    if not reader.is_over:
        raise BadFrame("bytes behind a message")
    return message
