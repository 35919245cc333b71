"""What brokers tell each other about sessions: errands, each one parcel of a stream that is numbered and kept.

An errand is consumed, acted on and answered within one commit, and its stream brings each once and in order.  So
whatever follows from it has happened wholly or not at all, whichever of both brokers dies when.

A parcel is a 9, the kind, the fields as MessagePack, and perhaps a message as a parcel of its own: whoever looks at
what may pass a link need not know what the errand is about.  Brokers are meant by their names.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar  # Any: errands of all kinds are in one table

import msgspec

from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.parcel import ERRAND

#: What no errand has more of: bytes without its message, sessions, subscriptions, packet ids, lanes.  A broker says it
#: in several; one of any length would be read in one go.
MOST_BYTES: Final = 4 << 20
MOST_ENTRIES: Final = 500
MOST_SUBSCRIPTIONS: Final = 64
MOST_IDS: Final = 65_535
MOST_LANES: Final = 256

Terms = tuple[int, bytes, str]


class Claim(NamedTuple):
    """A client has come to ``claimant``, which wants its session from whoever has it."""

    client_id: str
    user: str | None
    epoch: int
    claimant: str
    hops: int


class Declined(NamedTuple):
    """There is nothing to be had by a claim: see :data:`NOT_HERE` and what follows it."""

    client_id: str
    epoch: int
    why: int


class State(NamedTuple):
    """A session that is handed over, without its subscriptions and messages."""

    client_id: str
    epoch: int
    user: str | None
    expiry_s: int
    patience: tuple[float, int, float | None] | None
    inbound: tuple[int, ...]
    #: How often it had come to another broker before.
    moves: int


class Subscriptions(NamedTuple):
    """Some of its subscriptions: filter as written, options, identifier, conditions."""

    client_id: str
    epoch: int
    entries: list[tuple[str, int, int, tuple[str, ...]]]


class Flying(NamedTuple):
    """One packet id in use, in the order of sending again; without a message, the client has that."""

    client_id: str
    epoch: int
    packet_id: int
    terms: Terms


class Complete(NamedTuple):
    """That was all but what waits; some origins are not to be asked for a mark before that of an earlier move came."""

    client_id: str
    epoch: int
    pending: list[str]


class Marked(NamedTuple):
    """The earlier mark of an origin has come: it may be asked for the next one."""

    client_id: str
    epoch: int
    origin: str


class Ready(NamedTuple):
    """Its client may be let in: what it has published at the old home is where it was to go."""

    client_id: str
    epoch: int


class Waiting(NamedTuple):
    """A message that waits for it, behind those before."""

    client_id: str
    epoch: int
    terms: Terms


class Merged(NamedTuple):
    """A message that waited for a session of that id which has lost against a later one."""

    client_id: str
    epoch: int
    terms: Terms


class AskMark(NamedTuple):
    """A session has moved from ``old`` to whoever asks, whose interest has been complete since a version."""

    client_id: str
    epoch: int
    old: str
    version: int


class NotYet(NamedTuple):
    """Whoever was asked for a mark does not know that version yet."""

    client_id: str
    epoch: int


class Mark(NamedTuple):
    """The last number in each lane that is for the old home, or that is not for the new one yet."""

    client_id: str
    epoch: int
    lanes: dict[int, int]


class Tail(NamedTuple):
    """A message of an origin that precedes its mark, passed on by the old home."""

    client_id: str
    epoch: int
    origin: str
    terms: Terms


class TailEnd(NamedTuple):
    """That was all from an origin."""

    client_id: str
    epoch: int
    origin: str


class Done(NamedTuple):
    """The new home needs nothing more of the old one."""

    client_id: str
    epoch: int


class Homes(NamedTuple):
    """News of the sessions at a broker: digest of the client id, epoch, flags."""

    is_whole: bool
    entries: list[tuple[bytes, int, int]]


class Invite(NamedTuple):
    """Please claim these sessions: client id, user, epoch."""

    entries: list[tuple[str, str | None, int]]


class Reference(NamedTuple):
    """Where clients reach this broker, as clients name servers; empty if nobody should be sent here."""

    where: str


#: Why a claim is declined: there is no such session; a later claim was there before; it belongs to another user; the
#: claimant may not read what it is subscribed to.
NOT_HERE, OUTDATED, NOT_YOURS, NOT_FOR_YOU = range(4)

Errand = (
    Claim
    | Declined
    | State
    | Subscriptions
    | Flying
    | Complete
    | Marked
    | Ready
    | Waiting
    | Merged
    | AskMark
    | NotYet
    | Mark
    | Tail
    | TailEnd
    | Done
    | Homes
    | Invite
    | Reference
)
_KINDS: Final[tuple[type[Any], ...]] = (
    Claim,
    Declined,
    State,
    Subscriptions,
    Flying,
    Complete,
    Marked,
    Ready,
    Waiting,
    Merged,
    AskMark,
    NotYet,
    Mark,
    Tail,
    TailEnd,
    Done,
    Homes,
    Invite,
    Reference,
)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}
_DECODERS: Final = tuple(msgspec.msgpack.Decoder(kind) for kind in _KINDS)
_encode: Final = msgspec.msgpack.Encoder().encode
N = TypeVar("N")


def put_errand(errand: Errand, message: bytes = b"") -> bytes:
    """An errand as a parcel, perhaps with a message that is a parcel itself."""
    return b"".join((put(ERRAND, _NUMBERS[type(errand)]), put_bytes(_encode(errand)), message))


def read_errand(parcel: bytes) -> tuple[Errand, bytes]:
    """An errand and the message that it comes with; raises BadFrame."""
    reader = Reader(parcel)
    if reader.integer() != ERRAND:
        raise BadFrame("a parcel that is no errand")
    kind = reader.integer()
    if kind >= len(_KINDS):
        raise BadFrame(f"an errand of kind {kind}")
    fields = reader.raw()
    if len(fields) > MOST_BYTES:
        raise BadFrame(f"{_KINDS[kind].__name__}: {len(fields)} bytes")
    try:
        errand: Errand = _DECODERS[kind].decode(fields)
    except msgspec.DecodeError as error:
        raise BadFrame(f"{_KINDS[kind].__name__}: {error}") from None
    count, most = count_entries(errand), _MOST.get(_KINDS[kind], MOST_ENTRIES)
    if count > most:
        raise BadFrame(f"{_KINDS[kind].__name__}: {count} entries, where {most} is the most")
    return errand, reader.rest()


_MOST: Final[dict[type[Any], int]] = {State: MOST_IDS, Mark: MOST_LANES, Subscriptions: MOST_SUBSCRIPTIONS}


def count_entries(errand: Errand) -> int:
    """Of how many things an errand speaks."""
    if isinstance(errand, Homes | Subscriptions | Invite):
        return len(errand.entries)
    if isinstance(errand, State):
        return len(errand.inbound)
    if isinstance(errand, Mark):
        return len(errand.lanes)
    return len(errand.pending) if isinstance(errand, Complete) else 1
