"""Names with values: the map of attributes, and the user properties of a message."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.compiling import compiled
from tieline.net.logserver.loops.records import Places
from tieline.net.logserver.loops.values import Bytes, big_endian, integer_at, map_at, signed, stretch_of, text_at

Floats = NDArray[np.float64]

#: Kinds of attributes, as :func:`pairs` notes them.
NUMBER, TEXT, FLAG = 0, 1, 2

_USER_PROPERTY: Final = 0x26


@compiled
def _double(blob: Bytes, place: int) -> float:
    eight = np.empty(8, np.uint8)
    for each in range(8):
        eight[7 - each] = blob[place + each]
    return eight.view(np.float64)[0]  # type: ignore[no-any-return]  # one number


@compiled
def count_pairs(blob: Bytes, starts: Places, counts: Places) -> None:
    """How many pairs each map has; -1 where there is none."""
    for row in range(starts.size):
        counts[row] = map_at(blob, signed(starts[row]), blob.size)[0]


@compiled
def pairs(
    blob: Bytes,
    starts: Places,
    keys: Places,
    kinds: Bytes,
    values: Floats,
    texts: Places,
) -> bool:
    """Note keys and values of maps, their places in one row and their lengths in the next; False if one is unusual."""
    end = blob.size
    at = 0
    for row in range(starts.size):
        count, place = map_at(blob, signed(starts[row]), end)
        for _ in range(count):
            begin, place = text_at(blob, place, end)
            if place < 0 or place >= end:
                return False
            keys[0, at] = begin
            keys[1, at] = place - begin
            texts[0, at] = 0
            texts[1, at] = 0
            values[at] = 0.0
            head = blob[place]
            if head == 0xCB:
                if place + 9 > end:
                    return False
                kinds[at] = NUMBER
                values[at] = _double(blob, place + 1)
                place += 9
            elif head in (0xC2, 0xC3):
                kinds[at] = FLAG
                values[at] = head - 0xC2
                place += 1
            elif 0xA0 <= head <= 0xBF or 0xD9 <= head <= 0xDB:
                begin, place = text_at(blob, place, end)
                if place < 0:
                    return False
                kinds[at] = TEXT
                texts[0, at] = begin
                texts[1, at] = place - begin
            else:
                number, place = integer_at(blob, place, end)
                if place < 0:
                    return False
                kinds[at] = NUMBER
                values[at] = number
            at += 1
    return True


@compiled
def count_users(blob: Bytes, starts: Places, counts: Places) -> bool:
    """How many user properties each block holds; False if any holds others too, or letters that need a closer look."""
    for row in range(starts.size):
        place, length = stretch_of(blob, signed(starts[row]))
        end = place + length
        counts[row] = 0
        while place < end:
            if blob[place] != _USER_PROPERTY:
                return False
            place += 1
            for _ in range(2):
                if place + 2 > end:
                    return False
                length = big_endian(blob, place, 2)
                place += 2
                if place + length > end:
                    return False
                for each in range(place, place + length):
                    if blob[each] == 0 or blob[each] > 0x7F:
                        return False
                place += length
            counts[row] += 1
    return True


@compiled
def users(blob: Bytes, starts: Places, keys: Places, values: Places) -> None:
    """Where names and texts of user properties stand, in blocks that :func:`count_users` has accepted."""
    at = 0
    for row in range(starts.size):
        place, length = stretch_of(blob, signed(starts[row]))
        end = place + length
        while place < end:
            length = big_endian(blob, place + 1, 2)
            keys[0, at] = place + 3
            keys[1, at] = length
            place += 3 + length
            length = big_endian(blob, place, 2)
            values[0, at] = place + 2
            values[1, at] = length
            place += 2 + length
            at += 1
