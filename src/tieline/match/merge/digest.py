"""What a broker tells a neighbour about its boxes of one event type, in a given number of bytes.

Theory of operation
-------------------
A ladder of three levels; the first that fits is taken.  The *boxes* themselves, merged exactly: nothing is forwarded in
vain.  A *bitmap* of the cells that they touch, on the routing attributes.  *Intervals* of the curve through those
cells, the smallest gaps filled until there are few enough.  One bounding rectangle is not on the ladder: it costs
hardly less than the intervals and forwards nearly everything.

Every level is a superset of the boxes: cells are rounded outward and gaps only filled, so ``may_want`` is never false
for a point in one of the boxes.  It may be true for others; delivery is decided by the boxes, never by a digest.

The coarser levels look at two or three routing attributes only: with more, cells are too many to list and too few to
tell boxes apart.  They carry their grid with them, so that both ends of a link cut the space alike whatever else they
have been told: a point must fall into the same cell on either side, or events would be lost.
"""

from __future__ import annotations

import math
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Final, Protocol

from tieline.match.box import Box
from tieline.match.cover.boxes import IndexFactory
from tieline.match.curve import Ranges, cap
from tieline.match.merge.union import merge
from tieline.match.space import Cell, Space


class BadDigest(ValueError):
    """Bytes that are no digest."""


#: Number of attributes and order; then, per attribute, its place in a row and its bounds.
_SPACE_HEAD: Final = struct.Struct("<BB")
_AXIS: Final = struct.Struct("<Hdd")


class Routing:
    """A space over some attributes of a row."""

    __slots__ = ("places", "space")

    def __init__(self, space: Space, places: Sequence[int]) -> None:
        if len(places) != space.dimensions:
            raise ValueError(f"a space of {space.dimensions} attributes needs as many places, not {len(places)}")
        self.space: Final = space
        #: Where each attribute of the space stands in a row.
        self.places: Final = tuple(places)

    @property
    def bits(self) -> int:
        """The bits of a cell's number or key."""
        return self.space.order * self.space.dimensions

    def fits(self, dimensions: int) -> bool:
        """Whether a row of so many attributes has all of these."""
        return max(self.places) < dimensions

    def cell(self, row: Sequence[float]) -> Cell:
        """The cell of a row of all attributes."""
        return self.space.cells([row[place] for place in self.places])

    def key(self, row: Sequence[float]) -> int:
        """The place of that cell on the curve."""
        return self.space.key([row[place] for place in self.places])

    def project(self, box: Box) -> Box:
        """What a box over all attributes says about these."""
        return Box(tuple(box.lo[place] for place in self.places), tuple(box.hi[place] for place in self.places))

    def encode(self) -> bytes:
        head = _SPACE_HEAD.pack(self.space.dimensions, self.space.order)
        axes = zip(self.places, self.space.bounds, strict=True)
        return head + b"".join(_AXIS.pack(place, low, high) for place, (low, high) in axes)

    @staticmethod
    def decode(data: bytes) -> tuple[Routing, bytes]:
        """A routing space and the bytes behind it."""
        if len(data) < _SPACE_HEAD.size:
            raise BadDigest("a digest ends before its space")
        dimensions, order = _SPACE_HEAD.unpack_from(data)
        end = _SPACE_HEAD.size + dimensions * _AXIS.size
        if len(data) < end:
            raise BadDigest("a digest ends within its space")
        axes = list(_AXIS.iter_unpack(data[_SPACE_HEAD.size : end]))
        try:
            space = Space([(low, high) for _, low, high in axes], order)
        except ValueError as error:
            raise BadDigest(f"a digest has an impossible space: {error}") from None
        return Routing(space, [place for place, _, _ in axes]), data[end:]


#: The first byte of this level.
_BOXES: Final = b"B"
#: Number of attributes, number of boxes; then the lower and the upper corner of each.
_BOXES_HEAD: Final = struct.Struct("<BI")


class BoxDigest:
    """Wants exactly the points of its boxes."""

    __slots__ = ("boxes", "dimensions")

    def __init__(self, boxes: Iterable[Box]) -> None:
        self.boxes: Final = tuple(boxes)
        #: The attributes of every box; none if there is no box.
        self.dimensions: Final = len(self.boxes[0].lo) if self.boxes else 0

    def __repr__(self) -> str:
        return f"<BoxDigest {len(self.boxes)} boxes, {self.size} bytes>"

    @property
    def size(self) -> int:
        return len(_BOXES) + _BOXES_HEAD.size + len(self.boxes) * 16 * self.dimensions

    def may_want(self, point: Sequence[float]) -> bool:
        return any(box.contains(point) for box in self.boxes)

    def fits(self, dimensions: int) -> bool:
        return not self.boxes or dimensions == self.dimensions

    def encode(self) -> bytes:
        corners = struct.Struct(f"<{2 * self.dimensions}d")
        head = _BOXES + _BOXES_HEAD.pack(self.dimensions, len(self.boxes))
        return head + b"".join(corners.pack(*box.lo, *box.hi) for box in self.boxes)

    @classmethod
    def decode(cls, data: bytes) -> BoxDigest:
        """A digest from what follows its first byte."""
        if len(data) < _BOXES_HEAD.size:
            raise BadDigest("a digest ends before its boxes")
        dimensions, number = _BOXES_HEAD.unpack_from(data)
        body = data[_BOXES_HEAD.size :]
        # Boxes over no attribute take no room, so their number would be anybody's claim.
        if len(body) != number * 16 * dimensions or (number > 1 and not dimensions):
            raise BadDigest(f"a digest announces {number} boxes of {dimensions} attributes in {len(body)} bytes")
        corners = struct.Struct(f"<{2 * dimensions}d")
        rows = corners.iter_unpack(body) if dimensions else [()] * number
        boxes = [Box(tuple(row[:dimensions]), tuple(row[dimensions:])) for row in rows]
        if any(math.isnan(bound) for box in boxes for corner in box for bound in corner):
            raise BadDigest("a digest has a box without bounds")
        return cls(boxes)


