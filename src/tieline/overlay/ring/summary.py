"""What a broker or a whole arc of the ring wants, in few bytes, and never too little.

Filters are wanted with all their messages: those without a condition, and those whose condition no declared event type
makes a box of, since a hop does not look into payloads.  Of each declared type there is a digest of boxes.  The filter
beside a box is left out: messages of one type have their topics in common, and the last hop decides exactly.

A summary may also say *everything*: that is what is believed of an arc of which nothing is known for certain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from tieline.match.cover.filters import covers as filter_covers
from tieline.match.merge.digest import BadDigest, BoxDigest, CellDigest
from tieline.match.merge.digest import decode as decode_digest
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.ring.events import MOST_ATTRIBUTES, Event
from tieline.wire.errors import Violation
from tieline.wire.topics import check_filter, matches

#: What is told of the boxes of one type.
Level = BoxDigest | CellDigest
#: Filters and types that a peer may put into one summary, and levels of a filter.
_MOST_FILTERS: Final = 4_096
_MOST_TYPES: Final = 1_024
_LEVELS: Final = 256
_EVERYTHING: Final = 1


class Summary:
    """A set of events at least as large as what it stands for; it never changes."""

    __slots__ = ("_encoded", "filters", "is_everything", "types")

    def __init__(
        self,
        filters: Collection[str] = (),
        types: Mapping[str, Level] = MappingProxyType({}),
        *,
        is_everything: bool = False,
    ) -> None:
        self.filters: Final = frozenset(filters)
        self.types: Final = types
        self.is_everything: Final = is_everything
        self._encoded: bytes | None = None

    def __repr__(self) -> str:
        if self.is_everything:
            return "<Summary everything>"
        return f"<Summary {sorted(self.filters)} {dict(self.types)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summary) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())

    @property
    def is_empty(self) -> bool:
        return not (self.filters or self.types or self.is_everything)

    def wants(self, event: Event) -> bool:
        """False only if nobody behind it wants an event."""
        if self.is_everything:
            return True
        level = self.types.get(event.type)
        # a point of another length comes from somebody who has declared the type otherwise: the last hop decides
        if level is not None and (not level.fits(len(event.point)) or level.may_want(event.point)):
            return True
        return bool(self.filters) and _any_matches(self.filters, event.topic)

    def covers(self, other: Summary) -> bool:
        """Whether all that another one wants is wanted here; a false no costs a message, and there is no false yes."""
        if self.is_everything or other.is_everything:
            return self.is_everything
        if any(_level_misses(self.types.get(name), level) for name, level in other.types.items()):
            return False
        missing = other.filters - self.filters
        return all(any(filter_covers(wide, narrow) for wide in self.filters) for narrow in missing)

    def encode(self) -> bytes:
        """As it travels; equal summaries have equal bytes."""
        if self._encoded is None:
            parts = [put(_EVERYTHING if self.is_everything else 0, len(self.filters))]
            parts += [put_bytes(filter.encode()) for filter in sorted(self.filters)]
            parts.append(put(len(self.types)))
            for name, level in sorted(self.types.items()):
                attributes = level.dimensions if isinstance(level, BoxDigest) else 0
                parts += (put_bytes(name.encode()), put(attributes), put_bytes(level.encode()))
            self._encoded = b"".join(parts)
        return self._encoded

    @property
    def size(self) -> int:
        """The bytes of its encoding."""
        return len(self.encode())

    @staticmethod
    def read(reader: Reader) -> Summary:
        """A summary from a peer; :class:`BadFrame` if it is none."""
        flags = reader.integer()
        if flags > _EVERYTHING:
            raise BadFrame(f"a summary with the flags {flags}")
        filters = {_read_filter(reader) for _ in range(_bounded(reader.count(), _MOST_FILTERS, "filters"))}
        types = {}
        for _ in range(_bounded(reader.count(), _MOST_TYPES, "types")):
            name, attributes, data = reader.text(), reader.integer(), reader.raw()
            types[name] = _read_level(data, attributes)
        return Summary(filters, types, is_everything=bool(flags))


NOTHING: Final = Summary()
EVERYTHING: Final = Summary(is_everything=True)


@lru_cache(maxsize=16_384)
def _any_matches(filters: frozenset[str], topic: str) -> bool:
    return any(matches(filter, topic) for filter in filters)


def _level_misses(ours: Level | None, theirs: Level) -> bool:
    """Whether a digest may want what ours does not."""
    if ours is None:
        return True
    if isinstance(ours, BoxDigest):
        return not isinstance(theirs, BoxDigest) or not _boxes_cover(ours, theirs)
    if isinstance(theirs, BoxDigest):
        if not ours.fits(theirs.dimensions):
            return True
        return not ours.covers(CellDigest.of(theirs.boxes, ours.routing))
    return not is_cut_alike(ours, theirs) or not ours.covers(theirs)


def _boxes_cover(ours: BoxDigest, theirs: BoxDigest) -> bool:
    held = set(ours.boxes)
    return all(box in held or any(mine.covers(box) for mine in ours.boxes) for box in theirs.boxes)


def is_cut_alike(one: CellDigest, other: CellDigest) -> bool:
    """Whether two digests have the same grid, so that their cells mean the same."""
    return one.routing is other.routing or one.routing.encode() == other.routing.encode()


def _bounded(count: int, most: int, what: str) -> int:
    if count > most:
        raise BadFrame(f"a summary of {count} {what}")
    return count


def _read_filter(reader: Reader) -> str:
    filter = reader.text()
    try:
        check_filter(filter, _LEVELS)
    except Violation as error:
        raise BadFrame(f"a summary: {error}") from None
    return filter


def _read_level(data: bytes, attributes: int) -> Level:
    if attributes > MOST_ATTRIBUTES:
        raise BadFrame(f"a digest of {attributes} attributes")
    try:
        level = decode_digest(data, attributes or MOST_ATTRIBUTES)
    except BadDigest as error:
        raise BadFrame(f"a summary: {error}") from None
    if not isinstance(level, BoxDigest | CellDigest):
        raise BadFrame("a digest of no level that is known")
    return level
