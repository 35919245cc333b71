"""One neighbour with whom what is retained is kept equal: what it may know, and what it does not know yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tieline.core.timers import Timer
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.may import May, Right
from tieline.wire.errors import Violation
from tieline.wire.topics import check_filter

#: Filters by which a neighbour may say what it lets us read and write, and the levels of each.
_MOST_FILTERS, _LEVELS = 4_096, 256


class Terms:
    """What one end of a link lets the other one read and write, as it says itself."""

    __slots__ = ("read", "write")

    def __init__(self, read: Right, write: Right) -> None:
        self.read = read
        self.write = write


def put_terms(may: May | None) -> bytes:
    """What is said of the rights of a neighbour; nothing if it may read and write everything."""
    if may is None:
        return put(0)
    rights = (may.read, may.write)
    lists = (put(len(right.filters)) + b"".join(put_bytes(each.encode()) for each in right.filters) for right in rights)
    return put(1) + b"".join(lists)


def read_terms(reader: Reader) -> Terms | None:
    """What a neighbour lets us read and write; None if that is everything."""
    if not reader.integer():
        return None
    return Terms(_read_right(reader), _read_right(reader))


def _read_right(reader: Reader) -> Right:
    filters = [reader.text() for _ in reader.repeat()]
    if len(filters) > _MOST_FILTERS:
        raise BadFrame(f"{len(filters)} filters of a right")
    try:
        for filter_ in filters:
            check_filter(filter_, _LEVELS)
    except Violation as error:
        raise BadFrame(f"a right: {error}") from None
    return Right(filters)


class Partner:
    """A neighbour whose link is up."""

    def __init__(self, peer: int, name: str, may: May | None, epoch: int) -> None:
        self.peer = peer
        self.name = name
        #: What it may have of us; None if everything.
        self._may = may
        self.is_gone = False
        #: By which it answers to what was said since we began, and by which we answer; 0 until it has begun.
        self.epoch = epoch
        self.theirs = 0
        #: What it lets us read and write; None if everything.
        self.terms: Terms | None = None
        #: Topics that it may not know the newest write of: those that have changed, and those of this round.
        self.pending: dict[bytes, None] = {}
        self.round: dict[bytes, None] = {}
        #: Topics that it has asked for, or does not know, and buckets of which it knows nothing.
        self.wanted: dict[bytes, None] = {}
        self.buckets: deque[int] = deque()
        #: When the next round may begin.
        self.round_at = 0.0
        #: The topics of each frame that was not answered, in the order of sending.
        self.under_way: deque[tuple[bytes, ...]] = deque()
        self.touched_at = 0.0
        self.timer: Timer | None = None
        #: Buckets that differ and are to be listed, how many lists wait for an answer, and how many it may still send.
        self.differing: deque[int] = deque()
        self.listing = 0
        self.lists_left = 0
        #: Digests of what both may know, when something here was last compared, and when it may be done again.
        self.digests: list[int] | None = None
        self.is_digesting = False
        self.compare_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it has begun, so that it can be told."""
        return self.theirs != 0

    @property
    def is_plain(self) -> bool:
        """Whether both ends may know everything."""
        return self._may is None and self.terms is None

    @property
    def is_end(self) -> bool:
        """Whether it has rights, and speaks for itself alone."""
        return self._may is not None

    @property
    def is_idle(self) -> bool:
        """Whether it has been told everything, and has said that it got it."""
        return not (self.pending or self.round or self.wanted or self.buckets or self.under_way or self.differing)

    @property
    def may(self) -> May | None:
        return self._may

    def may_have(self, topic: bytes, is_ours: bool) -> bool:
        """Whether it is told of a write, which was accepted here or not."""
        if self._may is not None and not self._may.read.has(topic):
            return False
        # where we have rights ourselves, others have to speak for themselves
        return self.terms is None or (is_ours and self.terms.write.has(topic))

    def may_tell(self, topic: bytes, is_its_own: bool) -> bool:
        """Whether it may tell us of a write."""
        return self._may is None or (is_its_own and self._may.write.has(topic))

    def is_common(self, topic: bytes) -> bool:
        """Whether both ends may know of a topic: only those are compared."""
        if self._may is not None and not self._may.read.has(topic):
            return False
        return self.terms is None or self.terms.read.has(topic)

    def select(self, entries: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        """Those topics with their versions of which both ends may know."""
        if self.is_plain:
            return list(entries)
        return [entry for entry in entries if self.is_common(entry[0])]

    def add(self, topic: bytes) -> bool:
        """A topic has changed; whether that was not known."""
        if topic in self.round or topic in self.pending:
            return False
        self.pending[topic] = None
        return True

    def restart(self, epoch: int) -> None:
        """Nothing is known any more of what was under way."""
        self.epoch = epoch
        for topics in self.under_way:
            for topic in topics:
                self.pending[topic] = None
        self.under_way.clear()
        self.differing.clear()
        self.listing = self.lists_left = 0
        self.digests = None
