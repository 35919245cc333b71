"""A table made from many boxes at once: buckets, order, bits, links.

Theory of operation
-------------------
Boxes that are neighbours on a Hilbert curve are put into slots side by side.  A word of the bitmap is skipped if none
of its 64 boxes overlaps the point's buckets, so these should be boxes that overlap the same ones.  To the bitmap an
interval is its first and its last bucket, two numbers from 0 to 63; a box is a point in twice as many dimensions as it
has itself, and a Hilbert curve through them puts boxes together that agree in place *and* size.  (Measured with a
million boxes: a curve through the centres leaves twice as many words to look at, and random order takes several times
as long.)

A curve through many dimensions keeps no neighbourhood in any of them, so it runs through the most selective attributes
only: those whose intervals overlap the fewest buckets.
"""

from __future__ import annotations

from typing import Any, Final  # Any: numpy widens the packed bits as it likes

import numpy as np
from numpy.typing import NDArray

from tieline.match.box import MISSING
from tieline.match.curve.arrays import keys
from tieline.match.index.buckets import BOUNDARIES, BUCKETS, boundaries
from tieline.match.index.protocol import MAX_ID, Boxes
from tieline.match.index.slot_table import CHUNK, CHUNK_WORDS, NONE, Floats, SlotTable, Words

#: Attributes that the curve runs through, in twice as many dimensions.
_MOST: Final = 3
#: A bucket is a number of so many bits.
_BITS: Final = 6


def curve_order(first: NDArray[np.uint8], last: NDArray[np.uint8]) -> NDArray[np.intp]:
    """A permutation of boxes, given by the first and last bucket ``[box, attribute]`` that each overlaps."""
    spans = last.sum(axis=0, dtype=np.int64) - first.sum(axis=0, dtype=np.int64)
    chosen = np.argsort(spans, kind="stable")[:_MOST]
    return np.argsort(keys(np.hstack((first[:, chosen], last[:, chosen])), _BITS), kind="stable")


#: Boxes that the boundaries are chosen from.
_SAMPLE: Final = 8192

Buckets = NDArray[np.uint8]


def build(boxes: Boxes, dimensions: int) -> SlotTable:
    """A table that holds these boxes and has room for some more."""
    ids = np.asarray(boxes.ids, np.int64).reshape(-1)
    lo = np.asarray(boxes.lo, np.float64).reshape(-1, dimensions)
    hi = np.asarray(boxes.hi, np.float64).reshape(-1, dimensions)
    count = len(ids)
    if not len(lo) == len(hi) == count:
        raise ValueError("as many lower ends as upper ends as ids")
    if count and not 0 <= ids.min() <= ids.max() <= MAX_ID:
        raise ValueError(f"an id is a whole number from 0 to {MAX_ID}")
    bounds = _bounds(lo, hi)
    first, last = _buckets(bounds, lo), _buckets(bounds, hi)
    order = curve_order(first, last)
    table = SlotTable(bounds, chunks=count // CHUNK + 1, ids=int(ids.max()) + 1 if count else 0)
    np.take(lo, order, axis=0, out=table.corners[:count, :dimensions])
    np.negative(hi[order], out=table.corners[:count, dimensions:])
    table.ids[:count] = ids[order]
    table.used = count
    _link(table)
    _fill(table, first[order], last[order])
    return table


def _bounds(lo: Floats, hi: Floats) -> Floats:
    """Boundaries by attribute, padded with MISSING: no value but a missing one is found behind them."""
    count, dimensions = lo.shape
    bounds = np.full((dimensions, BOUNDARIES), MISSING, np.float64)
    step = -(-count // _SAMPLE) or 1
    for attribute in range(dimensions):
        ends = np.concatenate((lo[::step, attribute], hi[::step, attribute]))
        chosen = boundaries(ends.tolist())
        bounds[attribute, : len(chosen)] = chosen
    return bounds


def _buckets(bounds: Floats, values: Floats) -> Buckets:
    """The buckets of ``values[box, attribute]``."""
    found = np.empty(values.shape, np.uint8)
    for attribute, ends in enumerate(bounds):
        found[:, attribute] = np.searchsorted(ends, np.ascontiguousarray(values[:, attribute]), side="right")
    return found


def _link(table: SlotTable) -> None:
    """Chain the slots of every id."""
    ids = table.ids[: table.used]
    slots = np.arange(table.used, dtype=np.int32)
    table.links[: table.used] = NONE
    table.heads[ids] = slots
    if bool((table.heads[ids] == slots).all()):
        return  # nobody has more than one
    order = np.argsort(ids, kind="stable")
    grouped = ids[order]
    same = grouped[1:] == grouped[:-1]
    table.links[order[:-1][same]] = order[1:][same]
    starts = np.append(True, ~same)
    table.heads[grouped[starts]] = order[starts]


def _fill(table: SlotTable, first: Buckets, last: Buckets) -> None:
    """Set the bits of all boxes, a chunk at a time."""
    buckets = np.arange(BUCKETS, dtype=np.uint8)[:, None]
    for chunk in range(table.chunks):
        slots = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        starts, ends = np.ascontiguousarray(first[slots].T), np.ascontiguousarray(last[slots].T)
        words = table.words[chunk]
        for attribute in range(table.dimensions):
            overlaps = (starts[attribute] <= buckets) & (ends[attribute] >= buckets)
            words[attribute * BUCKETS : (attribute + 1) * BUCKETS] = _packed(overlaps, CHUNK_WORDS)
        table.summary[:, chunk] = _packed(words != 0, 1)[:, 0]


def _packed(bits: NDArray[np.bool_], words: int) -> Words:
    """Rows of bits as rows of so many words, lowest bit first."""
    packed = np.packbits(bits, axis=1, bitorder="little")
    padded: NDArray[Any] = np.zeros((len(packed), words * 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8")
