"""How much of what was written the kernel still holds, and how much more it should get.

Every byte given to the kernel is beyond the scheduler: on a link of 128 kbit/s, 400 kB of bulk in a socket buffer delay
an urgent message by thirteen seconds.  So once a receiver is slow, unsent plus in-flight bytes (SIOCOUTQ) are kept
below ``max(4 kB, 1.25 x delivery rate x smallest round trip)``: enough to keep the link busy, and no more.

A receiver is slow when the kernel would need more than a few milliseconds to get rid of what it holds.  The rate is
measured here, from the bytes that left the buffer between two looks, because the kernel's own estimate is that of its
best moment and says nothing about a peer that has stopped reading.
"""

from __future__ import annotations

import struct
from array import array
from fcntl import ioctl
from socket import IPPROTO_TCP, socket

from tieline.sched.congestion import UNKNOWN, Path

_SIOCOUTQ = 0x5411
_TCP_INFO = 11
#: tcpi_min_rtt, in microseconds: its place in the structure, which has not changed since Linux 4.6.
_MIN_RTT_AT = 148
_INFO_BYTES = 152

#: Least that a slow receiver is given.
LEAST = 4_096
#: Times the bandwidth-delay product.
MARGIN = 1.25
#: Written bytes after which it is time to look again.
LOOK_AFTER = 4_096
#: A receiver is slow when what the kernel holds takes longer than this to leave.
SLOW_S = 0.005
#: The shortest time over which a rate is measured; acknowledgements from a thin link come in lumps.
SPAN_S = 0.05
#: A receiver that empties as much as this between two looks is not slow any more.
FAST = 131_072
#: No bound at all.
UNBOUNDED = 1 << 40


class OutQueue:
    """One socket's share in the kernel."""

    __slots__ = ("_allowance", "_held", "_left_then", "_sock", "_then", "_total", "is_slow", "path", "written")

    def __init__(self, sock: socket) -> None:
        self._sock = sock
        #: Bytes written since the last look, and in all.
        self.written = 0
        self._total = 0
        #: Bytes that had left the kernel at the time of the last measurement.
        self._left_then = 0
        self._then = 0.0
        self._held = 0
        #: What the kernel may hold for this receiver while it is slow.
        self._allowance = LEAST
        self.is_slow = False
        self.path = UNKNOWN

    def wrote(self, size: int) -> None:
        """Bytes were given to the kernel."""
        self.written += size
        self._total += size

    def look(self, now: float) -> int:
        """How many more bytes the kernel should get now; a very large number when the receiver is not slow."""
        self.written = 0
        answer = array("i", (0,))
        ioctl(self._sock, _SIOCOUTQ, answer)
        self._held = held = answer[0]
        left = self._total - held
        elapsed = now - self._then
        if elapsed >= SPAN_S:
            if self._then:
                self._measure((left - self._left_then) / elapsed)
            self._left_then = left
            self._then = now
        if not self.is_slow:
            if held <= LEAST or self.path is UNKNOWN or held < self.path.rate * SLOW_S:
                return UNBOUNDED
            self.is_slow = True
        if held:
            self._allowance = int(max(LEAST, MARGIN * self.path.rate * self.path.rtt_s))
        else:
            # it has taken everything before we came back: faster than we feed it, so feed it more
            self._allowance *= 2
            if self._allowance > FAST:
                self.is_slow = False
                self._allowance = LEAST
                return UNBOUNDED
        return self._allowance - held

    def drained_in(self) -> float:
        """When it is worth looking again, in seconds from now."""
        rate = self.path.rate
        return min(0.1, max(0.001, (self._held - LEAST / 2) / rate)) if rate > 0 else 0.1

    def _measure(self, rate: float) -> None:
        """Note a rate; while the kernel held something all the time, it is the link's."""
        if self._held == 0 and self.path is UNKNOWN:
            return
        old = self.path.rate
        smooth = rate if self.path is UNKNOWN else old + (rate - old) / 2
        self.path = Path(rtt_s=self._round_trip_s(), rate=max(0.0, smooth))

    def _round_trip_s(self) -> float:
        try:
            info = self._sock.getsockopt(IPPROTO_TCP, _TCP_INFO, _INFO_BYTES)
        except OSError:
            return 0.0
        if len(info) < _INFO_BYTES:
            return 0.0
        (microseconds,) = struct.unpack_from("I", info, _MIN_RTT_AT)
        return float(microseconds) * 1e-6 if microseconds < 0xFFFF_FFFF else 0.0
