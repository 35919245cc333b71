"""The user properties of a record, all of them and in their order: the broker looks at the last of each name only."""

from __future__ import annotations

from tieline.wire.errors import ProtocolError
from tieline.wire.packet_type import PacketType
from tieline.wire.properties import decode_properties
from tieline.wire.varint import encode_varint


def user_properties(properties: bytes) -> list[tuple[str, str]]:
    """Names and texts in the order in which they were sent; one name may stand there more than once."""
    if not properties:
        return []
    block = encode_varint(len(properties)) + properties
    try:
        found, _end = decode_properties(block, 0, len(block), PacketType.PUBLISH)
    except (ProtocolError, ValueError):  # written by another version: the bytes are in raw_properties
        return []
    return found.get("user_property", [])
