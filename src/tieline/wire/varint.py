"""Variable byte integers: seven bits a byte, low bits first, at most four bytes [1.5.5]."""

from __future__ import annotations

from typing import Final

from tieline.wire.errors import Malformed

#: The largest value that four bytes hold.
MAXIMUM: Final = 268_435_455


def encode_varint(value: int) -> bytes:
    """The shortest encoding of a value, as [MQTT-1.5.5-1] demands."""
    if value < 0x80:
        return value.to_bytes()
    if value > MAXIMUM:
        raise ValueError(f"{value} does not fit into a variable byte integer")
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """The value at ``pos`` and the position after it."""
    value = 0
    for shift in (0, 7, 14, 21):
        if pos >= end:
            raise Malformed("a variable byte integer runs past the end", "1.5.5")
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                raise Malformed("a variable byte integer is longer than its value needs", "MQTT-1.5.5-1")
            return value, pos
    raise Malformed("a variable byte integer is longer than four bytes", "1.5.5")
