"""The routing attributes of an event type: which places of a row they have, and the grid they span.

A digest that is coarser than its boxes looks at two or three attributes only: with more, cells are too many to list and
too few to tell boxes apart.  It carries its grid with it, so that both ends of a link cut the space alike whatever else
they have been told: a point must fall into the same cell on either side, or events would be lost.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from tieline.match.box import Box
from tieline.match.merge.errors import BadDigest
from tieline.match.space import Cell, Space

#: Number of attributes and order; then, per attribute, its place in a row and its bounds.
_HEAD: Final = struct.Struct("<BB")
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
        head = _HEAD.pack(self.space.dimensions, self.space.order)
        axes = zip(self.places, self.space.bounds, strict=True)
        return head + b"".join(_AXIS.pack(place, low, high) for place, (low, high) in axes)

    @staticmethod
    def decode(data: bytes) -> tuple[Routing, bytes]:
        """A routing space and the bytes behind it."""
        if len(data) < _HEAD.size:
            raise BadDigest("a digest ends before its space")
        dimensions, order = _HEAD.unpack_from(data)
        end = _HEAD.size + dimensions * _AXIS.size
        if len(data) < end:
            raise BadDigest("a digest ends within its space")
        axes = list(_AXIS.iter_unpack(data[_HEAD.size : end]))
        try:
            space = Space([(low, high) for _, low, high in axes], order)
        except ValueError as error:
            raise BadDigest(f"a digest has an impossible space: {error}") from None
        return Routing(space, [place for place, _, _ in axes]), data[end:]
