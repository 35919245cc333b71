"""How fast a link of known capacity is given bytes: no faster than it carries them, so that nothing waits behind it.

What a modem or a router in front of a thin link takes is beyond the scheduler, like what the kernel takes
(:mod:`tieline.sched.outflow`), but nobody can ask it how much it holds.  So where an operator says what a link carries,
bytes are given as they would leave it, with what packets add on the way, and never more than one packet ahead.
"""

from __future__ import annotations

from typing import Final

#: Payload of a full packet, and what Ethernet, IP and TCP with timestamps add to each.
_PACKET, _HEADERS = 1_448, 66
#: Least that is given ahead, in seconds: timers are not better than that.
_AHEAD_S: Final = 0.005


class Pacer:
    """When a link of known capacity will have carried what it was given."""

    __slots__ = ("_ahead_s", "_free_at", "bytes_per_s")

    def __init__(self, bits_per_s: float) -> None:
        self.bytes_per_s = bits_per_s / 8
        self._ahead_s = max(_AHEAD_S, (_PACKET + _HEADERS) / self.bytes_per_s)
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
