"""Values of MessagePack in an array of bytes: where each stands, and what stands behind it.

Every function takes a place and the end of what may be read, and answers with -1 where it does not find what it looks
for.  One that is asked to look at -1 finds nothing either, so a caller may look once, behind the last of several.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.compiling import compiled

Bytes = NDArray[np.uint8]

#: What a value may be, each a bit; :data:`KINDS` knows it from the first byte.  Others have no bit.
INTEGER, TEXT, BINARY, FLAG, NOTHING, MAP = 1, 2, 4, 8, 16, 32
KINDS: Final = np.array(
    [INTEGER] * 0x80
    + [MAP] * 16
    + [0] * 16
    + [TEXT] * 32
    + [NOTHING, 0, FLAG, FLAG]
    + [BINARY] * 3
    + [0] * 5
    + [INTEGER] * 8
    + [0] * 5
    + [TEXT] * 3
    + [0] * 2
    + [MAP] * 2
    + [INTEGER] * 32,
    np.uint8,
)
#: How many bytes a value takes whose first byte is this one, 0 where that does not tell.
WIDTHS: Final = np.array(
    [1] * 0x80
    + [0] * 32
    + [1 + length for length in range(32)]
    + [1, 0, 1, 1]
    + [0] * 6
    + [5, 9]
    + [2, 3, 5, 9] * 2
    + [0] * 12
    + [1] * 32,
    np.int64,
)


@compiled
def signed(value: int) -> int:
    """The same bits as a number with a sign."""
    return np.int64(value)  # type: ignore[return-value]  # what the compiler calls int


@compiled
def _two(blob: Bytes, place: int) -> int:
    return signed(blob[place]) << 8 | signed(blob[place + 1])


@compiled
def _four(blob: Bytes, place: int) -> int:
    return _two(blob, place) << 16 | _two(blob, place + 2)


@compiled
def big_endian(blob: Bytes, place: int, width: int) -> int:
    """A number of 1, 2, 4 or 8 bytes, the highest first; one of eight may come out negative."""
    # without a loop, the compiler makes one load of it
    if width == 1:
        return signed(blob[place])
    if width == 2:
        return _two(blob, place)
    if width == 4:
        return _four(blob, place)
    return _four(blob, place) << 32 | _four(blob, place + 4)


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
        return big_endian(blob, place + 1, 2), place + 3
    if head == long + 1 and place + 5 <= end:
        return big_endian(blob, place + 1, 4), place + 5
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
        return (value, place + 1 + width) if value >= 0 else (0, -1)
    if 0xD0 <= head <= 0xD3:
        width = 1 << (head - 0xD0)
        if place + 1 + width > end:
            return 0, -1
        # the highest byte carries the sign: it is moved to the top, and back
        shift = signed(64 - 8 * width)
        return (big_endian(blob, place + 1, width) << shift) >> shift, place + 1 + width
    return 0, -1


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
        begin, length = place + 1 + width, big_endian(blob, place + 1, width)
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
    length = big_endian(blob, place + 1, width)
    return (begin, begin + length) if begin + length <= end else (0, -1)


@compiled
def stretch_of(blob: Bytes, place: int) -> tuple[int, int]:
    """Where a text or bytes begin, and how long they are; they have been found whole before."""
    head = blob[place]
    if 0xA0 <= head <= 0xBF:
        return place + 1, signed(head & 0x1F)
    if head in (0xC4, 0xD9):
        return place + 2, signed(blob[place + 1])
    if head in (0xC5, 0xDA):
        return place + 3, big_endian(blob, place + 1, 2)
    return place + 5, big_endian(blob, place + 1, 4)
