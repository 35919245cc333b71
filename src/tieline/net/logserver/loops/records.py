"""Records taken apart: first where the value of each field stands, then, for the columns that are wanted, the values.

The first needs a look at every byte that says what follows, one behind the other.  The rest is the same work for each
row, and no row waits for another.

The loops know what a broker writes and nothing else.  Whatever looks different (a number where a text belongs, an end
that comes too early) makes them answer False.  So they check every bound, but explain nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.compiling import compiled
from tieline.net.logserver.loops.values import (
    BINARY,
    FLAG,
    INTEGER,
    KINDS,
    MAP,
    NOTHING,
    TEXT,
    WIDTHS,
    Bytes,
    array_at,
    binary_at,
    integer_at,
    map_at,
    signed,
    stretch_of,
    text_at,
)

#: Places in the bytes of some groups, and lengths: 32 bits reach further than SQLite keeps in one row.
Places = NDArray[np.int32]
Numbers = NDArray[np.int64]

#: What the fields of a record may be, in their order; the last, ``attributes``, may be left out.
_EXPECTED: Final = np.array(
    [INTEGER, TEXT, INTEGER, INTEGER, FLAG, INTEGER, FLAG, INTEGER, TEXT, TEXT, BINARY, BINARY, BINARY, NOTHING | MAP],
    np.uint8,
)
_LEAST: Final = _EXPECTED.size - 1


@compiled
def walk(blob: Bytes, groups: Numbers, starts: Places) -> bool:
    """Note where the values of records stand; False if anything looks other than a broker writes it.

    ``groups`` has for each group where it begins and ends in ``blob`` and how many records it holds.  ``starts`` has a
    row for each field up to the last that is wanted, and a column for each record; -1 stands for a field left out.
    """
    wanted = starts.shape[0]
    row = 0
    for group in range(groups.shape[0]):
        end = groups[group, 1]
        count, place = array_at(blob, groups[group, 0], end)
        if count != groups[group, 2]:
            return False
        for _ in range(count):
            left, place = array_at(blob, place, end)
            if left < _LEAST:
                return False
            if left < wanted:
                starts[_LEAST, row] = -1
            known = min(left, wanted)
            field = 0
            while left > 0:
                left -= 1
                if place < 0 or place >= end:
                    return False
                head = blob[place]
                if field < known:
                    if not KINDS[head] & _EXPECTED[field]:
                        return False
                    starts[field, row] = place
                    field += 1
                # What is frequent is decided by branches: the processor guesses them, and need not wait for one value
                # before it looks at the next.
                if head <= 0x7F:
                    place += 1
                elif 0xA0 <= head <= 0xBF:
                    place += 1 + signed(head & 0x1F)
                elif head in (0xCB, 0xCF):
                    place += 9
                elif WIDTHS[head]:
                    place += WIDTHS[head]
                elif KINDS[head] & BINARY:
                    _, place = binary_at(blob, place, end)
                elif KINDS[head] & TEXT:
                    _, place = text_at(blob, place, end)
                elif KINDS[head] & MAP:
                    within, place = map_at(blob, place, end)
                    if within < 0:
                        return False
                    left += 2 * within
                else:
                    within, place = array_at(blob, place, end)
                    if within < 0:
                        return False
                    left += within
            row += 1
        # what claims to be longer than there are bytes ends elsewhere
        if place != end:
            return False
    return True


@compiled
def numbers(blob: Bytes, starts: Places, values: Numbers) -> bool:
    """Read whole numbers, and flags as 0 and 1; False if one does not go into 64 bits with a sign."""
    for row in range(starts.size):
        place = signed(starts[row])
        if KINDS[blob[place]] == FLAG:
            values[row] = blob[place] & 1
        else:
            values[row], place = integer_at(blob, place, blob.size)
            if place < 0:
                return False
    return True


@compiled
def stretches(blob: Bytes, starts: Places, places: Places, lengths: Places) -> None:
    """Note where the bytes of texts and of other stretches begin, and how many there are."""
    for row in range(starts.size):
        places[row], lengths[row] = stretch_of(blob, signed(starts[row]))


@compiled
def gather(blob: Bytes, places: Places, lengths: Places, ends: Places, data: Bytes) -> None:
    """Put stretches of bytes one behind the other, and note where each ends."""
    at = 0
    for row in range(places.size):
        length = lengths[row]
        # as places in two pieces, which cannot be negative, they are copied many at a time
        source, target = blob[places[row] : places[row] + length], data[at : at + length]
        for each in range(length):
            target[each] = source[each]
        at += length
        ends[row + 1] = at
