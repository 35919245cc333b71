"""What a broker on a ring keeps in its store: what it owes, how far it has taken what others sent, and who is around.

::

    Y I                             the incarnation to which its numbers belong
    Y N lane                        a number of that lane that was never given out, nor any behind it
    Y O lane, number                publications that are owed to the ring
    Y T origin, incarnation, lane   the last number that was committed here
    Y P                             brokers that stand behind this one, by which it comes back

Origins are eight bytes, as are numbers and incarnations; a lane is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.ring.events import Event, put_event, read_event
from tieline.overlay.ring.identifiers import BITS
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.node import RingEnds
from tieline.overlay.ring.promises import Batch, Taken
from tieline.overlay.ring.settings import NOTE

_INCARNATION, _NUMBER, _OWED, _TAKEN, _PEERS = (NOTE + kind for kind in (b"I", b"N", b"O", b"T", b"P"))
_WIDE: Final = BITS // 8
#: Numbers of a lane that are set aside at once, so that they need not be noted one by one.
_AHEAD: Final = 1_024
Note = tuple[bytes, bytes]
Keep = Callable[[bytes, bytes | None], None]


class RingNotes:
    """The notes of one broker: read once, then written as things change."""

    def __init__(self, notes: Iterable[Note], incarnation: int, keep: Keep, most_taken: int) -> None:
        """``incarnation`` is taken if none was noted; ``keep`` notes a value, or that there is none any more."""
        self._keep = keep
        self._most_taken = most_taken
        #: By lane, up to which number none need be noted.
        self._set_aside: dict[int, int] = {}
        #: Keys of what was taken, the oldest first.
        self._taken: dict[bytes, None] = {}
        #: Who stood behind this broker when that was last noted.
        self.peers: tuple[Peer, ...] = ()
        self.ends: Final = self._read(notes, incarnation)

    def _read(self, notes: Iterable[Note], incarnation: int) -> RingEnds:
        has_lived = False
        owed: list[Batch] = []
        positions: dict[tuple[int, int, int], int] = {}
        for key, value in sorted(note for note in notes if note[0][:1] == NOTE):
            has_lived = True
            kind, rest = key[:2], key[2:]
            if kind == _INCARNATION:
                incarnation = int.from_bytes(value, "big")
            elif kind == _NUMBER:
                self._set_aside[rest[0]] = Reader(value).integer()
            elif kind == _OWED:
                owed.append(Batch(rest[0], int.from_bytes(rest[1:], "big"), _read_events(value)))
            elif kind == _TAKEN:
                self._taken[key] = None
                places = int.from_bytes(rest[:_WIDE], "big"), int.from_bytes(rest[_WIDE : 2 * _WIDE], "big")
                positions[*places, rest[-1]] = Reader(value).integer()
            elif kind == _PEERS:
                self.peers = _read_peers(value)
        if not has_lived:
            self._keep(_INCARNATION, incarnation.to_bytes(_WIDE, "big"))
        return RingEnds(
            has_lived=has_lived,
            incarnation=incarnation,
            owed=tuple(owed),
            numbers=dict(self._set_aside),
            positions=positions,
        )

    def owe(self, batch: Batch) -> None:
        """A batch is owed from here on."""
        if batch.number > self._set_aside.get(batch.lane, 0):
            self._set_aside[batch.lane] = ahead = batch.number + _AHEAD
            self._keep(_NUMBER + bytes((batch.lane,)), put(ahead))
        self._keep(_owed(batch), put(len(batch.events)) + b"".join(map(put_event, batch.events)))

    def settle(self, batch: Batch) -> None:
        """A batch is owed no more."""
        self._keep(_owed(batch), None)

    def take(self, taken: Taken) -> None:
        """What came under a number of an origin is committed with everything that it did here."""
        places = taken.origin.to_bytes(_WIDE, "big") + taken.incarnation.to_bytes(_WIDE, "big")
        key = _TAKEN + places + bytes((taken.lane,))
        self._taken.pop(key, None)
        self._taken[key] = None
        self._keep(key, put(taken.number))
        if len(self._taken) > self._most_taken:
            oldest = next(iter(self._taken))
            del self._taken[oldest]
            self._keep(oldest, None)

    def know(self, peers: tuple[Peer, ...]) -> None:
        """Others stand behind this broker than were noted last."""
        if peers and peers != self.peers:
            self.peers = peers
            said = [put(peer.identifier) + put_bytes(peer.link.encode()) for peer in peers]
            self._keep(_PEERS, put(len(said)) + b"".join(said))


def _owed(batch: Batch) -> bytes:
    return _OWED + bytes((batch.lane,)) + batch.number.to_bytes(_WIDE, "big")


def _read_events(value: bytes) -> tuple[Event, ...]:
    reader = Reader(value)
    return tuple([read_event(reader) for _ in reader.repeat()])


def _read_peers(value: bytes) -> tuple[Peer, ...]:
    reader = Reader(value)
    try:
        return tuple([Peer(reader.integer(), reader.text()) for _ in reader.repeat()])
    except BadFrame:
        return ()
