"""The fields that packets are made of: variable byte integers, UTF-8 strings, string pairs and binary data [1.5].

A variable byte integer has seven bits a byte, low bits first, in at most four bytes [1.5.5].  The others have two bytes
of length before them.
"""

from __future__ import annotations

from typing import Final

from tieline.wire.errors import Malformed

#: The largest value that four bytes hold.
LARGEST_VARINT: Final = 268_435_455


def encode_varint(value: int) -> bytes:
    """The shortest encoding of a value, as [MQTT-1.5.5-1] demands."""
    if value < 0x80:
        return value.to_bytes()
    if value > LARGEST_VARINT:
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


#: The largest length that the two-byte prefix can say [1.5.4].
LONGEST_FIELD: Final = 65_535


def decode_utf8(data: bytes, pos: int, end: int) -> tuple[str, int]:
    """The string at ``pos`` and the position after it.

    Control characters and Unicode non-characters are let through: a receiver may refuse them [1.5.4], but
    topics with a tab or a stray U+FFFF exist in the field and harm nobody.
    """
    start = pos + 2
    if start > end:
        raise Malformed("a string has no room for its length", "1.5.4")
    stop = start + (data[pos] << 8 | data[pos + 1])
    if stop > end:
        raise Malformed("a string runs past the end", "1.5.4")
    try:
        # Python's decoder refuses overlong forms, surrogates and everything above U+10FFFF, and keeps a
        # leading U+FEFF as [MQTT-1.5.4-3] asks.
        text = data[start:stop].decode()
    except UnicodeDecodeError:
        raise Malformed("a string is not well-formed UTF-8", "MQTT-1.5.4-1") from None
    if "\0" in text:
        raise Malformed("a string contains U+0000", "MQTT-1.5.4-2")
    return text, stop


def decode_pair(data: bytes, pos: int, end: int) -> tuple[tuple[str, str], int]:
    """The string pair at ``pos`` [1.5.7] and the position after it."""
    name, pos = decode_utf8(data, pos, end)
    value, pos = decode_utf8(data, pos, end)
    return (name, value), pos


def decode_binary(data: bytes, pos: int, end: int) -> tuple[bytes, int]:
    """The binary field at ``pos`` [1.5.6] and the position after it."""
    start = pos + 2
    if start > end:
        raise Malformed("binary data has no room for its length", "1.5.6")
    stop = start + (data[pos] << 8 | data[pos + 1])
    if stop > end:
        raise Malformed("binary data runs past the end", "1.5.6")
    return data[start:stop], stop


def encode_utf8(text: str) -> bytes:
    """A string with its length; refuses what the prefix cannot say."""
    return encode_binary(text.encode())


def encode_pair(pair: tuple[str, str]) -> bytes:
    """Two strings, one after the other."""
    name, value = pair
    return encode_utf8(name) + encode_utf8(value)


def encode_binary(data: bytes) -> bytes:
    """Binary data with its length; refuses what the prefix cannot say."""
    length = len(data)
    if length > LONGEST_FIELD:
        raise ValueError(f"{length} bytes do not fit into a field of at most {LONGEST_FIELD}")
    return length.to_bytes(2) + data
