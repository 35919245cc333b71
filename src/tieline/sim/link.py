"""One direction of a virtual connection: what is written at one end can be read at the other, later.

Theory of operation.  A link is what TCP makes of a line: bytes arrive in order, once, or not at all.  They wait in the
sender's buffer (``unsent``), leave it in segments at the rate of the line (``flying``), and wait in the receiver's
buffer (``unread``) until somebody reads them.  The receiver tells the sender how far the bytes have come and how much
more there is room for, and that news takes the delay of the way back.  Until it comes the sender's kernel holds the
bytes, and a receiver that does not read stops the sender once both buffers are full.

A line can fall silent: bytes on it have to be sent again when it speaks, as TCP would, and nobody is told.  It can be
broken: what has not arrived never will, and the receiver sees the end.  It can lose segments and let one overtake
another, by chances that come in from outside: a lost one is sent again after a while, which doubles each time, and the
receiver is shown nothing before its turn.  So loss and reordering are delay for the one segment and for all behind it.
There is no slow start, and news of the receiver takes no room on the line and is not lost: real lines do that besides.

Always: ``written == read + len(unread) + flying + unsent + lost``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from tieline.core.timers import Timer
from tieline.sim.clock import Clock

#: How many bytes leave together, of so many that could: chance, if it is wanted, comes in from outside.
Split = Callable[[int], int]
#: A number from 0 up to 1, another one each time.
Chance = Callable[[], float]
#: A segment that was lost so often is given up, and the connection with it.
_TRIES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What one direction of a connection is like."""

    delay_s: float = 0.0
    #: Bytes per second.
    rate: float = inf
    #: Bytes that the sender's kernel holds before it takes no more.
    buffer: int = 262_144
    #: Bytes that the receiver's kernel holds for a receiver that does not read.
    window: int = 65_536
    #: Bytes that leave together, at most; where there is no rate, everything there is room for.
    segment: int = 1_448
    #: The part of the segments that gets lost; each time it is sent again after ``retry_s``, then twice that, and so
    #: on.
    loss: float = 0.0
    retry_s: float = 0.2
    #: A segment takes up to so much longer than ``delay_s``; it may so overtake others, which are waited for.
    jitter_s: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.loss < 1 and self.retry_s > 0 and self.jitter_s >= 0):
            raise ValueError(f"a part from 0 up to 1 may be lost, and waiting takes time: {self}")
        if not (self.rate > 0 and self.delay_s >= 0 and self.buffer > 0 and self.window > 0 and self.segment > 0):
            raise ValueError(f"nothing would ever arrive: {self}")


#: A way that takes no time.
IDEAL = Way()


@dataclass(slots=True)
class _News:
    """What the receiver tells the sender: bytes that have arrived, and up to which it may send."""

    at: float
    arrived: int
    limit: int


