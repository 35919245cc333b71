"""What the broker remembers of its own numbers: a second at a time for a quarter of an hour, then in steps of ten.

Theory of operation
-------------------
Two rings of columns, one column for each name.  A number is kept in four bytes, so forty names take about 200 kB and
never more, whatever happens: who comes with a name when there are forty already is not remembered, and counted.  What
is not known is NaN in a column and a gap in a chart.  Ten seconds become one entry when they are over, as the mean of
what was known of them; of waiting times the worst counts, which a mean would hide.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Final, NamedTuple

#: Seconds in the first ring; seconds of one entry of the second, and its entries.
SECONDS: Final = 900
STEP_S: Final = 10
STEPS: Final = 360
#: Names that are remembered.
MOST_SERIES: Final = 40


class Extract(NamedTuple):
    """The last entries of one ring, copied: whoever has it may be in another thread."""

    step_s: int
    #: When each entry was, by the wall clock.
    times: list[float]
    #: By name, as long as ``times``; NaN where nothing is known.
    series: dict[str, array[float]]


class _Ring:
    """Entries of equal distance, the oldest of which make room."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._next = 0
        self.count = 0
        self._times: array[float] = array("d", [nan] * entries)
        self._columns: dict[str, array[float]] = {}

    def add(self, time: float, values: Mapping[str, float]) -> int:
        """Append one entry; how many of its names had no room."""
        place = self._next
        lost = 0
        for name, column in self._columns.items():
            column[place] = values.get(name, nan)
        for name in values:
            if name in self._columns:
                continue
            if len(self._columns) >= MOST_SERIES:
                lost += 1
                continue
            column = self._columns[name] = array("f", [nan] * self._entries)
            column[place] = values[name]
        self._times[place] = time
        self._next = (place + 1) % self._entries
        self.count = min(self.count + 1, self._entries)
        return lost

    def last(self, entries: int, step_s: int) -> Extract:
        """The newest entries, the oldest of them first."""
        wanted = min(entries, self.count)
        first = (self._next - wanted) % self._entries
        end = first + wanted
        series = {name: _stretch(column, first, end) for name, column in self._columns.items()}
        return Extract(step_s, list(_stretch(self._times, first, end)), series)


def _stretch(column: array[float], first: int, end: int) -> array[float]:
    size = len(column)
    return column[first:end] if end <= size else column[first:] + column[: end - size]


class History:
    """Both rings, fed once a second."""

    def __init__(self, worst: Iterable[str] = ()) -> None:
        """Of names that begin with one of ``worst``, ten seconds are as bad as the worst of them."""
        self._worst = tuple(worst)
        self._fine = _Ring(SECONDS)
        self._coarse = _Ring(STEPS)
        #: What ten seconds have come to so far: sum and number, or the greatest; and how many they are.
        self._sums: dict[str, tuple[float, int]] = {}
        self._collected = 0
        #: Entries that had no room, because there were too many names.
        self.lost = 0

    def __len__(self) -> int:
        return self._fine.count

    def add(self, time: float, values: Mapping[str, float]) -> None:
        """Remember what was known at one second; NaN, or a name that is missing, is a gap."""
        self.lost += self._fine.add(time, values)
        for name, value in values.items():
            if isnan(value):
                continue
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = (max(total, value), 1) if name.startswith(self._worst) else (total + value, count + 1)
        self._collected += 1
        if self._collected == STEP_S:
            self._coarse.add(time, {name: total / count for name, (total, count) in self._sums.items()})
            self._sums, self._collected = {}, 0

    def last(self, span_s: int) -> Extract:
        """The last so many seconds: each of them up to a quarter of an hour, else in steps of ten."""
        if span_s <= SECONDS:
            return self._fine.last(span_s, 1)
        return self._coarse.last(-(-span_s // STEP_S), STEP_S)
