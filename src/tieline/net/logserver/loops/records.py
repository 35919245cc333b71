"""Records taken apart: numbers are noted, and of texts and bytes their place and length; columns are copied later.

The loops know what a broker writes and nothing else.  Whatever looks different (a number where a text belongs, an end
that comes too early) makes :func:`walk` answer False.  So they check every bound, but explain nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.core.compiling import compiled
from tieline.net.logserver.loops.values import Bytes, array_at, binary_at, flag_at, integer_at, map_at, skip, text_at

Places = NDArray[np.int64]

#: The fields of a record by what they are, each kind in its order.
NUMBERS: Final = ("received", "epoch", "packet_id", "dup", "qos", "retain", "level")
STRETCHES: Final = ("publisher", "class_", "topic", "payload", "properties", "digest")
#: All of them; ``attributes`` may follow.  And those up to the payload.
_FIELDS: Final = len(NUMBERS) + len(STRETCHES)
_HEAD: Final = _FIELDS - 2
#: The row in ``places`` and ``lengths`` for the map of attributes: where its first key stands (-1 without a map), and
#: how many pairs it has.
ATTRIBUTES: Final = len(STRETCHES)


@compiled
def _note(places: Places, lengths: Places, field: int, row: int, stretch: tuple[int, int]) -> int:
    places[field, row] = stretch[0]
    lengths[field, row] = stretch[1] - stretch[0]
    return stretch[1]


@compiled
def _head(blob: Bytes, place: int, end: int, row: int, numbers: Places, places: Places, lengths: Places) -> int:
    """Note the fields up to the payload; what stands behind them, or -1."""
    numbers[0, row], place = integer_at(blob, place, end)
    place = _note(places, lengths, 0, row, text_at(blob, place, end))
    numbers[1, row], place = integer_at(blob, place, end)
    numbers[2, row], place = integer_at(blob, place, end)
    numbers[3, row], place = flag_at(blob, place, end)
    numbers[4, row], place = integer_at(blob, place, end)
    numbers[5, row], place = flag_at(blob, place, end)
    numbers[6, row], place = integer_at(blob, place, end)
    place = _note(places, lengths, 1, row, text_at(blob, place, end))
    place = _note(places, lengths, 2, row, text_at(blob, place, end))
    return _note(places, lengths, 3, row, binary_at(blob, place, end))


@compiled
def _attributes(blob: Bytes, place: int, end: int, row: int, places: Places, lengths: Places) -> int:
    """Note where the map of attributes stands; what stands behind it, or -1."""
    if 0 <= place < end and blob[place] == 0xC0:
        return place + 1
    count, place = map_at(blob, place, end)
    if count < 0:
        return -1
    places[ATTRIBUTES, row] = place
    lengths[ATTRIBUTES, row] = count
    return skip(blob, place, end, 2 * count)


@compiled
def walk(blob: Bytes, groups: Places, wanted: int, numbers: Places, places: Places, lengths: Places) -> bool:
    """Note what the records hold; False if anything looks other than a broker writes it.

    ``groups`` has for each group where it begins and ends in ``blob`` and how many records it holds; the arrays to
    fill have a column for each record.  The fields up to the payload are always noted; those behind them if ``wanted``
    (a number of fields) reaches there.
    """
    row = 0
    for group in range(groups.shape[0]):
        end = groups[group, 1]
        count, place = array_at(blob, groups[group, 0], end)
        if count != groups[group, 2]:
            return False
        for _ in range(count):
            fields, place = array_at(blob, place, end)
            if fields < _FIELDS:
                return False
            place = _head(blob, place, end, row, numbers, places, lengths)
            left = fields - _HEAD
            if wanted > _HEAD:
                place = _note(places, lengths, 4, row, binary_at(blob, place, end))
                place = _note(places, lengths, 5, row, binary_at(blob, place, end))
                left -= 2
            if wanted > _FIELDS:
                places[ATTRIBUTES, row] = -1
                lengths[ATTRIBUTES, row] = 0
                if left:
                    place = _attributes(blob, place, end, row, places, lengths)
                    left -= 1
            place = skip(blob, place, end, left)
            if place < 0:
                return False
            row += 1
        if place != end:
            return False
    return True


@compiled
def gather(blob: Bytes, places: Places, lengths: Places, ends: NDArray[np.int32], data: Bytes) -> None:
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
