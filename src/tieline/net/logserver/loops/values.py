"""Values of MessagePack in an array of bytes: where each stands, and what stands behind it.

Every function takes a place and the end of what may be read, and answers with -1 where it does not find what it looks
for.  One that is asked to look at -1 finds nothing either, so a caller may look once, behind the last of several.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.core.compiling import compiled

Bytes = NDArray[np.uint8]

_LARGEST: Final = 0x7FFF_FFFF_FFFF_FFFF
#: How many bytes a value takes whose first byte is this one, or what it is if that does not tell.
_IS_MAP, _IS_ARRAY, _IS_TEXT, _IS_BINARY, _IS_UNKNOWN = -1, -2, -3, -4, -5
_WIDTHS: Final = np.array(
    [1] * 0x80
    + [_IS_MAP] * 16
    + [_IS_ARRAY] * 16
    + [1 + length for length in range(32)]
    + [1, _IS_UNKNOWN, 1, 1]
    + [_IS_BINARY] * 3
    + [_IS_UNKNOWN] * 3
    + [5, 9]
    + [2, 3, 5, 9] * 2
    + [_IS_UNKNOWN] * 5
    + [_IS_TEXT] * 3
    + [_IS_ARRAY] * 2
    + [_IS_MAP] * 2
    + [1] * 32,
    np.int64,
)


@compiled
def signed(value: int) -> int:
    """The same bits as a number with a sign."""
    return np.int64(value)  # type: ignore[return-value]  # what the compiler calls int


@compiled
def big_endian(blob: Bytes, place: int, width: int) -> int:
    """A number of so many bytes, the highest first."""
    value = np.uint64(0)
    for byte in blob[place : place + width]:
        value = (value << np.uint64(8)) | np.uint64(byte)
    return value  # type: ignore[return-value]  # the compiler's own integer


@compiled
def _count_at(blob: Bytes, place: int, end: int, short: int, long: int) -> tuple[int, int]:
    """How many elements there are, and where the first stands; -1 where there is none.

    ``short`` is the first byte of a collection without elements, ``long`` of one whose count has two bytes.
    """
    if place < 0 or place >= end:
        return -1, place
    head = blob[place]
    if short <= head <= short + 0x0F:
        return head & 0x0F, place + 1
    if head == long and place + 3 <= end:
        return signed(big_endian(blob, place + 1, 2)), place + 3
    if head == long + 1 and place + 5 <= end:
        return signed(big_endian(blob, place + 1, 4)), place + 5
    return -1, place


@compiled
def array_at(blob: Bytes, place: int, end: int) -> tuple[int, int]:
    """How many elements an array has, and where the first stands; -1 where there is none."""
    return _count_at(blob, place, end, 0x90, 0xDC)


@compiled
def map_at(blob: Bytes, place: int, end: int) -> tuple[int, int]:
    """How many pairs a map has, and where the first key stands; -1 where there is none."""
    return _count_at(blob, place, end, 0x80, 0xDE)


@compiled
def integer_at(blob: Bytes, place: int, end: int) -> tuple[int, int]:
    """A whole number that goes into 64 bits with a sign, and what stands behind it; -1 for the latter if it is none."""
    if place < 0 or place >= end:
        return 0, -1
    head = blob[place]
    if head <= 0x7F:
        return signed(head), place + 1
    if head >= 0xE0:
        return signed(head) - 256, place + 1
    if 0xCC <= head <= 0xCF:
        width = 1 << (head - 0xCC)
        if place + 1 + width > end:
            return 0, -1
        value = big_endian(blob, place + 1, width)
        if value > np.uint64(_LARGEST):
            return 0, -1
        return signed(value), place + 1 + width
    if 0xD0 <= head <= 0xD3:
        width = 1 << (head - 0xD0)
        if place + 1 + width > end:
            return 0, -1
        # the highest byte carries the sign: it is moved to the top, and back
        shift = signed(64 - 8 * width)
        return (signed(big_endian(blob, place + 1, width)) << shift) >> shift, place + 1 + width
    return 0, -1


@compiled
def flag_at(blob: Bytes, place: int, end: int) -> tuple[int, int]:
    """0 or 1, and what stands behind it; -1 for the latter if it is neither."""
    if place < 0 or place >= end or not 0xC2 <= blob[place] <= 0xC3:
        return 0, -1
    return signed(blob[place]) - 0xC2, place + 1


@compiled
def text_at(blob: Bytes, place: int, end: int) -> tuple[int, int]:
    """Where a text begins and ends; -1 for the end if there is none."""
    if place < 0 or place >= end:
        return 0, -1
    head = blob[place]
    if 0xA0 <= head <= 0xBF:
        begin, length = place + 1, signed(head & 0x1F)
    elif 0xD9 <= head <= 0xDB:
        width = 1 << (head - 0xD9)
        if place + 1 + width > end:
            return 0, -1
        begin, length = place + 1 + width, signed(big_endian(blob, place + 1, width))
    else:
        return 0, -1
    return (begin, begin + length) if begin + length <= end else (0, -1)


@compiled
def binary_at(blob: Bytes, place: int, end: int) -> tuple[int, int]:
    """Where bytes begin and end; -1 for the end if there are none."""
    if place < 0 or place >= end:
        return 0, -1
    head = blob[place]
    if not 0xC4 <= head <= 0xC6:
        return 0, -1
    width = 1 << (head - 0xC4)
    if place + 1 + width > end:
        return 0, -1
    begin = place + 1 + width
    length = signed(big_endian(blob, place + 1, width))
    return (begin, begin + length) if begin + length <= end else (0, -1)


@compiled
def skip(blob: Bytes, place: int, end: int, values: int) -> int:
    """What stands behind so many values of any kind; -1 where they do not end."""
    left = values
    while left > 0:
        left -= 1
        if place < 0 or place >= end:
            return -1
        head = blob[place]
        width = _WIDTHS[head]
        if width > 0:
            place += width
        elif width == _IS_MAP:
            count, place = map_at(blob, place, end)
            if count < 0:
                return -1
            left += 2 * count
        elif width == _IS_ARRAY:
            count, place = array_at(blob, place, end)
            if count < 0:
                return -1
            left += count
        elif width == _IS_TEXT:
            _, place = text_at(blob, place, end)
        elif width == _IS_BINARY:
            _, place = binary_at(blob, place, end)
        else:
            return -1
        if place < 0 or place > end:
            return -1
    return place
