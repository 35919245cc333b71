"""What an index of boxes owes, whatever is behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias  # Any: lists or arrays, as an index likes

from tieline.match.box import Box

#: Numbers by rows: an array of numpy, or rows of Python floats.  An index that is small has no numpy to speak of.
Rows: TypeAlias = Any
#: Whole numbers: an array of numpy, or a list.
Numbers: TypeAlias = Any


class Boxes(NamedTuple):
    """Many boxes at once: ``ids[i]`` owns the box from ``lo[i]`` to ``hi[i]``; an id may occur several times."""

    ids: Numbers
    lo: Rows
    hi: Rows


NO_BOXES = Boxes([], [], [])


class Index(Protocol):
    """Boxes of one event type, found by the points in them.

    * A box is closed and has one interval per dimension; it belongs to an id.  An id may have several boxes, equal ones
      among them.  Ids are small whole numbers from 0, dense and used again: memory grows with the greatest.
    * A point has one number per dimension, ``MISSING`` where there is none, and no NaN.
    * Answers are exact.  Each id occurs once, in no particular order.
    * Answers follow changes at once.  Whoever calls sees to it that calls do not overlap.
    """

    @property
    def dimensions(self) -> int:
        """Numbers of a point."""

    def __len__(self) -> int:
        """The number of boxes."""

    def add(self, id: int, box: Box) -> None:
        """One more box for an id."""

    def remove(self, id: int) -> None:
        """Forget an id with all its boxes; KeyError if it has none."""

    def match(self, row: Sequence[float]) -> list[int]:
        """The ids with a box that contains a point."""

    def match_batch(self, rows: Sequence[Sequence[float]]) -> tuple[list[int], list[int]]:
        """The answers for many points, one after the other: point ``i`` owns ``ids[offsets[i]:offsets[i + 1]]``."""

    def coverers(self, box: Box) -> list[int]:
        """The ids with a box that covers a box (which is not empty) all by itself."""

    def memory(self) -> int:
        """About how many bytes it occupies."""


class Rebuildable(Index, Protocol):
    """An index that another one can be made from."""

    @property
    def is_worn(self) -> bool:
        """Whether the same boxes in a new index of this kind would be faster or smaller."""

    def snapshot(self) -> Callable[[], Boxes]:
        """A copy of everything, taken quickly, as a function that has time to make boxes out of it, in any thread."""


#: Ids and slots are kept in 32 bits.
MAX_ID = 2**31 - 1


def check_box(id: int, box: Box, dimensions: int) -> None:
    """Refuse an id that no array could be indexed by, and a box of another space."""
    if not 0 <= id <= MAX_ID:
        raise ValueError(f"an id is a whole number from 0 to {MAX_ID}, not {id}")
    if not len(box.lo) == len(box.hi) == dimensions:
        raise ValueError(f"a box of this index has {dimensions} dimensions, not {len(box.lo)}")
