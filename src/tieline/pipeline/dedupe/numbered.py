"""Messages that carry ``seq``: a repeat is known exactly, across batches and restarts.

The state is a set of numbers for each publisher and run, kept as intervals.  It is bounded: a publisher whose numbers
leave ever more gaps loses its lowest intervals first, and a publisher and run that has been silent for longest is
forgotten first.  What was forgotten is taken as new when it comes again: a bound may let a repeat through, and never
takes a message for a repeat that is none.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
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


#: Intervals kept for one publisher and run, for all of them, and publishers and runs kept.
MOST_INTERVALS: Final = 1_000
MOST_TOTAL: Final = 1_000_000
MOST_RUNS: Final = 200_000

_SCHEMA: Final = pa.schema(
    [("publisher", pa.string()), ("run", pa.string()), ("start", pa.int64()), ("end", pa.int64())]
)
#: Not seen before.
NEW: Final = -1
#: Seen in an earlier batch.
BEFORE: Final = -2


class Numbered:
    """The numbers that were seen, by publisher and run; the one heard of last is last."""

    def __init__(
        self, *, most_intervals: int = MOST_INTERVALS, most_runs: int = MOST_RUNS, most_total: int = MOST_TOTAL
    ) -> None:
        self._seen: dict[tuple[str, str], Intervals] = {}
        self._most_intervals = most_intervals
        self._most_runs = most_runs
        self._most_total = most_total
        #: Intervals that were forgotten because of the bounds.
        self.forgotten = 0

    def __len__(self) -> int:
        return sum(map(len, self._seen.values()))

    def firsts(self, publishers: pa.Array, runs: pa.Array, numbers: Numbers) -> Numbers:
        """For each record, in the order of the log: the place of the record that it repeats, ``NEW`` or ``BEFORE``."""
        found = np.full(len(numbers), NEW, np.int64)
        if len(numbers) == 0:
            return found
        who, run = publishers.dictionary_encode(), runs.dictionary_encode()
        group = _codes(who) * len(run.dictionary) + _codes(run)
        # by group, then by number, then in the order of the log: the first of equals is the one that counts
        order = np.lexsort((numbers, group))
        group, sorted_numbers = group[order], numbers[order]
        bounds = np.flatnonzero(np.diff(group)) + 1
        starts, ends = np.concatenate(([0], bounds)), np.concatenate((bounds, [len(group)]))
        last_heard = np.maximum.reduceat(order, starts)
        for turn in np.argsort(last_heard):
            span = slice(starts[turn], ends[turn])
            code = int(group[starts[turn]])
            key = (
                who.dictionary[code // len(run.dictionary)].as_py(),
                run.dictionary[code % len(run.dictionary)].as_py(),
            )
            found[order[span]] = self._group(key, sorted_numbers[span], order[span])
        total = len(self)
        while len(self._seen) > self._most_runs or total > self._most_total:
            gone = len(self._seen.pop(next(iter(self._seen))))
            self.forgotten += gone
            total -= gone
        return found

    def _group(self, key: tuple[str, str], numbers: Numbers, places: Numbers) -> Numbers:
        """The same for one publisher and run, its numbers ascending."""
        seen = self._seen.pop(key, None) or Intervals()
        self._seen[key] = seen
        is_first = np.concatenate(([True], numbers[1:] != numbers[:-1]))
        first = np.maximum.accumulate(np.where(is_first, np.arange(len(numbers)), 0))
        found = np.where(is_first, NEW, places[first])
        distinct = numbers[is_first]
        old = seen.has(distinct)
        found[np.isin(numbers, distinct[old])] = BEFORE
        seen.add(distinct[~old])
        self.forgotten += seen.forget_lowest(self._most_intervals)
        return found

    def table(self) -> pa.Table:
        """The state, to be kept."""
        keys = [key for key, seen in self._seen.items() for _ in range(len(seen))]
        sets = list(self._seen.values())
        empty: Numbers = np.empty(0, np.int64)
        return pa.table(
            [
                pa.array([publisher for publisher, _run in keys], pa.string()),
                pa.array([run for _publisher, run in keys], pa.string()),
                pa.array(np.concatenate([empty, *(each.starts for each in sets)])),
                pa.array(np.concatenate([empty, *(each.ends for each in sets)])),
            ],
            schema=_SCHEMA,
        )

    def restore(self, table: pa.Table) -> None:
        """Take over a state that was kept."""
        self._seen.clear()
        starts, ends = table["start"].to_numpy(), table["end"].to_numpy()
        keys = list(zip(table["publisher"].to_pylist(), table["run"].to_pylist(), strict=True))
        begin = 0
        for place in range(1, len(keys) + 1):
            if place == len(keys) or keys[place] != keys[begin]:
                self._seen[keys[begin]] = Intervals(starts[begin:place].copy(), ends[begin:place].copy())
                begin = place


def _codes(encoded: pa.Array) -> Numbers:
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
