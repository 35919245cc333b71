"""All connections of a broker to others of its ring, which are dialled as they are needed and closed when they are not.

Theory of operation
-------------------
The ring gives a message to a peer, which is an address with a place.  If no connection leads there, the shell is asked
to dial; what waits is written once both ends have said who they are, in order and once, over as many connections as
that takes (:mod:`tieline.overlay.ring_member.frames`).  Where nobody answers at an address, or nothing is heard for too
long of somebody who has something to acknowledge, the ring gets back what could not be handed over.  It decides who is
dead; a link only says what it could not do.

Whoever has the key may say anything, so everything is bounded: brokers that are remembered, bytes that wait for each,
connections that are being dialled, and how long a message may be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from typing import Final, Protocol

from tieline.conf import urls
from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.frames.hello import Refused
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.ring.identifiers import identifier_of
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring_member.far import Far, Said, is_publication, said
from tieline.overlay.ring_member.frames import LONGEST_ADDRESS, RingHello, read_ring_hello

#: Other brokers that are remembered, and those that are being dialled.
_MOST_FAR: Final = 2_048
_MOST_DIALLED: Final = 64
#: Bytes that wait for one broker: of publications, and of everything.
_WAITING_BYTES, _ALL_BYTES = 8 << 20, 16 << 20
#: Bytes that are written and not acknowledged.
_CUSTODY_BYTES: Final = 1 << 20
#: How long a connection stays of which neither end makes use.
IDLE_S: Final = 30.0
#: What a message counts towards the work of a turn, and each hundred bytes of it.
_WORK_PER_MESSAGE, _WORK_PER_BYTES = 30, 100


class _Phase(Enum):
    GREETING = auto()
    UP = auto()
    #: A sentence is written still.
    REFUSED = auto()
    OVER = auto()


#: Nothing more is read then.
_DEAF: Final = frozenset({_Phase.REFUSED, _Phase.OVER})


@dataclass(eq=False, slots=True)
class _Connection:
    handle: int
    name: str
    inbox: Inbox = field(default_factory=Inbox)
    #: Whole frames that have not been looked at.
    frames: Iterator[tuple[Kind, bytes]] = field(default_factory=lambda: iter(()))
    controls: deque[bytes] = field(default_factory=deque)
    #: What is written a second time.
    again: deque[bytes] = field(default_factory=deque)
    owes_ack: bool = False
    phase: _Phase = _Phase.GREETING
    far: Far | None = None
    why: str = ""
    #: Whether the next message that comes has a number, so that RESUME has come.
    is_resumed: bool = False


@dataclass(slots=True)
class LinkCounts:
    """What happened on the links of one broker."""

    messages_out: int = 0
    messages_in: int = 0
    #: Of those that were written first, publications, and the bytes of their frames.
    publications_out: int = 0
    publication_bytes: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    resent: int = 0
    #: Messages that were given back to the ring, and with QoS 0 those that found no room.
    given_back: int = 0
    voided: int = 0
    put_off: int = 0
    #: Addresses that nobody may be asked to dial, and peers that are too many.
    bad_addresses: int = 0
    too_many: int = 0
    malformed: int = 0
    refused: int = 0
    renewed: int = 0
    idle: int = 0
    silent: int = 0


class Ring(Protocol):
    """Who gives messages to links, and is given them."""

    def came(self, peer: Peer, data: bytes, now: float) -> bool:
        """A message has come; False if it is none."""

    def returned(self, peer: Peer, data: bytes, sent: float, now: float, *, may_have_come: bool) -> None:
        """One could not be handed over, as far as is known here."""

    def renewed(self, peer: Peer, now: float) -> None:
        """Somebody has begun anew."""

    def met(self, peer: Peer, now: float) -> None:
        """A connection to somebody is there, and both have said who they are."""


class RingLinks:
    """The links of one broker; what sockets need is that of :class:`tieline.net.peers.Carries`."""

    def __init__(  # who it is, what it has declared, and what it may take
        self,
        name: str,
        life: int,
        fingerprint: bytes,
        ring: Ring,
        *,
        patience_s: float,
        longest: int,
        spend: Callable[[int], bool],
    ) -> None:
        """``spend`` adds to the work of a turn, and says whether others should have theirs."""
        self._name = name
        self._life = life
        self._fingerprint = fingerprint
        self._ring = ring
        self._patience_s = patience_s
        self._longest = longest
        self._spend = spend
        #: Where this broker is reached; empty until that is known, and then nobody is greeted.
        self.address = ""
        self._connections: dict[int, _Connection] = {}
        #: By place, other brokers.
        self.far: dict[int, Far] = {}
        #: Those that are to be dialled, and those that are.
        self.wanted: deque[Peer] = deque()
        self._dialled: set[Peer] = set()
        #: Connections with something to write, and those to be ended.
        self.dirty: set[int] = set()
        self.doomed: set[int] = set()
        #: Of peers that could not be had: the connection, whether the peer said so, and a sentence.
        self.refusals: list[tuple[int, bool, str]] = []
        #: What could not be handed over, for the ring: not from inside whatever gave it.
        self._back: deque[tuple[Peer, Said, bool]] = deque()
        self.counts: Final = LinkCounts()
        self._names: dict[int, str] = {}

    # -- for the ring

    def send(self, peer: Peer, data: bytes, now: float) -> None:
        """Bring a message to a peer, or say that it could not be brought."""
        each = said(data, now)
        far = self.far.get(peer.identifier)
        if far is not None and far.peer != peer:
            # whoever is meant is somewhere else now, and knows nothing of an earlier place
            self._give_back(peer, each, may_have_come=False)
            return
        if far is None:
            if not self._may_dial(peer):
                self._give_back(peer, each, may_have_come=False)
                return
            far = self.far[peer.identifier] = Far(peer, now)
        if self._lacks_room(far, each):
            return
        far.waiting.put(each)
        far.used_at = now
        if far.handle:
            self.dirty.add(far.handle)
        else:
            self._want(peer)

    def reach(self, peer: Peer, now: float) -> None:
        """Dial a peer of which is known where it was."""
        if peer.identifier not in self.far and self._may_dial(peer):
            self.far[peer.identifier] = Far(peer, now)
            self._want(peer)

    def _lacks_room(self, far: Far, each: Said) -> bool:
        """Whether too much waits for somebody: publications are not taken then."""
        size = far.waiting.bytes + len(each.data)
        if each.is_lossy and size > _WAITING_BYTES:
            self.counts.voided += 1
            return True
        if size > _ALL_BYTES:
            # an assured one comes again, and what is said about the ring is said again when somebody is found anew
            self.counts.put_off += 1
            return True
        return False

    def _may_dial(self, peer: Peer) -> bool:
        """Whether an address that others have told may be dialled: it is of the same kind as that of this broker."""
        if len(self.far) >= _MOST_FAR:
            self.counts.too_many += 1
            return False
        if len(peer.link) <= LONGEST_ADDRESS:
            with suppress(urls.UrlError):
                theirs, mine = urls.parse(peer.link), urls.parse(self.address)
                if theirs.scheme == mine.scheme and (theirs.port or theirs.is_unix) and peer.link != self.address:
                    return True
        self.counts.bad_addresses += 1
        return False

    def _want(self, peer: Peer) -> None:
        if peer not in self._dialled and peer not in self.wanted:
            self.wanted.append(peer)

    def take_wanted(self) -> list[Peer]:
        """Who is to be dialled now; the others when these have answered."""
        found: list[Peer] = []
        while self.wanted and len(self._dialled) < _MOST_DIALLED:
            peer = self.wanted.popleft()
            self._dialled.add(peer)
            found.append(peer)
        return found

    def _give_back(self, peer: Peer, each: Said, *, may_have_come: bool) -> None:
        self.counts.given_back += 1
        self._back.append((peer, each, may_have_come))

    def settle(self, now: float) -> None:
        """Tell the ring what could not be handed over; what it says to that waits for the next time."""
        for _ in range(len(self._back)):
            peer, each, may_have_come = self._back.popleft()
            self._ring.returned(peer, each.data, each.at, now, may_have_come=may_have_come)

    @property
    def is_settled(self) -> bool:
        """Whether the ring has been told everything."""
        return not self._back

    # -- for sockets

    def opened(self, handle: int, now: float, cost: int, name: str) -> None:
        """Somebody has proven to have a name, on a connection; one that there was before is over."""
        for old in [each for each in self._connections.values() if each.name == name]:
            self._end(old, "replaced")
        connection = self._connections[handle] = _Connection(handle, name)
        identifier = identifier_of(name)
        far = self.far.get(identifier)
        heard = (far.life, far.received) if far is not None else (0, 0)
        hello = RingHello(self._life, self._longest, self.address, self._fingerprint, *heard)
        connection.controls.append(hello.encode())
        self.dirty.add(handle)

    def closed(self, handle: int, now: float) -> None:
        """A connection is no more."""
        connection = self._connections.pop(handle, None)
        self.dirty.discard(handle)
        self.doomed.discard(handle)
        if connection is not None:
            self._let_go(connection)

    def unreachable(self, peer: Peer, now: float, *, is_certain: bool) -> None:
        """An attempt to dial has come to nothing; with ``is_certain`` nobody is there at all."""
        self._dialled.discard(peer)
        far = self.far.get(peer.identifier)
        # where that is not certain it is dialled again when links are looked after
        if is_certain and far is not None and not far.handle and far.peer == peer:
            self._give_up(far, now)

    def dialled(self, peer: Peer) -> None:
        """An attempt to dial has come to a connection."""
        self._dialled.discard(peer)

    def is_up(self, handle: int) -> bool:
        """Whether both ends have said who they are."""
        connection = self._connections.get(handle)
        return connection is not None and connection.phase is _Phase.UP

    def why(self, handle: int) -> str:
        """The name of the reason why a connection was ended here; empty if it was not."""
        connection = self._connections.get(handle)
        return "" if connection is None else connection.why

    def tune(self, handle: int, cost: int, now: float, *, is_packed: bool = False) -> None:
        """Nothing depends on what a link costs."""

    def packs(self, handle: int) -> bool:
        """What comes is never compressed."""
        return False

    def note_rate(self, handle: int, bytes_per_s: float) -> None:
        """Nothing depends on how much a link carries."""

    @property
    def connections(self) -> RingLinks:
        """What is known of connections is known here."""
        return self

    # -- reading

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """Bytes have come; True if some wait for :meth:`go_on`."""
        connection = self._connections.get(handle)
        if connection is None or connection.phase in _DEAF:
            return False
        if connection.far is not None:
            connection.far.heard_at = now
        self.counts.bytes_in += len(data)
        # what was put off comes first
        connection.frames = chain(connection.frames, connection.inbox.take(data))
        return self.go_on(handle, now)

    def go_on(self, handle: int, now: float) -> bool:
        """Look at more of what has come; whether something still waits."""
        connection = self._connections.get(handle)
        if connection is None or connection.phase in _DEAF:
            return False
        try:
            for kind, body in connection.frames:
                self._take(connection, kind, body, now)
                if connection.phase in _DEAF:
                    return False
                if self._spend(_WORK_PER_MESSAGE + len(body) // _WORK_PER_BYTES):
                    return True
            connection.frames = iter(())
        except BadFrame:
            self.counts.malformed += 1
            self._end(connection, "bad_frames")
        except Refused as refusal:
            self._refuse(connection, str(refusal))
        return False

    def _take(self, connection: _Connection, kind: Kind, body: bytes, now: float) -> None:
        far = connection.far
        if kind is Kind.REFUSED:
            self.refusals.append((connection.handle, True, body.decode(errors="replace")))
            self._end(connection, "refused")
        elif far is None:
            if kind is not Kind.HELLO:
                raise BadFrame("something before HELLO")
            self._greet(connection, read_ring_hello(body), now)
        elif kind is Kind.RESUME:
            number = Reader(body).integer()
            if not number or connection.is_resumed:
                raise BadFrame("a beginning that is none")
            connection.is_resumed = True
            far.received = number - 1
        elif kind is Kind.HOP_ACK:
            if not far.acknowledged(Reader(body).integer()):
                raise BadFrame("an acknowledgement of what was never written")
            self.dirty.add(connection.handle)
        elif kind is Kind.RING and connection.is_resumed:
            self._arrived(connection, far, body, now)
        else:
            raise BadFrame(f"{kind.name} between brokers of a ring")

    def _arrived(self, connection: _Connection, far: Far, body: bytes, now: float) -> None:
        if len(body) > self._longest:
            raise Refused(f"it sent a message of {len(body):,} bytes, and at most {self._longest:,} are taken here")
        far.received += 1
        far.used_at = now
        connection.owes_ack = True
        self.dirty.add(connection.handle)
        self.counts.messages_in += 1
        if not self._ring.came(far.peer, body, now):
            raise Refused("it sent what is no message between brokers of a ring")

    # -- greeting

    def _greet(self, connection: _Connection, hello: RingHello, now: float) -> None:
        if hello.fingerprint != self._fingerprint:
            raise Refused(
                f"broker {connection.name} and broker {self._name} have declared other event types or go around the "
                "ring otherwise, and all of a ring have to do the same"
            )
        peer = Peer(identifier_of(connection.name), hello.address)
        far = self._far(peer, hello, now)
        connection.far, connection.phase = far, _Phase.UP
        if far.handle and far.handle in self._connections:
            self._end(self._connections[far.handle], "replaced")
        far.handle, far.heard_at, far.used_at = connection.handle, now, now
        self._names[peer.identifier] = connection.name
        connection.controls.append(frame(Kind.RESUME, put(far.number - len(far.written) + 1)))
        connection.again.extend(each.data for each in far.written)
        self.counts.resent += len(far.written)
        self.dirty.add(connection.handle)
        self._dialled.discard(peer)
        with suppress(ValueError):
            self.wanted.remove(peer)
        self._ring.met(peer, now)

    def _far(self, peer: Peer, hello: RingHello, now: float) -> Far:
        """Who that is: the one that was known, or another life of it, or somebody new."""
        far = self.far.get(peer.identifier)
        if far is not None and (far.peer != peer or far.life not in {0, hello.life}):
            # it is another life of it, or somewhere else: nothing that was meant for the one that was known is for it
            self.counts.renewed += 1
            self._give_up(far, now)
            self._ring.renewed(far.peer, now)
            far = None
        if far is None:
            if len(self.far) >= _MOST_FAR:
                self.counts.too_many += 1
                raise Refused(f"broker {self._name} knows too many brokers")
            far = self.far[peer.identifier] = Far(peer, now)
        if hello.heard_life != self._life:
            for each in far.take_written():
                self._give_back(peer, each, may_have_come=True)
        elif not far.acknowledged(hello.heard):
            raise BadFrame("an acknowledgement of what was never written")
        far.life = hello.life
        return far

    def _refuse(self, connection: _Connection, text: str) -> None:
        """Say why a peer cannot be had, and then nothing more."""
        self.counts.refused += 1
        self.refusals.append((connection.handle, False, text))
        self._let_go(connection)
        connection.phase, connection.why = _Phase.REFUSED, "refused"
        connection.controls = deque([frame(Kind.REFUSED, text.encode())])
        connection.again.clear()
        self.dirty.add(connection.handle)

    def _end(self, connection: _Connection, why: str) -> None:
        connection.why = connection.why or why
        connection.phase = _Phase.OVER
        self.doomed.add(connection.handle)
        self._let_go(connection)

    def _let_go(self, connection: _Connection) -> None:
        far = connection.far
        if far is None or far.handle != connection.handle:
            return
        far.handle = 0
        if not far.owes_nothing:
            self._want(far.peer)

    # -- writing

    def fill(self, handle: int, room: int, now: float) -> bytes:
        """What is to be written next on a connection, about as much as there is room for."""
        connection = self._connections.get(handle)
        parts: list[bytes] = []
        size = 0
        while connection is not None and size < room:
            part = self._next(connection)
            if not part:
                self.dirty.discard(handle)
                if connection.phase is _Phase.REFUSED:
                    self._end(connection, "refused")
                break
            parts.append(part)
            size += len(part)
        if connection is None:
            self.dirty.discard(handle)
        self.counts.bytes_out += size
        return b"".join(parts)

    def _next(self, connection: _Connection) -> bytes:
        if connection.phase is _Phase.OVER:
            return b""
        if connection.controls:
            return connection.controls.popleft()
        far = connection.far
        if far is None or connection.phase is not _Phase.UP:
            return b""
        if connection.owes_ack:
            connection.owes_ack = False
            return frame(Kind.HOP_ACK, put(far.received))
        if connection.again:
            return frame(Kind.RING, connection.again.popleft())
        if far.waiting and far.unacknowledged_bytes < _CUSTODY_BYTES:
            self.counts.messages_out += 1
            each = far.write()
            out = frame(Kind.RING, each.data)
            if is_publication(each):
                self.counts.publications_out += 1
                self.counts.publication_bytes += len(out)
            return out
        return b""

    # -- once a while

    def look(self, now: float) -> None:
        """Give up whoever was silent for too long, and let go of those that are not needed."""
        for far in list(self.far.values()):
            if not far.owes_nothing:
                if now - max(far.heard_at, far.since()) > self._patience_s:
                    self.counts.silent += 1
                    self._give_up(far, now)
                elif not far.handle:
                    self._want(far.peer)
            elif now - far.used_at > IDLE_S:
                self._drop(far)

    def _drop(self, far: Far) -> None:
        """Nobody needs a link: it is closed, and forgotten."""
        self.counts.idle += 1
        self.far.pop(far.peer.identifier, None)
        self._names.pop(far.peer.identifier, None)
        if far.handle in self._connections:
            self._end(self._connections[far.handle], "idle")

    def _give_up(self, far: Far, now: float) -> None:
        """Whoever that is cannot be reached: the ring gets back everything, in its order."""
        self.far.pop(far.peer.identifier, None)
        self._dialled.discard(far.peer)
        if far.handle in self._connections:
            self._end(self._connections[far.handle], "silent")
        for each in far.take_written():
            self._give_back(far.peer, each, may_have_come=True)
        for each in far.waiting.clear():
            self._give_back(far.peer, each, may_have_come=False)
        with suppress(ValueError):
            self.wanted.remove(far.peer)

    def name_of(self, identifier: int) -> str:
        """What a broker is called; its place if that is not known."""
        return self._names.get(identifier, f"{identifier:016x}")
