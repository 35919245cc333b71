"""How much of what was written has not left yet, and how much more should be given; or no more than a link carries.

Every byte given to the kernel is beyond the scheduler: on a link of 128 kbit/s, 400 kB of bulk in a socket buffer delay
an urgent message by thirteen seconds.  So once a receiver is slow, unsent plus in-flight bytes are kept below
``max(4 kB, 1.25 x delivery rate x smallest round trip)``: enough to keep the link busy, and no more.

That holds whether or not anybody has used a priority so far: the first urgent message of a broker must not find
megabytes in front of it.  A receiver of which nothing is known gets 64 kB where all messages were alike until now, and
4 kB where they were not; one that takes all of it quickly gets twice as much, and so on.

A receiver is slow when the kernel would need more than a few milliseconds to get rid of what it holds.  The rate is
measured here, from the bytes that left the buffer between two looks, because the kernel's own estimate is that of its
best moment and says nothing about a peer that has stopped reading.

What is held and how long a round trip takes is known to whoever has the buffer: a socket (:mod:`tieline.net.outq`), or
a link that is simulated (:mod:`tieline.sim.port`).

What a modem or a router in front of a thin link takes is beyond the scheduler as well, but nobody can ask it how much
it holds.  So where an operator says what a link carries, a :class:`Pacer` gives bytes as they would leave it, with what
packets add on the way, and never more than one packet ahead.
"""

from __future__ import annotations

from typing import Final, Protocol

from tieline.sched.congestion import UNKNOWN, Path

#: Least that a receiver is given.
LEAST = 4_096
#: Less than this in the kernel is not worth a look.
SMALL = LEAST // 2
#: A receiver with such an allowance is not slow.
FAST = 65_536
#: Most that is given because what was written is gone at once: it may be in the receiver's own buffer.
PROBED = 1 << 20
MOST = 1 << 30
#: Times the bandwidth-delay product.
MARGIN = 1.25
#: What the kernel may hold at any rate lasts so long: it never runs dry between two looks.
AHEAD_S = 0.005
#: When to look again while the kernel holds enough: at once if nothing is known, seldom if nothing moves.
SOON_S = 0.001
LATER_S = 0.1
#: The shortest time over which a rate is measured; acknowledgements from a thin link come in lumps.
SPAN_S = 0.05
#: Payload of a full packet, and what Ethernet, IP and TCP with timestamps add to each.
_PACKET, _HEADERS = 1_448, 66
#: Least that is given ahead, in seconds: timers are not better than that.
_PACED_S: Final = 0.005


class Buffer(Protocol):
    """Where bytes wait after they were given: it knows how many, and how far away the receiver is."""

    def count_held(self) -> int:
        """How many bytes were given and have not arrived, or are not known to have."""

    def round_trip_s(self) -> float:
        """The smallest round trip seen; 0 when unknown."""


