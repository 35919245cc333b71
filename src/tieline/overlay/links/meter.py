"""What passes one link, counted where it passes, and how long a ping takes there and back.

Whoever asks reads these numbers as they are; nothing is computed until then.  They last as long as the link is known,
over all its connections.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tieline.overlay.frames.fields import Reader, put
from tieline.overlay.frames.frame import LEVELS, Data, Kind, Numbered, frame

#: What a ping says: it wants to be sent back, or it was.
_ASKS: Final = 1
_ECHOES: Final = 2
#: Of the mean round trip, how much the newest one counts: as TCP has it.
_NEWEST: Final = 0.125


class Meter:
    """The numbers of one link."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "changed_at",
        "least_round_trip_s",
        "lost",
        "received",
        "received_bytes",
        "round_trip_s",
        "sent",
        "sent_bytes",
        "why",
    )

    def __init__(self) -> None:
        #: By level, numbers of streams that were sent and that came, and the bytes of their frames.
        self.sent = [0] * LEVELS
        self.sent_bytes = [0] * LEVELS
        self.received = [0] * LEVELS
        self.received_bytes = [0] * LEVELS
        #: Everything, frames without messages included.
        self.bytes_in = 0
        self.bytes_out = 0
        #: Of a ping at the head of the queue; 0 until one has come back.
        self.round_trip_s = 0.0
        self.least_round_trip_s = 0.0
        #: Since when the link has been up, or down.
        self.changed_at = 0.0
        #: How often it was lost, by the name of the reason; and the last of those reasons as a sentence.
        self.lost: Counter[str] = Counter()
        self.why = ""

    def left(self, item: Numbered, level: int, size: int) -> None:
        """A frame was written."""
        if isinstance(item, Data):
            self.sent[level] += item.count
            self.sent_bytes[level] += size

    def came(self, item: Numbered, size: int) -> None:
        """A frame has come."""
        if isinstance(item, Data):
            level = item.level
            self.received[level] += item.count
            self.received_bytes[level] += size

    def took(self, seconds: float) -> None:
        """A ping has come back."""
        if not self.round_trip_s:
            self.round_trip_s = self.least_round_trip_s = seconds
        else:
            self.round_trip_s += _NEWEST * (seconds - self.round_trip_s)
            self.least_round_trip_s = min(self.least_round_trip_s, seconds)

    def ended(self, name: str, why: str) -> None:
        """The link was lost."""
        self.lost[name] += 1
        self.why = why


class Pings:
    """The pings of one connection: one of ours is under way at a time, and one of theirs waits to be sent back.

    A flood of them is answered once for each time that something is written.
    """

    __slots__ = ("_asked_at", "_owed")

    def __init__(self) -> None:
        #: When ours was sent; None while none is under way.
        self._asked_at: float | None = None
        #: The stamp of theirs; -1 while there is none.
        self._owed = -1

    @property
    def is_under_way(self) -> bool:
        """Whether one of ours has not come back; a peer of an earlier version never sends it back."""
        return self._asked_at is not None

    @property
    def is_owed(self) -> bool:
        """Whether one of theirs is to be sent back."""
        return self._owed >= 0

    def ask(self, now: float) -> bytes:
        """A ping that wants to be sent back."""
        self._asked_at = now
        return frame(Kind.PING, put(_ASKS, _stamp(now)))

    def take_echo(self) -> bytes:
        """The ping that the other end wants back, sent back."""
        stamp, self._owed = self._owed, -1
        return frame(Kind.PING, put(_ECHOES, stamp))

    def came(self, body: bytes, now: float) -> float | None:
        """A ping has come: how long ours took, if it is that one."""
        if not body:
            return None
        reader = Reader(body)
        what, stamp = reader.integer(), reader.integer()
        if what == _ASKS:
            self._owed = stamp
        elif what == _ECHOES and self._asked_at is not None and stamp == _stamp(self._asked_at):
            took, self._asked_at = now - self._asked_at, None
            return took
        return None

    def forget(self) -> None:
        """Nothing more is written: nothing is owed."""
        self._owed = -1


def _stamp(now: float) -> int:
    """A time as a number that is different for each ping."""
    return int(now * 1e6) & ((1 << 48) - 1)
