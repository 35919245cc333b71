"""The extra header byte of the priority-QoS paper.

A listener may be configured so that every packet, in both directions, carries one byte more: it follows the Remaining
Length, is not counted by it, and holds the level in its two highest bits; the other six are reserved and ignored.
"""

from __future__ import annotations

from tieline.wire.frames import measure

#: No packet is larger than this; the limit that matters was applied when the packet was made.
_NO_LIMIT = 1 << 60


def stamp(packets: bytes, level: int) -> bytes:
    """Whole packets, each with the extra byte."""
    extra = bytes((level << 6,))
    stamped: list[bytes] = []
    pos = 0
    while pos < len(packets):
        found = measure(packets, pos, _NO_LIMIT)
        if found is None:
            break
        body, end = found
        stamped += (packets[pos:body], extra, packets[body:end])
        pos = end
    return b"".join(stamped)


def level_of(extra: int) -> int:
    """The level that an extra byte carries."""
    return extra >> 6
