"""One link to a peer: its connections come and go, its numbers and its custody remain.

Theory of operation
-------------------
A connection begins with HELLO in both directions, by which each end learns who the other is and which brokers it means
by which numbers.  The answer is REFUSED with a sentence, or RESUME: the last link number that came from this start of
the peer.  Whoever sends it lets go of every older connection of that peer
first, so that nothing behind that number can still be accepted on one.  (Accepting frames of an old connection behind
lost ones lost messages in one history of fifteen, when it was tried.)

What was sent stays in custody until the peer has acknowledged its number.  When a connection ends, everything in
custody and everything that waits is handed out, to go another way if there is one; what has no other way is kept with
its number, and RESUME says whether it had arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from tieline.core.account import Drop
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import BadFrame, put
from tieline.overlay.frames.frame import LARGEST, Data, Kind, Numbered, frame, numbered
from tieline.overlay.frames.hello import Hello
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.frames.packing import Packer, Unpacker
from tieline.overlay.frames.segments import FRAME, SEGMENT, Gathering, LongInterests, Segment
from tieline.overlay.interests.update import InterestUpdate
from tieline.overlay.links.directory import Translation
from tieline.overlay.links.line import PLENTY, Line
from tieline.overlay.links.meter import Meter, Pings
from tieline.overlay.links.patience import Patience


class Phase(StrEnum):
    """How far a connection has come."""

    GREETING = "greeting"  # only HELLO is legal
    RESUMING = "resuming"  # only RESUME is legal, and what is no data
    UP = "up"  # everything but HELLO and RESUME is legal
    REFUSED = "refused"  # nothing is read any more; why is still to be said
    OVER = "over"  # nothing is read or written any more


#: What may follow what.
PHASES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.GREETING: frozenset({Phase.RESUMING, Phase.REFUSED, Phase.OVER}),
    Phase.RESUMING: frozenset({Phase.UP, Phase.REFUSED, Phase.OVER}),
    Phase.UP: frozenset({Phase.REFUSED, Phase.OVER}),
    Phase.REFUSED: frozenset({Phase.OVER}),
    Phase.OVER: frozenset({Phase.OVER}),
}
_ALWAYS: Final = frozenset(
    {Kind.SEGMENT, Kind.REST, Kind.PACKED, Kind.PING, Kind.NAMES, Kind.LINK_STATE, Kind.INTEREST, Kind.REFUSED}
)
#: Which frames each phase takes.
LEGAL: Final[Mapping[Phase, frozenset[Kind]]] = {
    Phase.GREETING: frozenset({Kind.HELLO, Kind.REFUSED}),
    Phase.RESUMING: _ALWAYS | {Kind.RESUME},
    Phase.UP: _ALWAYS | {Kind.CLOCK, Kind.HOP_ACK, Kind.DATA, Kind.VOID, Kind.NOTICE, Kind.LAST},
    Phase.REFUSED: frozenset(),
    Phase.OVER: frozenset(),
}


class Connection:
    """What lasts as long as one socket."""

    __slots__ = (
        "coming",
        "controls",
        "cost",
        "gathering",
        "handle",
        "heard_at",
        "inbox",
        "inner",
        "link",
        "long",
        "looked_at",
        "packer",
        "phase",
        "pings",
        "said",
        "sent_at",
        "theirs",
        "unpacked",
        "unpacker",
        "update",
        "why",
    )  # fmt: skip

    def __init__(self, handle: int, now: float, cost: int = 1, longest: int = LARGEST) -> None:
        self.handle = handle
        #: What the way over it counts.
        self.cost = cost
        #: What the peer means by its numbers.
        self.theirs = Translation()
        self.phase = Phase.GREETING
        self.inbox = Inbox()
        self.gathering = Gathering(longest)
        #: Frames that have come and wait until others have had their turn.
        self.coming: Iterator[tuple[Kind, bytes]] | None = None
        #: And of these, what a packed frame holds that has begun.
        self.inner: Iterator[tuple[Kind, bytes]] | None = None
        #: What is learned from a frame that came, before the next one is looked at.
        self.update: InterestUpdate | None = None
        #: By broker, the version of its whole interest that was said on this connection: nobody has to hear it twice.
        self.said: dict[int, int] = {}
        #: Frames without numbers that go before all others.
        self.controls: deque[bytes] = deque()
        #: Of those, what goes in pieces because it is long and room is short.
        self.long = LongInterests()
        #: Compresses what is written while there is little room; None where that is not wanted.
        self.packer: Packer | None = None
        #: Set once the peer has compressed something, with the frames that come out of that.
        self.unpacker: Unpacker | None = None
        self.unpacked = Inbox()
        self.pings = Pings()
        #: The name of the reason why it was ended here; empty while it was not.
        self.why = ""
        #: When something last came, and was last written.
        self.heard_at = self.sent_at = now
        #: When it was last seen whether the peer is there.
        self.looked_at = now
        #: Set once the peer has said who it is.
        self.link: Link | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.handle} {self.phase.value} to {self.link and self.link.peer}>"

    @property
    def is_over(self) -> bool:
        """Whether nothing more is read or written."""
        return self.phase is Phase.OVER

    def go(self, phase: Phase) -> None:
        if phase not in PHASES[self.phase]:
            raise BadFrame(f"a connection cannot go from {self.phase.value} to {phase.value}")
        self.phase = phase
        if phase in {Phase.REFUSED, Phase.OVER} and self.update is not None:
            self.update.end()
            self.update = None

    def next_frame(self) -> tuple[Kind, bytes] | None:
        """The next frame that has come; None if all were looked at."""
        if self.inner is not None:
            found = next(self.inner, None)
            if found is not None:
                return found
            self.inner = None
        if self.coming is None:
            return None
        found = next(self.coming, None)
        if found is None:
            self.coming = None
        return found

    def admit(self, kind: Kind) -> None:
        """Refuse a frame that this phase does not take."""
        if kind not in LEGAL[self.phase]:
            raise BadFrame(f"{kind.name} on a connection that is {self.phase.value}")

    def fill(self, room: int, now: float) -> bytes:
        """About as many bytes as there is room for: whole frames, of which the last may be longer than the room."""
        parts, size = [], 0
        if self.pings.is_owed:
            parts.append(self.pings.take_echo())
        while self.controls and size < room:
            control = self.controls.popleft()
            is_long = len(self.long) > 0 or (len(control) > max(room, SEGMENT) and room < PLENTY)
            if is_long and control[0] == Kind.INTEREST:
                self.long.add(control)
                continue
            parts.append(control)
            size += len(control)
        if self.long and size < room:
            # half of the room is for data, if there are any
            parts.append(self.long.next(max(SEGMENT, min(PLENTY, (room - size) // 2))))
            size += len(parts[-1])
        if self.phase is Phase.UP and self.link is not None and not self.controls:
            self.link.fill(parts, room - size, now)
        if not parts:
            return b""
        self.sent_at = now
        data = b"".join(parts)
        is_packed = self.packer is not None and room < PLENTY and self.phase is Phase.UP
        return self.packer.pack(data) if is_packed and self.packer is not None else data

    def unpack(self, body: bytes) -> Iterator[tuple[Kind, bytes]]:
        """The frames that the peer has compressed into one."""
        if self.unpacker is None:
            self.unpacker = Unpacker()
        return self.unpacked.take(self.unpacker.unpack(body))

    @property
    def has_more(self) -> bool:
        return (
            bool(self.controls)
            or len(self.long) > 0
            or self.pings.is_owed
            or (self.phase is Phase.UP and self.link is not None and self.link.has_more)
        )


class Link:
    """Everything about one peer that survives a connection."""

    def __init__(self, peer: int, patience: Patience, counts: Counts) -> None:
        self.peer = peer
        self._patience = patience
        self._counts = counts
        self.meter = Meter()
        #: The one connection that counts; None while there is none.
        self.connection: Connection | None = None
        #: What the peer last said of itself, and the last number of that start of it that came.
        self.incarnation = self.life = self.start = 0
        #: Bytes of the longest frame that it takes.
        self.longest = LARGEST
        self.received = 0
        #: Received numbers and bytes that are not acknowledged.
        self._acknowledged = 0
        self._unacknowledged_bytes = 0
        self.is_ack_due = False
        #: The last number given to a frame of ours.
        self._number = 0
        #: Sent and not acknowledged, by ascending number; while the link is down, also what was kept without one (0).
        self._custody: deque[tuple[int, Numbered]] = deque()
        self._custody_bytes = 0
        #: What waits to be sent.
        self.line = Line(counts, patience)

    @property
    def is_up(self) -> bool:
        return self.connection is not None and self.connection.phase is Phase.UP

    @property
    def has_more(self) -> bool:
        """Whether there is something to write and the peer has not too much unacknowledged already."""
        return self.is_ack_due or (not self.line.is_empty and self._custody_bytes < self._patience.custody_bytes)

    def __len__(self) -> int:
        """Frames that are here: sent and not acknowledged, or waiting."""
        return len(self._custody) + len(self.line)

    @property
    def held_bytes(self) -> int:
        """What is kept in memory for it: sent and not acknowledged, waiting, and what has come in pieces."""
        begun = 0 if self.connection is None else self.connection.gathering.held
        return self._custody_bytes + sum(self.line.bytes) + begun

    @property
    def waiting(self) -> list[tuple[int, int]]:
        """By level, frames that wait to be sent, and their bytes."""
        return list(zip(self.line.frames, self.line.level_bytes, strict=True))

    def under_way(self, level: int) -> Iterator[Numbered]:
        """What of a level the peer will have, unless the link is lost, which hands it out: it waits, or was sent.

        What is kept while the link is down is not among it: nobody knows when that goes on.
        """
        if self.is_up:
            yield from (item for _number, item in self._custody if item.level == level)
            yield from self.line.assured(level)

    # -- sending

    def offer(self, item: Numbered, now: float) -> bool:
        """Have something sent; False if too much of its kind waits already, which is for its origin to know."""
        if item.size > self.longest and isinstance(item, Data) and self.line.takes(item):
            item = self._without_long(item, now)
        if self.line.push(item, now):
            return True
        self._counts.link_full += 1
        return False

    def _without_long(self, item: Data, now: float) -> Data:
        """A frame with empty places where something is longer than the peer takes."""
        long = tuple(parcel for parcel in item.payloads if len(parcel) + FRAME > self.longest)
        if not long:
            return item
        self._counts.too_long += len(long)
        lost = item.to(item.destinations, item.path)
        lost.payloads = long
        self._patience.dropped(lost, Drop.TOO_LARGE, now)
        short = item.to(item.destinations, item.path)
        short.payloads = tuple(b"" if len(parcel) + FRAME > self.longest else parcel for parcel in item.payloads)
        return short

    def fill(self, parts: list[bytes], room: int, now: float) -> None:
        """Add what goes next: an acknowledgement that is due, then the most urgent."""
        line = self.line
        if self.received > self._acknowledged and (self.is_ack_due or not line.is_empty):
            self._acknowledged, self._unacknowledged_bytes = self.received, 0
            parts.append(frame(Kind.HOP_ACK, put(self.received)))
        self.is_ack_due = False
        while room > 0 and self._custody_bytes < self._patience.custody_bytes:
            item = line.pop(room, now)
            if item is None:
                return
            if isinstance(item, Segment):
                whole = item.item
                if item.is_last:
                    self._keep_sent(whole)
                    self.meter.left(whole, whole.level, whole.size)
                parts.append(item.frame(self._number))
                room -= len(parts[-1])
            else:
                self._keep_sent(item)
                pieces = numbered(self._number, item, now)
                parts += pieces
                written = sum(map(len, pieces))
                self.meter.left(item, item.level, written)
                room -= written
        line.settle(now)

    def _keep_sent(self, item: Numbered) -> None:
        """Something leaves under the next number, and is kept until the peer says that it has come."""
        self._number += 1
        self._custody.append((self._number, item))
        self._custody_bytes += item.size

    def acknowledged(self, number: int) -> None:
        """The peer has everything up to a number: it is the peer's to carry now."""
        if number > self._number:
            raise BadFrame(f"an acknowledgement of {number}, and only {self._number} were sent")
        while self._custody and self._custody[0][0] <= number:
            self._custody_bytes -= self._custody.popleft()[1].size

    # -- receiving

    def arrived(self, number: int, size: int) -> bool:
        """Note a number that came; False is a gap.  An acknowledgement becomes due at once after many bytes."""
        if number != self.received + 1:
            return False
        self.received = number
        self._unacknowledged_bytes += size
        if self._unacknowledged_bytes >= self._patience.ack_bytes:
            self.is_ack_due = True
        return True

    @property
    def owes_ack(self) -> bool:
        return self.received > self._acknowledged

    # -- connections

    def greeted(self, connection: Connection, hello: Hello) -> None:
        """A peer has said who it is on a new connection, and whoever had an older one has let go of it."""
        self.connection = connection
        connection.link = self
        if hello.start != self.start:
            self.start, self.received = hello.start, 0
        self.incarnation, self.life, self.longest = hello.incarnation, hello.life, hello.longest
        self._acknowledged, self._unacknowledged_bytes, self.is_ack_due = self.received, 0, False

    def resumed(self, received: int) -> None:
        """The peer says what it has: that is forgotten, everything else is sent again behind it."""
        again = [item for number, item in self._custody if not 0 < number <= received]
        self._counts.resent_on_link += len(again)
        self._custody.clear()
        self._custody_bytes = 0
        self._number = received
        self.line.take_back(again)

    def hand_out(self) -> list[tuple[int, Numbered]]:
        """Everything that is here, with its number if it was sent: to be carried another way, or kept."""
        items = [*self._custody, *((0, item) for item in self.line.drain())]
        self._custody.clear()
        self._custody_bytes = 0
        return items

    def keep(self, number: int, item: Data) -> None:
        """Hold something that has no other way until the peer is back."""
        self._custody.append((number, item))
        self._custody_bytes += item.size

    @property
    def kept_bytes(self) -> int:
        """What waits here, or was not acknowledged, in bytes."""
        return self._custody_bytes + sum(self.line.bytes)

    def check(self) -> None:
        """What always holds, for tests."""
        numbers = [number for number, _item in self._custody]
        assert not self.is_up or numbers == sorted(set(numbers)), numbers
        assert not numbers or numbers[-1] <= self._number
        assert self._acknowledged <= self.received
        self.line.check()
