"""Batches of bounded size, out of the groups of a range.

Theory of operation
-------------------
Groups are collected until about a batch's worth of records is there.  A :class:`Way` makes one Arrow batch of them,
with only the rows that are asked for and may be seen.  There are two ways with the same outcome: column by column with
compiled loops, which is several times as fast, and record by record, which can do everything.  What the first cannot
read goes the second.

Batches that are too large for one message are cut, and small ones wait for others, but not for ever: a reader should
hear something even if nothing is found, and may have gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieline.net.logserver.question import OffsetSpan
from tieline.net.store.reading import Group

#: Rows and bytes of one batch.
MOST_ROWS: Final = 32_768
MOST_BYTES: Final = 4 << 20
#: Records looked at before a batch leaves, however little is in it.
MOST_SEEN: Final = 65_536
#: Where a text or bytes end, in their column.
_PLACE_BYTES: Final = 4


class Found(NamedTuple):
    """What some groups have for a reader."""

    batch: pa.RecordBatch
    #: Records whose topics the reader's user may not read.
    withheld: int


class Way(Protocol):
    """How records become a batch."""

    def __call__(self, groups: Sequence[Group], span: OffsetSpan) -> Found:
        """The rows of consecutive groups that lie in a range, are asked for and may be seen."""


class Batches:
    """The batches of a range, and what has been counted on the way."""

    def __init__(self, way: Way, span: OffsetSpan) -> None:
        self._way = way
        self._span = span
        #: Rows given, and records withheld.
        self.rows = 0
        self.withheld = 0

    def of(self, groups: Iterable[Group]) -> Iterator[pa.RecordBatch]:
        """All that the groups of the range have."""
        for batch in self._joined(groups):
            self.rows += batch.num_rows
            yield batch

    def _joined(self, groups: Iterable[Group]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        rows = size = seen = 0
        for collected in _collected(groups):
            found = self._way(collected, self._span)
            self.withheld += found.withheld
            weight = found.batch.nbytes
            if waiting and (rows + found.batch.num_rows > MOST_ROWS or size + weight > MOST_BYTES):
                yield _one(waiting)
                waiting, rows, size, seen = [], 0, 0, 0
            waiting.append(found.batch)
            rows += found.batch.num_rows
            size += weight
            seen += sum(group.records for group in collected)
            if rows >= MOST_ROWS // 2 or size >= MOST_BYTES // 2 or seen >= MOST_SEEN:
                yield from _cut(_one(waiting), size)
                waiting, rows, size, seen = [], 0, 0, 0
        if rows:
            yield _one(waiting)


def _collected(groups: Iterable[Group]) -> Iterator[list[Group]]:
    """Consecutive groups that together make about one batch; the next one is guessed to be like the last."""
    held: list[Group] = []
    rows = size = 0
    for group in groups:
        held.append(group)
        rows += group.records
        size += len(group.blob)
        if rows + group.records > MOST_ROWS or size + len(group.blob) > MOST_BYTES:
            yield held
            held, rows, size = [], 0, 0
    if held:
        yield held


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _cut(batch: pa.RecordBatch, weight: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are not too large, unless one row alone is."""
    if batch.num_rows <= MOST_ROWS and weight <= MOST_BYTES:
        yield batch
        return
    ends = np.cumsum(_weights(batch))
    begin = 0
    while begin < batch.num_rows:
        before = ends[begin - 1] if begin else 0
        count = min(int(np.searchsorted(ends, before + MOST_BYTES)) + 1 - begin, MOST_ROWS)
        yield batch.slice(begin, count)
        begin += count


def _weights(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many bytes each row takes: texts and bytes exactly, with their place, the rest by its average."""
    weights = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            weights += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False) + _PLACE_BYTES
        else:
            weights += -(-column.nbytes // batch.num_rows)
    return weights
