"""The exact digest: the boxes themselves."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from tieline.match.box import Box
from tieline.match.merge.errors import BadDigest

#: The first byte of this level.
LEVEL: Final = b"B"
#: Number of attributes, number of boxes; then the lower and the upper corner of each.
_HEAD: Final = struct.Struct("<BI")


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
        return len(LEVEL) + _HEAD.size + len(self.boxes) * 16 * self.dimensions

    def may_want(self, point: Sequence[float]) -> bool:
        return any(box.contains(point) for box in self.boxes)

    def fits(self, dimensions: int) -> bool:
        return not self.boxes or dimensions == self.dimensions

    def encode(self) -> bytes:
        corners = struct.Struct(f"<{2 * self.dimensions}d")
        head = LEVEL + _HEAD.pack(self.dimensions, len(self.boxes))
        return head + b"".join(corners.pack(*box.lo, *box.hi) for box in self.boxes)

    @classmethod
    def decode(cls, data: bytes) -> BoxDigest:
        """A digest from what follows its first byte."""
        if len(data) < _HEAD.size:
            raise BadDigest("a digest ends before its boxes")
        dimensions, number = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        # Boxes over no attribute take no room, so their number would be anybody's claim.
        if len(body) != number * 16 * dimensions or (number > 1 and not dimensions):
            raise BadDigest(f"a digest announces {number} boxes of {dimensions} attributes in {len(body)} bytes")
        corners = struct.Struct(f"<{2 * dimensions}d")
        rows = corners.iter_unpack(body) if dimensions else [()] * number
        boxes = [Box(tuple(row[:dimensions]), tuple(row[dimensions:])) for row in rows]
        if any(math.isnan(bound) for box in boxes for corner in box for bound in corner):
            raise BadDigest("a digest has a box without bounds")
        return cls(boxes)
