"""Sets of numbers as disjoint intervals: a publisher that counts needs one, however long it counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Intervals:
    """A set of integers: ``starts[i]`` to ``ends[i]``, both included, in ascending order, no two of them adjacent."""

    __slots__ = ("ends", "starts")

    def __init__(self, starts: Numbers | None = None, ends: Numbers | None = None) -> None:
        self.starts: Numbers = np.empty(0, np.int64) if starts is None else starts
        self.ends: Numbers = np.empty(0, np.int64) if ends is None else ends

    def __len__(self) -> int:
        return len(self.starts)

    def has(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Which numbers are in the set."""
        if len(self.starts) == 0:
            return np.zeros(len(numbers), bool)
        place = np.searchsorted(self.starts, numbers, side="right") - 1
        return (place >= 0) & (numbers <= self.ends[place])

    def add(self, numbers: Numbers) -> None:
        """Take numbers into the set; ascending, each once, none of them in it already."""
        if len(numbers) == 0:
            return
        breaks = np.flatnonzero(np.diff(numbers) != 1)
        starts = np.concatenate((self.starts, numbers[:1], numbers[breaks + 1]))
        ends = np.concatenate((self.ends, numbers[breaks], numbers[-1:]))
        order = np.argsort(starts)
        starts, ends = starts[order], ends[order]
        # what ends just below the next one's start becomes one with it; the subtraction cannot overflow
        apart = starts[1:] - 1 != ends[:-1]
        self.starts = np.concatenate((starts[:1], starts[1:][apart]))
        self.ends = np.concatenate((ends[:-1][apart], ends[-1:]))

    def forget_lowest(self, most: int) -> int:
        """Keep the highest ``most`` intervals; returns how many were forgotten."""
        gone = max(0, len(self) - most)
        if gone:
            self.starts, self.ends = self.starts[gone:], self.ends[gone:]
        return gone
