"""Packets written down readably: hexadecimal bytes, and texts in quotes that get their two-byte length."""

from __future__ import annotations

from tieline.wire.fields import encode_varint


def body(notation: str) -> bytes:
    """``0007 'a/b' 01`` is the bytes 00 07, then 00 03 and the text a/b, then 01."""
    parts = []
    for index, piece in enumerate(notation.split("'")):
        if index % 2:
            text = piece.encode()
            parts.append(len(text).to_bytes(2) + text)
        else:
            parts.append(bytes.fromhex(piece))
    return b"".join(parts)


def packet(notation: str) -> bytes:
    """``82: 0007 'a/b' 01`` is the first byte, the remaining length that fits, and the body."""
    first, _, rest = notation.partition(":")
    content = body(rest)
    return bytes.fromhex(first) + encode_varint(len(content)) + content
