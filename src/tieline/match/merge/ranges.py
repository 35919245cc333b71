"""The digest by key: at most so many intervals of the curve through the routing space.

The coarsest level, for links where nothing else fits; and the form that a ring of brokers needs, where keys have an
owner.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tieline.match.box import Box
from tieline.match.curve import Ranges, cap
from tieline.match.merge.errors import BadDigest
from tieline.match.merge.routing import Routing

#: The first byte of this level.
LEVEL: Final = b"R"
#: Intervals kept per box, for each that the digest may have: a gap of one box is often filled by another, so more are
#: looked at than can stay.
_SPARE: Final = 4


class RangeDigest:
    """Wants every point whose key lies in one of its intervals."""

    __slots__ = ("_firsts", "ranges", "routing")

    def __init__(self, routing: Routing, ranges: Ranges) -> None:
        self.routing: Final = routing
        #: Both ends inside, ascending, never touching each other.
        self.ranges: Final = tuple(ranges)
        self._firsts = [first for first, _ in ranges]

    def __repr__(self) -> str:
        return f"<RangeDigest {len(self.ranges)} intervals, {self.size} bytes>"

    @classmethod
    def of(cls, boxes: Iterable[Box], routing: Routing, most: int) -> RangeDigest:
        """At most so many intervals that hold the cells of some boxes, which are not empty."""
        found: Ranges = []
        for box in set(map(routing.project, boxes)):
            found.extend(routing.space.box_ranges(box, _SPARE * most))
        return cls(routing, cap(list(_union(found)), most))

    @classmethod
    def fitting(cls, boxes: Iterable[Box], routing: Routing, budget: int) -> RangeDigest:
        """As many intervals as fit into so many bytes."""
        most = (budget - cls(routing, []).size) // (2 * _width(routing))
        if most < 1:
            raise ValueError(f"{budget} bytes have no room for a single interval")
        return cls.of(boxes, routing, most)

    @property
    def size(self) -> int:
        return len(LEVEL) + len(self.routing.encode()) + len(self.ranges) * 2 * _width(self.routing)

    def may_want(self, point: Sequence[float]) -> bool:
        key = self.routing.key(point)
        at = bisect_right(self._firsts, key) - 1
        return at >= 0 and key <= self.ranges[at][1]

    def fits(self, dimensions: int) -> bool:
        return self.routing.fits(dimensions)

    def encode(self) -> bytes:
        width = _width(self.routing)
        ends = b"".join(end.to_bytes(width, "little") for ends in self.ranges for end in ends)
        return LEVEL + self.routing.encode() + ends

    @classmethod
    def decode(cls, data: bytes) -> RangeDigest:
        """A digest from what follows its first byte."""
        routing, body = Routing.decode(data)
        width = _width(routing)
        if len(body) % (2 * width):
            raise BadDigest("a digest ends within an interval")
        ends = [int.from_bytes(body[at : at + width], "little") for at in range(0, len(body), width)]
        ranges = list(zip(ends[::2], ends[1::2], strict=True))
        free = 0
        for first, last in ranges:
            if not free <= first <= last < 1 << routing.bits:
                raise BadDigest("the intervals of a digest are not in order")
            free = last + 2
        return cls(routing, ranges)


def _union(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Intervals in any order as ascending ones that do not touch."""
    run: tuple[int, int] | None = None
    for first, last in sorted(ranges):
        if run is not None and first <= run[1] + 1:
            run = (run[0], max(run[1], last))
        else:
            if run is not None:
                yield run
            run = (first, last)
    if run is not None:
        yield run


def _width(routing: Routing) -> int:
    """The bytes of one key."""
    return -(-routing.bits // 8)
