"""The bitmap digest: one bit per cell of the routing space, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from tieline.match.box import Box
from tieline.match.merge.errors import BadDigest
from tieline.match.merge.routing import Routing

#: The first byte of this level.
LEVEL: Final = b"C"
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
        self._encoded = encoded or LEVEL + routing.encode() + zlib.compress(bitmap, 9)

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

    @property
    def size(self) -> int:
        return len(self._encoded)

    def may_want(self, point: Sequence[float]) -> bool:
        number = _number(self.routing.cell(point), self.routing.space.order)
        return bool(self._bitmap[number >> 3] & 128 >> (number & 7))

    def fits(self, dimensions: int) -> bool:
        return self.routing.fits(dimensions)

    def encode(self) -> bytes:
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
        return cls(routing, bitmap, LEVEL + data)


def _bytes(routing: Routing) -> int:
    return max(1, (1 << routing.bits) // 8)


def _number(cell: Sequence[int], order: int) -> int:
    """The number of a cell, the last attribute fastest."""
    number = 0
    for place in cell:
        number = number << order | place
    return number