#: The first byte of this level.
_CELLS: Final = b"C"
#: The bits of a cell's number, at most: a bitmap of 128 KiB before it is compressed.
MAX_BITS: Final = 20

#: Cells as the digits of a binary number, which Python packs eight to a byte.
_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")


class CellDigest:
    """Wants the points of every cell that one of its boxes touches."""

    __slots__ = ("_bitmap", "_encoded", "routing")

    def __init__(self, routing: Routing, bitmap: bytes, encoded: bytes | None = None) -> None:
        self.routing: Final = routing
        #: A bit per cell, the first cell first; cells are numbered with the last attribute fastest.
        self._bitmap = bitmap
        #: Made when somebody asks: sums over many brokers are joined far more often than they travel.
        self._encoded = encoded

    def __repr__(self) -> str:
        cells = int.from_bytes(self._bitmap, "big").bit_count()
        return f"<CellDigest {cells} of {1 << self.routing.bits} cells, {self.size} bytes>"

    @classmethod
    def of(cls, boxes: Iterable[Box], routing: Routing) -> CellDigest:
        """The cells of some boxes, which are not empty."""
        if routing.bits > MAX_BITS:
            raise ValueError(f"a bitmap of 2**{routing.bits} cells is too large; at most 2**{MAX_BITS}")
        order = routing.space.order
        # Fewer than eight cells make a byte all the same.
        cells = bytearray(_bytes(routing) * 8)
        for box in set(map(routing.project, boxes)):
            lo, hi = routing.space.box_cells(box)
            run = b"\1" * (hi[-1] - lo[-1] + 1)
            for row in product(*(range(first, last + 1) for first, last in zip(lo[:-1], hi[:-1], strict=True))):
                at = _number((*row, lo[-1]), order)
                cells[at : at + len(run)] = run
        return cls(routing, int(cells.translate(_DIGITS), 2).to_bytes(_bytes(routing), "big"))

    def joined(self, other: CellDigest) -> CellDigest:
        """The cells of both, which are cut alike."""
        if other.routing.space.bounds != self.routing.space.bounds or other.routing.bits != self.routing.bits:
            raise ValueError("cells of two grids cannot be joined")
        both = int.from_bytes(self._bitmap, "big") | int.from_bytes(other._bitmap, "big")
        return CellDigest(self.routing, both.to_bytes(len(self._bitmap), "big"))

    def covers(self, other: CellDigest) -> bool:
        """Whether every cell of another digest, which is cut alike, is among these."""
        ours, theirs = int.from_bytes(self._bitmap, "big"), int.from_bytes(other._bitmap, "big")
        return ours | theirs == ours

    @property
    def size(self) -> int:
        return len(self.encode())

    def may_want(self, point: Sequence[float]) -> bool:
        number = _number(self.routing.cell(point), self.routing.space.order)
        return bool(self._bitmap[number >> 3] & 128 >> (number & 7))

    def fits(self, dimensions: int) -> bool:
        return self.routing.fits(dimensions)

    def encode(self) -> bytes:
        if self._encoded is None:
            self._encoded = _CELLS + self.routing.encode() + zlib.compress(self._bitmap, 9)
        return self._encoded

    @classmethod
    def decode(cls, data: bytes) -> CellDigest:
        """A digest from what follows its first byte."""
        routing, compressed = Routing.decode(data)
        if routing.bits > MAX_BITS:
            raise BadDigest(f"a bitmap of 2**{routing.bits} cells is too large")
        unpacker = zlib.decompressobj()
        try:
            # The room is given, so that a small message cannot unfold into a large one.
            bitmap = unpacker.decompress(compressed, _bytes(routing))
        except zlib.error:
            raise BadDigest("a bitmap cannot be decompressed") from None
        if len(bitmap) != _bytes(routing) or not unpacker.eof or unpacker.unused_data:
            raise BadDigest("a bitmap has another size than its space")
        return cls(routing, bitmap, _CELLS + data)


def _bytes(routing: Routing) -> int:
    return max(1, (1 << routing.bits) // 8)


def _number(cell: Sequence[int], order: int) -> int:
    """The number of a cell, the last attribute fastest."""
    number = 0
    for place in cell:
        number = number << order | place
    return number


#: The first byte of this level.
_RANGES: Final = b"R"
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
        return len(_RANGES) + len(self.routing.encode()) + len(self.ranges) * 2 * _width(self.routing)

    def may_want(self, point: Sequence[float]) -> bool:
        key = self.routing.key(point)
        at = bisect_right(self._firsts, key) - 1
        return at >= 0 and key <= self.ranges[at][1]

    def fits(self, dimensions: int) -> bool:
        return self.routing.fits(dimensions)

    def encode(self) -> bytes:
        width = _width(self.routing)
        ends = b"".join(end.to_bytes(width, "little") for ends in self.ranges for end in ends)
        return _RANGES + self.routing.encode() + ends

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
    _BOXES: BoxDigest.decode,
    _CELLS: CellDigest.decode,
    _RANGES: RangeDigest.decode,
}


def digest(
    boxes: Iterable[Box], routing: Routing, *, budget: int = BUDGET, make_index: IndexFactory | None = None
) -> Digest:
    """The finest digest of some boxes that fits into so many bytes."""
    merged = merge(boxes, make_index)
    exact = BoxDigest(merged)
    if exact.size <= budget:
        return exact
    if routing.bits <= MAX_BITS:
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
