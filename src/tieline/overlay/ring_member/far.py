"""One other broker of a ring: what waits for it, what it has not acknowledged, and how much of it has come here.

What waits goes by urgency: what brokers say about the ring itself first, then publications by their level, the highest
first; of every ten messages one is of the least urgent that wait, so nothing waits for ever.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from tieline.overlay.frames.frame import LEVELS, is_assured, level_of
from tieline.overlay.ring.messages import Peer, lane_in

#: Ranks: the levels, and above them what is about the ring itself.
_OF_THE_RING: Final = LEVELS
#: Of so many messages one is the least urgent.
_FLOOR: Final = 10


class Said(NamedTuple):
    """A message for another broker."""

    data: bytes
    #: When it was given.
    at: float
    #: Its urgency among what waits, and whether it need not be brought.
    rank: int
    is_lossy: bool


def said(data: bytes, now: float) -> Said:
    """A message, with what its lane says of it."""
    lane = lane_in(data)
    if lane is None:
        return Said(data, now, _OF_THE_RING, is_lossy=False)
    return Said(data, now, level_of(lane), is_lossy=not is_assured(lane))


def is_publication(each: Said) -> bool:
    """Whether it is not about the ring itself."""
    return each.rank < _OF_THE_RING


class Waiting:
    """Messages that have not been written, by their urgency."""

    __slots__ = ("_by_rank", "_turn", "bytes", "count")

    def __init__(self) -> None:
        self._by_rank: list[deque[Said]] = [deque() for _ in range(_OF_THE_RING + 1)]
        self._turn = 0
        self.bytes = 0
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def put(self, each: Said) -> None:
        """One more, behind those of its rank."""
        self._by_rank[each.rank].append(each)
        self.bytes += len(each.data)
        self.count += 1

    def pop(self) -> Said:
        """The next one; there is one."""
        self._turn += 1
        is_for_the_least = self._turn % _FLOOR == 0
        order = self._by_rank if is_for_the_least else reversed(self._by_rank)
        found = next(queue for queue in order if queue).popleft()
        self.bytes -= len(found.data)
        self.count -= 1
        return found

    def oldest(self) -> float:
        """When what waits longest was given; there is something."""
        return min(queue[0].at for queue in self._by_rank if queue)

    def clear(self) -> list[Said]:
        """Everything, the most urgent first; nothing waits any more."""
        found = [each for queue in reversed(self._by_rank) for each in queue]
        for queue in self._by_rank:
            queue.clear()
        self.bytes = self.count = 0
        return found


class Far:
    """Another broker, whether it is connected or not."""

    __slots__ = (
        "handle",
        "heard_at",
        "life",
        "number",
        "peer",
        "received",
        "unacknowledged_bytes",
        "used_at",
        "waiting",
        "written",
    )

    def __init__(self, peer: Peer, now: float) -> None:
        self.peer = peer
        #: As it has said; 0 if it has said nothing yet.
        self.life = 0
        #: Of the connection on which both have said who they are; 0 if there is none.
        self.handle = 0
        self.waiting = Waiting()
        #: What was written and is not acknowledged, and the number of the last of it.
        self.written: deque[Said] = deque()
        self.number = 0
        self.unacknowledged_bytes = 0
        #: How many of its messages have come.
        self.received = 0
        #: When anything came from it, and when it was last given or brought a message.
        self.heard_at = self.used_at = now

    def __repr__(self) -> str:
        return f"<Far {self.peer!r} {len(self.waiting)} wait, {len(self.written)} not acknowledged>"

    @property
    def owes_nothing(self) -> bool:
        """Whether nothing waits for it, here or on the way."""
        return not self.waiting and not self.written

    def since(self) -> float:
        """When the oldest that it has not acknowledged was given; there is something."""
        return self.written[0].at if self.written else self.waiting.oldest()

    def write(self) -> Said:
        """The next message, from now on one that is not acknowledged."""
        each = self.waiting.pop()
        self.written.append(each)
        self.unacknowledged_bytes += len(each.data)
        self.number += 1
        return each

    def acknowledged(self, number: int) -> bool:
        """Everything up to a number has come there; False if that many were never written."""
        begun = self.number - len(self.written)
        if not begun <= number <= self.number:
            return begun > number >= 0
        for _ in range(number - begun):
            self.unacknowledged_bytes -= len(self.written.popleft().data)
        return True

    def take_written(self) -> list[Said]:
        """What was written and not acknowledged; it is nobody's from here on, and numbers begin anew."""
        found, self.number, self.unacknowledged_bytes = [*self.written], 0, 0
        self.written.clear()
        return found
