"""What a broker tells a neighbour about its boxes of one event type, in a given number of bytes.

Theory of operation
-------------------
A ladder of three levels; the first that fits is taken.  The *boxes* themselves, merged exactly: nothing is forwarded in
vain.  A *bitmap* of the cells that they touch, on the routing attributes.  *Intervals* of the curve through those
cells, the smallest gaps filled until there are few enough.  One bounding rectangle is not on the ladder: it costs
hardly less than the intervals and forwards nearly everything.

Every level is a superset of the boxes: cells are rounded outward and gaps only filled, so ``may_want`` is never false
for a point in one of the boxes.  It may be true for others; delivery is decided by the boxes, never by a digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from tieline.match.box import Box
from tieline.match.cover.shelf import IndexFactory
from tieline.match.merge import boxes as exactly
from tieline.match.merge import cells, ranges
from tieline.match.merge.boxes import BoxDigest
from tieline.match.merge.cells import CellDigest
from tieline.match.merge.errors import BadDigest
from tieline.match.merge.exact import merge
from tieline.match.merge.ranges import RangeDigest
from tieline.match.merge.routing import Routing

#: The bytes that a digest may take unless somebody says otherwise: a few network packets.
BUDGET: Final = 4_096


class Digest(Protocol):
    """A set of points at least as large as that of the boxes it was made of."""

    @property
    def size(self) -> int:
        """The bytes of its encoding."""

    def may_want(self, point: Sequence[float]) -> bool:
        """False only if no box contains a point, a row of all attributes of the type."""

    def fits(self, dimensions: int) -> bool:
        """Whether it can be asked about points of so many attributes."""

    def encode(self) -> bytes:
        """The bytes as which it travels to another broker."""


_LEVELS: Final[dict[bytes, Callable[[bytes], Digest]]] = {
    exactly.LEVEL: BoxDigest.decode,
    cells.LEVEL: CellDigest.decode,
    ranges.LEVEL: RangeDigest.decode,
}


def digest(
    boxes: Iterable[Box], routing: Routing, *, budget: int = BUDGET, make_index: IndexFactory | None = None
) -> Digest:
    """The finest digest of some boxes that fits into so many bytes."""
    merged = merge(boxes, make_index)
    exact = BoxDigest(merged)
    if exact.size <= budget:
        return exact
    if routing.bits <= cells.MAX_BITS:
        bitmap = CellDigest.of(merged, routing)
        if bitmap.size <= budget:
            return bitmap
    return RangeDigest.fitting(merged, routing, budget)


def decode(data: bytes, dimensions: int) -> Digest:
    """A digest that somebody sent of a type with so many attributes; BadDigest if it is none."""
    decode_level = _LEVELS.get(data[:1])
    if decode_level is None:
        raise BadDigest(f"no digest begins with {data[:1]!r}")
    found = decode_level(data[1:])
    if not found.fits(dimensions):
        raise BadDigest(f"a digest is not about a type of {dimensions} attributes")
    return found
