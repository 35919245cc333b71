"""What a peer says of some broker's interest, taken in entry by entry: an interest may be thousands of subscriptions.

What is new is taken in before what is gone is let go, so that nothing that is wanted is ever missing in between, also
when the connection ends in the middle.  The version follows last, and is echoed and passed on only then.  Of one broker
one update goes on at a time; others wait for it, and are then no news any more, or the next one.
"""

from __future__ import annotations

from enum import Enum
from itertools import islice
from typing import Final

from tieline.overlay.interests.comparison import Comparison
from tieline.overlay.interests.entries import Entry, Said, SaidReader, Terms
from tieline.overlay.interests.interests import Interests

#: Entries that are read, compared and taken in at a time, and what each of them counts towards the work of a turn, in
#: hundreds of nanoseconds, beside what its condition takes.
_READ: Final = 64
_COMPARED: Final = 512
_TAKEN: Final = 8
_WORK_PER_READ: Final = 60
_WORK_PER_COMPARED: Final = 8
_WORK_PER_TAKEN: Final = 250
#: What it takes to wait for another update: all there is, so that others have their turn.
_ALL: Final = 1 << 20


class Phase(Enum):
    """What is to be done next."""

    WAITING = 0  # for another update about the same broker
    READING = 1
    COMPARING = 2
    GROWING = 3
    SHRINKING = 4
    OVER = 5


class InterestUpdate:
    """One frame about one broker's interest."""

    __slots__ = (
        "_comparison",
        "_gone",
        "_interests",
        "_new",
        "_reader",
        "_running",
        "body",
        "broker",
        "phase",
        "was_news",
    )

    def __init__(self, body: bytes, interests: Interests, running: dict[int, InterestUpdate]) -> None:
        """``running`` has the updates that go on, by broker; reads the head of the body, and may raise BadFrame."""
        self.body = body
        self._interests = interests
        self._running = running
        self._reader = SaidReader(body)
        self.broker = self._reader.broker
        self.phase = Phase.WAITING
        #: Something was taken in, which is to be passed on.
        self.was_news = False
        self._comparison: Comparison | None = None
        self._new: dict[Entry, Terms] = {}
        self._gone: set[Entry] = set()

    @property
    def head(self) -> Said:
        """What is said, without entries."""
        return self._reader.head

    def step(self) -> tuple[int, dict[Entry, Terms], frozenset[Entry]]:
        """Go on a little: what that took in units of work, and what was taken in and let go by it."""
        added: dict[Entry, Terms] = {}
        removed: frozenset[Entry] = frozenset()
        work = _ALL
        if self.phase is Phase.WAITING:
            if self.broker in self._running:
                return work, added, removed
            self._running[self.broker] = self
            self.phase = Phase.READING if self._interests.is_news(self.head) else Phase.OVER
            work = 0
        elif self.phase is Phase.READING:
            work = _WORK_PER_READ * _READ
            if self._reader.read(_READ):
                self._comparison = self._interests.compare(self.head, self._reader.added, self._reader.removed)
                self.phase = Phase.COMPARING
        elif self._comparison is not None:
            work = _WORK_PER_COMPARED * _COMPARED
            if self._comparison.step(_COMPARED):
                self._new, self._gone = self._comparison.added, self._comparison.removed
                self._comparison = None
                self.phase = Phase.GROWING
        elif self.phase is Phase.GROWING and self._new:
            added = {entry: self._new.pop(entry) for entry in list(islice(self._new, _TAKEN))}
            work = self._take(added, removed)
        elif self._gone:
            self.phase = Phase.SHRINKING
            removed = frozenset([self._gone.pop() for _ in range(min(_TAKEN, len(self._gone)))])
            work = self._take(added, removed)
        else:
            self._interests.conclude(self.broker, self.head.version)
            self.was_news = True
            self.phase = Phase.OVER
            work = 0
        if self.phase is Phase.OVER:
            self.end()
        return work, added, removed

    def _take(self, added: dict[Entry, Terms], removed: frozenset[Entry]) -> int:
        self._interests.take(self.broker, added, removed)
        return _WORK_PER_TAKEN * (len(added) + len(removed))

    def end(self) -> None:
        """Another update about the same broker may begin, whether or not this one came to its end."""
        if self._running.get(self.broker) is self:
            del self._running[self.broker]
