"""What waits for one session in the store alone, as the broker counts it; and many small numbers in little room."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack
from typing import Final

#: The lanes of what waits in the store alone: in the order of arrival, and what is urgent and may overtake that.
PLAIN: Final = 1
AHEAD: Final = 2


class PacketIds:
    """Packet ids of a client that are taken: a set while they are few, and a bit for each once they are many."""

    __slots__ = ("_bits", "_count", "_few")

    #: Above this there is a bit for each that there can be, and what those take.
    MOST_FEW: Final = 8
    BYTES: Final = 8_192

    def __init__(self) -> None:
        self._few: set[int] = set()
        self._bits: bytearray | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, packet_id: int) -> bool:
        if self._bits is None:
            return packet_id in self._few
        return bool(self._bits[packet_id >> 3] >> (packet_id & 7) & 1)

    def __iter__(self) -> Iterator[int]:
        if self._bits is None:
            return iter(sorted(self._few))
        # whole words first: of 65,536 bits most are zero
        words = enumerate(unpack("<1024Q", self._bits))
        return iter([at << 6 | bit for at, word in words if word for bit in range(64) if word >> bit & 1])

    def add(self, packet_id: int) -> None:
        """It is taken; it may have been before."""
        if packet_id in self:
            return
        self._count += 1
        if self._bits is None and self._count <= self.MOST_FEW:
            self._few.add(packet_id)
            return
        if self._bits is None:
            self._bits = bytearray(self.BYTES)
            for each in self._few:
                self._bits[each >> 3] |= 1 << (each & 7)
            self._few = set()
        self._bits[packet_id >> 3] |= 1 << (packet_id & 7)

    def discard(self, packet_id: int) -> None:
        """It is free; it may have been before."""
        if packet_id not in self:
            return
        self._count -= 1
        if self._bits is None:
            self._few.discard(packet_id)
        elif self._count:
            self._bits[packet_id >> 3] &= 0xFF ^ (1 << (packet_id & 7))
        else:
            self._bits = None

    @property
    def bytes(self) -> int:
        """What they take, beside the session."""
        return 0 if self._bits is None else self.BYTES


class Spill:
    """What waits for one session in the store alone."""

    __slots__ = ("after", "bytes", "flows", "is_asked", "largest", "messages", "was_ahead")

    def __init__(self, flows: PacketIds | None) -> None:
        #: Messages in each lane, and the bytes of all of them, as queues count them; the largest since it began.
        self.messages = {PLAIN: 0, AHEAD: 0}
        self.bytes = self.largest = 0
        #: Where the last portion of each lane ended.
        self.after = {PLAIN: 0, AHEAD: 0}
        #: A portion was asked for and has not come.
        self.is_asked = False
        #: Something is, or was, in the lane of what may overtake.
        self.was_ahead = False
        #: Hashes of what has messages in the other lane; None if that is not known.
        self.flows = flows

    @property
    def count(self) -> int:
        """Messages in both lanes."""
        return self.messages[PLAIN] + self.messages[AHEAD]

    @property
    def lane(self) -> int:
        """The lane that is read next."""
        return AHEAD if self.messages[AHEAD] else PLAIN
