"""The body of a CONNECT, the one packet that says for itself which version it is [3.1]."""

from __future__ import annotations

from typing import Final

from tieline.wire.errors import Malformed, Violation
from tieline.wire.fields import decode_binary, decode_utf8
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Connect, Will
from tieline.wire.properties import WILL, Properties, decode_properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_name

VERSIONS: Final = (4, 5)

_RESERVED: Final = 0x01
_CLEAN_START: Final = 0x02
_WILL: Final = 0x04
_WILL_QOS: Final = 0x18
_WILL_RETAIN: Final = 0x20
_PASSWORD: Final = 0x40
_USERNAME: Final = 0x80


def decode_connect(body: bytes) -> Connect:
    """A CONNECT of either version, with every rule of section 3.1 that needs no knowledge of the server."""
    end = len(body)
    version, pos = _version(body, end)
    if pos + 3 > end:
        raise Malformed("CONNECT has no room for its flags and keep alive", "3.1.2")
    flags = body[pos]
    keep_alive = body[pos + 1] << 8 | body[pos + 2]
    pos += 3
    _check_flags(flags, version)
    properties = Properties()
    if version == 5:
        properties, pos = decode_properties(body, pos, end, PacketType.CONNECT)
        if "authentication_data" in properties and "authentication_method" not in properties:
            raise Violation("CONNECT has authentication data without a method", "3.1.2.11.10")
    # The order of the payload is fixed [MQTT-3.1.3-1].
    client_id, pos = decode_utf8(body, pos, end)
    will = username = password = None
    if flags & _WILL:
        will, pos = _will(body, pos, end, flags, version)
    if flags & _USERNAME:
        username, pos = decode_utf8(body, pos, end)
    if flags & _PASSWORD:
        password, pos = decode_binary(body, pos, end)
    if pos != end:
        # A field whose flag is not set must not be there: MQTT-3.1.2-11, -18, -20.
        raise Malformed(f"CONNECT has {end - pos} bytes after its last field", "MQTT-3.1.4-1")
    return Connect(
        version=version,
        clean_start=flags & _CLEAN_START != 0,
        keep_alive=keep_alive,
        client_id=client_id,
        will=will,
        username=username,
        password=password,
        properties=properties,
    )


def _version(body: bytes, end: int) -> tuple[int, int]:
    name, pos = decode_utf8(body, 0, end)
    if name != "MQTT":
        raise Violation(f"CONNECT has protocol name {name[:16]!r}", "MQTT-3.1.2-1", Reason.UNSUPPORTED_PROTOCOL_VERSION)
    if pos >= end:
        raise Malformed("CONNECT has no room for its protocol version", "3.1.2.2")
    version = body[pos]
    if version not in VERSIONS:
        raise Violation(f"CONNECT has protocol version {version}", "MQTT-3.1.2-2", Reason.UNSUPPORTED_PROTOCOL_VERSION)
    return version, pos + 1


def _check_flags(flags: int, version: int) -> None:
    if flags & _RESERVED:
        raise Malformed("CONNECT sets the reserved flag", "MQTT-3.1.2-3")
    if flags & _WILL:
        if flags & _WILL_QOS == _WILL_QOS:
            raise Malformed("CONNECT has Will QoS 3", "MQTT-3.1.2-12")
    elif flags & _WILL_QOS:
        raise Violation("CONNECT has a Will QoS without a will", "MQTT-3.1.2-11")
    elif flags & _WILL_RETAIN:
        raise Violation("CONNECT has Will Retain without a will", "MQTT-3.1.2-13")
    if version == 4 and flags & _PASSWORD and not flags & _USERNAME:
        raise Violation("CONNECT has a password without a user name", "3.1.1 MQTT-3.1.2-22")


def _will(body: bytes, pos: int, end: int, flags: int, version: int) -> tuple[Will, int]:
    properties = Properties()
    if version == 5:
        properties, pos = decode_properties(body, pos, end, WILL)
    topic, pos = decode_utf8(body, pos, end)
    check_name(topic, max_levels=len(topic) + 1)  # How deep is too deep, the server says.
    payload, pos = decode_binary(body, pos, end)
    will = Will(
        topic=topic,
        payload=payload,
        qos=flags >> 3 & 3,
        retain=flags & _WILL_RETAIN != 0,
        properties=properties,
    )
    return will, pos