class VirtualLink:
    """Bytes on their way from one end to the other."""

    def __init__(
        self, clock: Clock, way: Way = IDEAL, *, split: Split | None = None, chance: Chance | None = None
    ) -> None:
        """``chance`` decides what is lost and what is late; without it nothing is."""
        self._clock = clock
        self._chance = chance
        #: May be replaced at any time; what has left already travels as before.
        self.way = way
        self._split = split
        #: The other direction, by which news come back; without one they take as long as the bytes.
        self.back: VirtualLink | None = None
        #: Called when there is something to read, or the end has come.
        self.on_readable: Callable[[], None] | None = None
        #: Called when there is room again for a sender whose last write was not taken whole.
        self.on_writable: Callable[[], None] | None = None
        #: Sees everything that arrives, with its time: somebody who listens at the line.
        self.tap: Callable[[float, bytes], None] | None = None
        #: Bytes that were taken from the sender, that the receiver has read, and that never will be.
        self.written = self.read_bytes = self.lost = 0
        #: Segments that were sent again because the line had lost them, and that were there before one ahead of them.
        self.retried = self.overtaken = 0
        self._unsent = bytearray()
        self._flying: deque[bytes] = deque()
        self.unread = bytearray()
        #: Bytes that have left, that have arrived, and of which the sender knows that they have.
        self._sent = self._arrived = self._known = 0
        #: Up to which byte the sender may send, as far as it knows.
        self._limit = way.window
        self._news: _News | None = None
        #: The news that a silent way back has kept.
        self._kept: _News | None = None
        #: Set while a segment is being put on the line.
        self._leaving: Timer | None = None
        self._arrivals: deque[Timer] = deque()
        self._last_arrival = 0.0
        #: Nothing gets through at the moment.
        self.is_silent = False
        #: The sender has said that nothing more comes; that has left; that has arrived.
        self._is_closed = self._has_left = self.is_over = False
        #: The end came before everything else did.
        self.is_broken = False
        #: Nobody reads any more.
        self._is_refused = False
        #: The last write was not taken whole.
        self._is_short = False

    def __repr__(self) -> str:
        state = "over" if self.is_over else "silent" if self.is_silent else "open"
        return f"<VirtualLink {state}, {self.unsent} unsent, {self.flying} flying, {len(self.unread)} unread>"

    # -- the sender's end

    @property
    def unsent(self) -> int:
        """Bytes that have not left."""
        return len(self._unsent)

    @property
    def flying(self) -> int:
        """Bytes that have left and not arrived."""
        return sum(map(len, self._flying))

    @property
    def held(self) -> int:
        """Bytes that the sender's kernel holds: not yet sent, or not known to have arrived."""
        return self._sent + len(self._unsent) - self._known

    def write(self, data: bytes | memoryview) -> int:
        """Take what there is room for, and say how much that was; after the end everything is taken, and lost."""
        if self._is_closed:
            self.written += len(data)
            self.lost += len(data)
            return len(data)
        taken = max(0, min(len(data), self.way.buffer - self.held))
        self._is_short = taken < len(data)
        self._unsent += data[:taken]
        self.written += taken
        self._send()
        return taken

    def close(self) -> None:
        """Nothing more comes: the receiver sees the end after everything that was written."""
        self._is_closed = True
        self._send()

    def break_off(self) -> None:
        """Lose everything that has not arrived; the receiver sees the end as soon as anything gets through."""
        self._stop()
        self.lost += len(self._unsent)
        self._unsent.clear()
        self.is_broken = not self.is_over
        self.close()

    def fall_silent(self) -> None:
        """Let nothing through, and tell nobody; what is on the line goes back to where it left."""
        self.is_silent = True
        self._stop()

    def speak(self) -> None:
        """Let everything through again."""
        self.is_silent = False
        self._send()
        if self.back is not None:
            self.back.hear_kept()

    def _send(self) -> None:
        """Put on the line what may leave; with a rate, the next segment once this one has left."""
        while not self.is_silent and self._leaving is None and not self._has_left:
            size = min(len(self._unsent), self._limit - self._sent)
            if size > 0:
                size = size if self.way.rate == inf else min(size, self.way.segment)
                size = size if self._split is None else self._split(size)
                segment = bytes(self._unsent[:size])
                del self._unsent[:size]
                self._sent += size
            elif self._is_closed and not self._unsent:
                segment = b""
                self._has_left = True
            else:
                break
            self._flying.append(segment)
            if self.way.rate == inf:
                self._let_fly()
            else:
                self._leaving = self._clock.after(len(segment) / self.way.rate, self._left)

    def _left(self, now: float) -> None:
        self._leaving = None
        self._let_fly()
        self._send()

    def _let_fly(self) -> None:
        """The newest segment is on its way; it is shown after all others, even if it is there before them."""
        there = self._clock.now + self.way.delay_s + self._late()
        self.overtaken += there < self._last_arrival
        self._last_arrival = max(self._last_arrival, there)
        self._arrivals.append(self._clock.at(self._last_arrival, self._arrive))

    def _late(self) -> float:
        """By how much chance delays a segment; one that never gets through breaks the connection."""
        way, chance = self.way, self._chance
        if chance is None or not self._flying[-1]:
            # the end comes by itself: nobody would send it again for a sender that has gone
            return 0.0
        late, again = way.jitter_s * chance() if way.jitter_s else 0.0, way.retry_s
        for _ in range(_TRIES if way.loss else 0):
            if chance() >= way.loss:
                return late
            self.retried += 1
            late += again
            again *= 2
        if way.loss:
            self._clock.after(late, self._give_up)
        return late

    def _give_up(self, now: float) -> None:
        self.break_off()

    def _stop(self) -> None:
        """Take back what is on the line."""
        self._clock.cancel(self._leaving)
        self._leaving = None
        while self._arrivals:
            self._clock.cancel(self._arrivals.pop())
        returned = b"".join(self._flying)
        self._flying.clear()
        self._unsent[:0] = returned
        self._sent -= len(returned)
        self._has_left = self.is_over
        self._last_arrival = 0.0

    def _hear(self, news: _News) -> None:
        """The sender learns how far its bytes have come."""
        if self.back is not None and self.back.is_silent:
            self._kept = news
            return
        self._known = max(self._known, news.arrived)
        self._limit = max(self._limit, news.limit)
        self._send()
        if self._is_short and self.held < self.way.buffer:
            self._is_short = False
            if self.on_writable is not None:
                self.on_writable()

    def hear_kept(self) -> None:
        """The way back speaks again."""
        news, self._kept = self._kept, None
        if news is not None:
            self._hear(news)

    # -- the receiver's end

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read, or the end."""
        return bool(self.unread) or self.is_over

    def read(self, most: int) -> bytes:
        """What has arrived, up to so many bytes; nothing if nothing has, or at the end."""
        data = bytes(self.unread[:most])
        del self.unread[:most]
        if data:
            self.read_bytes += len(data)
            self._tell()
        return data

    def refuse(self) -> None:
        """Nobody will read any more: what has arrived or still comes is lost."""
        self._is_refused = True
        self.lost += len(self.unread)
        self.unread.clear()

    def _arrive(self, now: float) -> None:
        self._arrivals.popleft()
        segment = self._flying.popleft()
        self._arrived += len(segment)
        self.is_over = not segment
        if self.tap is not None:
            self.tap(now, segment)
        if self._is_refused:
            # no news either: the sender's buffer fills, until it hears that the connection is over
            self.lost += len(segment)
            return
        self.unread += segment
        if segment:
            self._tell()
        if self.on_readable is not None:
            self.on_readable()

    def _tell(self) -> None:
        """Send news to the sender; what is told at one moment is told together."""
        limit = self.read_bytes + self.way.window
        if self._news is not None and self._news.at == self._clock.now:
            self._news.arrived, self._news.limit = self._arrived, limit
            return
        self._news = news = _News(self._clock.now, self._arrived, limit)
        way = self.way if self.back is None else self.back.way
        self._clock.after(way.delay_s, partial(self._deliver, news))

    def _deliver(self, news: _News, now: float) -> None:
        if self._news is news:
            self._news = None
        self._hear(news)
