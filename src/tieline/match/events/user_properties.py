"""The user properties of a message, from the bytes in which it travels."""

from __future__ import annotations

from tieline.wire.errors import ProtocolError
from tieline.wire.packet_type import PacketType
from tieline.wire.properties import decode_properties
from tieline.wire.varint import encode_varint


def user_properties(properties: bytes) -> dict[str, str]:
    """Name and text of each; of several with one name the last counts, as with the keys of a JSON object."""
    try:
        block = encode_varint(len(properties)) + properties
        found, _end = decode_properties(block, 0, len(block), PacketType.PUBLISH)
    except (ProtocolError, ValueError):
        return {}
    return dict(found.get("user_property", ()))