class Outflow:
    """What one receiver has been given and has not taken yet."""

    __slots__ = (
        "_buffer",
        "_grew",
        "_held",
        "_left_grown",
        "_left_then",
        "_then",
        "_total",
        "allowance",
        "due_at",
        "path",
        "written",
    )

    def __init__(self, buffer: Buffer, first: int = LEAST) -> None:
        self._buffer = buffer
        #: Bytes written since the last look, and up to then; the owner counts the former.
        self.written = 0
        self._total = 0
        #: What the kernel held at the last look, and what it may hold.
        self._held = 0
        self.allowance = first
        #: So many bytes written since the last look mean that it is time for the next: the kernel may hold more than
        #: it should, or less than it could.
        self.due_at = 0
        self._set_due()
        #: Bytes that had left the kernel when the current measurement began, and when that was; 0 for no measurement.
        self._left_then = 0
        self._then = 0.0
        #: The same for the last time that the allowance grew.
        self._left_grown = 0
        self._grew = 0.0
        self.path = UNKNOWN

    def probe(self) -> None:
        """Right after a write: a receiver that has taken a good piece by now may have twice as much.

        On a thin link the bytes are still there; on a local one they are gone before the call returns.
        """
        self._ask()
        if not self._held and self.allowance < PROBED:
            self.allowance *= 2
        self._set_due()

    def _ask(self) -> None:
        self._held = self._buffer.count_held()
        if self._held <= self.written:
            # nothing is left of what was there before, so it may have been idle: how much left in that time says how
            # much there was to send, not how much could be
            self._then = 0.0
        self._total += self.written
        self.written = 0

    def _set_due(self) -> None:
        most = SMALL if self.allowance < FAST else self.allowance
        self.due_at = max(0, most - self._held)

    @property
    def is_slow(self) -> bool:
        """Whether the kernel is holding bytes for a receiver that should not be given many."""
        return self._held >= SMALL and self.allowance < FAST

    @property
    def is_due(self) -> bool:
        """Whether the kernel may hold more than was last seen, or less."""
        return self.written >= self.due_at

    @property
    def room(self) -> int:
        """How many more bytes the kernel should get, as far as was last seen."""
        return self.allowance - self._held - self.written

    def look(self, now: float) -> int:
        """How many more bytes the kernel should get now."""
        self._ask()
        left = self._total - self._held
        if not self._then:
            self._then = now
            self._left_then = left
        elif now - self._then >= max(SPAN_S, 2 * self.path.rtt_s):
            self._measure((left - self._left_then) / (now - self._then))
            self._then = now
            self._left_then = left
        gone = left - self._left_grown
        if gone >= self.allowance:
            # all of it left, and quickly: it may have more.  Only twice as much, since it may have gone no further than
            # into the receiver's own buffer
            if now - self._grew <= max(AHEAD_S, MARGIN * self._buffer.round_trip_s()):
                self.allowance = min(2 * self.allowance, MOST)
            self._grew = now
            self._left_grown = left
        self._set_due()
        room = self.allowance - self._held
        # a fast receiver is not served in crumbs: what it has lasts until there is room for a good piece
        return room if self.allowance < FAST or room >= self.allowance // 4 else 0

    def drained_in(self) -> float:
        """When it is worth looking again, in seconds from now."""
        if self.path is UNKNOWN:
            return SOON_S
        rate = self.path.rate
        return min(LATER_S, max(SOON_S, (self._held - self.allowance / 2) / rate)) if rate > 0 else LATER_S

    def _measure(self, rate: float) -> None:
        """Note a rate at which the kernel got rid of bytes that it held all the time: that of the link."""
        old = self.path
        smooth = rate if old is UNKNOWN else old.rate + (rate - old.rate) / 2
        self.path = path = Path(rtt_s=self._buffer.round_trip_s(), rate=max(0.0, smooth))
        self.allowance = int(max(LEAST, path.rate * AHEAD_S, MARGIN * path.rate * path.rtt_s))


class Pacer:
    """When a link of known capacity will have carried what it was given."""

    __slots__ = ("_ahead_s", "_free_at", "bytes_per_s")

    def __init__(self, bits_per_s: float) -> None:
        self.bytes_per_s = bits_per_s / 8
        self._ahead_s = max(_PACED_S, (_PACKET + _HEADERS) / self.bytes_per_s)
        self._free_at = 0.0

    def room(self, now: float) -> int:
        """How many bytes may be given now; 0 before the time that :meth:`next_at` tells."""
        ahead_s = now + self._ahead_s - self._free_at
        if ahead_s <= 0:
            return 0
        return max(1, int(min(ahead_s, self._ahead_s) * self.bytes_per_s) - _HEADERS)

    def next_at(self) -> float:
        """When something may be given again."""
        return self._free_at - self._ahead_s / 2

    def gave(self, size: int, now: float) -> None:
        """So many bytes were given."""
        packets = -(-size // _PACKET)
        self._free_at = max(now, self._free_at) + (size + packets * _HEADERS) / self.bytes_per_s
