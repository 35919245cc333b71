"""MQTT 5 properties: one table of what exists, decoding with every check the table implies, encoding.

Theory of operation: a property block is a length and then (identifier, value) pairs in any order.  The table
says for each identifier its name, the type of its value, the packets that may carry it, and the rule its
value must satisfy; everything else in this module is a walk over the block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypedDict, cast  # Any: a value has the type in its row of the table

from tieline.wire.errors import Malformed, ProtocolError, Violation
from tieline.wire.fields import (
    decode_binary,
    decode_pair,
    decode_utf8,
    decode_varint,
    encode_binary,
    encode_pair,
    encode_utf8,
    encode_varint,
)
from tieline.wire.packet_type import WILL, PacketType
from tieline.wire.reason import Reason

__all__ = ["WILL", "Properties", "decode_properties", "encode_properties", "forwardable", "user_properties"]


class Properties(TypedDict, total=False):
    """Properties by their names in the specification; an absent property is an absent key."""

    payload_format_indicator: int
    message_expiry_interval: int
    content_type: str
    response_topic: str
    correlation_data: bytes
    subscription_identifier: list[int]
    session_expiry_interval: int
    assigned_client_identifier: str
    server_keep_alive: int
    authentication_method: str
    authentication_data: bytes
    request_problem_information: int
    will_delay_interval: int
    request_response_information: int
    response_information: str
    server_reference: str
    reason_string: str
    receive_maximum: int
    topic_alias_maximum: int
    topic_alias: int
    maximum_qos: int
    retain_available: int
    user_property: list[tuple[str, str]]
    maximum_packet_size: int
    wildcard_subscription_available: int
    subscription_identifier_available: int
    shared_subscription_available: int


class _Kind(NamedTuple):
    """How the value of a property is written."""

    decode: Callable[[bytes, int, int], tuple[Any, int]]
    encode: Callable[[Any], bytes]


def _fixed(width: int) -> _Kind:
    def decode(data: bytes, pos: int, end: int) -> tuple[int, int]:
        stop = pos + width
        if stop > end:
            raise Malformed("a property value runs past the end", "2.2.2.2")
        return int.from_bytes(data[pos:stop]), stop

    def encode(value: int) -> bytes:
        return value.to_bytes(width)

    return _Kind(decode, encode)


_BYTE: Final = _fixed(1)
_TWO_BYTES: Final = _fixed(2)
_FOUR_BYTES: Final = _fixed(4)
_VARINT: Final = _Kind(decode_varint, encode_varint)
_TEXT: Final = _Kind(decode_utf8, encode_utf8)
_BINARY: Final = _Kind(decode_binary, encode_binary)
_PAIR: Final = _Kind(decode_pair, encode_pair)


def _zero_or_one(value: int) -> bool:
    return value < 2


def _not_zero(value: int) -> bool:
    return value != 0


def _topic_name(value: str) -> bool:
    if not value:
        raise Violation("response_topic is empty", "MQTT-4.7.3-1")
    return "+" not in value and "#" not in value


class _Property(NamedTuple):
    """One row of the table."""

    name: str
    kind: _Kind
    #: A bit for each packet type that may carry it, bit 0 for the will.
    carriers: int
    #: Where the specification defines it and says that giving it twice is a protocol error.
    section: str
    #: What the value must satisfy.
    rule: Callable[[Any], bool] | None = None
    #: The numbered clause of the rule, where it has one.
    clause: str = ""
    #: User Property everywhere and Subscription Identifier in PUBLISH may appear more than once.
    repeats_in: int = 0

    @property
    def is_list(self) -> bool:
        return self.repeats_in != 0


def _carriers(*packets: int) -> int:
    return sum(1 << packet for packet in packets)


_P = PacketType
_MESSAGE: Final = _carriers(_P.PUBLISH, WILL)
_CONNECTION: Final = _carriers(_P.CONNECT, _P.CONNACK)
_AUTHENTICATION: Final = _carriers(_P.CONNECT, _P.CONNACK, _P.AUTH)
_ANSWERS: Final = _carriers(
    _P.CONNACK, _P.PUBACK, _P.PUBREC, _P.PUBREL, _P.PUBCOMP, _P.SUBACK, _P.UNSUBACK, _P.DISCONNECT, _P.AUTH
)
_ALL: Final = _MESSAGE | _CONNECTION | _ANSWERS | _carriers(_P.SUBSCRIBE, _P.UNSUBSCRIBE)
_CONNECT: Final = _carriers(_P.CONNECT)
_CONNACK: Final = _carriers(_P.CONNACK)

#: Table 2-4, by identifier.  A Topic Alias of 0 parses: the broker answers it with 0x94 [MQTT-3.3.2-8].
_TABLE: Final[dict[int, _Property]] = {
    0x01: _Property("payload_format_indicator", _BYTE, _MESSAGE, "3.3.2.3.2", _zero_or_one),
    0x02: _Property("message_expiry_interval", _FOUR_BYTES, _MESSAGE, "3.3.2.3.3"),
    0x03: _Property("content_type", _TEXT, _MESSAGE, "3.3.2.3.9"),
    0x08: _Property("response_topic", _TEXT, _MESSAGE, "3.3.2.3.5", _topic_name, "MQTT-3.3.2-14"),
    0x09: _Property("correlation_data", _BINARY, _MESSAGE, "3.3.2.3.6"),
    0x0B: _Property(
        "subscription_identifier",
        _VARINT,
        _carriers(_P.PUBLISH, _P.SUBSCRIBE),
        "3.8.2.1.2",
        _not_zero,
        repeats_in=_carriers(_P.PUBLISH),
    ),
    0x11: _Property("session_expiry_interval", _FOUR_BYTES, _CONNECTION | _carriers(_P.DISCONNECT), "3.1.2.11.2"),
    0x12: _Property("assigned_client_identifier", _TEXT, _CONNACK, "3.2.2.3.7"),
    0x13: _Property("server_keep_alive", _TWO_BYTES, _CONNACK, "3.2.2.3.14"),
    0x15: _Property("authentication_method", _TEXT, _AUTHENTICATION, "3.1.2.11.9"),
    0x16: _Property("authentication_data", _BINARY, _AUTHENTICATION, "3.1.2.11.10"),
    0x17: _Property("request_problem_information", _BYTE, _CONNECT, "3.1.2.11.7", _zero_or_one),
    0x18: _Property("will_delay_interval", _FOUR_BYTES, _carriers(WILL), "3.1.3.2.2"),
    0x19: _Property("request_response_information", _BYTE, _CONNECT, "3.1.2.11.6", _zero_or_one),
    0x1A: _Property("response_information", _TEXT, _CONNACK, "3.2.2.3.15"),
    0x1C: _Property("server_reference", _TEXT, _carriers(_P.CONNACK, _P.DISCONNECT), "3.2.2.3.16"),
    0x1F: _Property("reason_string", _TEXT, _ANSWERS, "3.2.2.3.9"),
    0x21: _Property("receive_maximum", _TWO_BYTES, _CONNECTION, "3.1.2.11.3", _not_zero),
    0x22: _Property("topic_alias_maximum", _TWO_BYTES, _CONNECTION, "3.1.2.11.5"),
    0x23: _Property("topic_alias", _TWO_BYTES, _carriers(_P.PUBLISH), "3.3.2.3.4"),
    0x24: _Property("maximum_qos", _BYTE, _CONNACK, "3.2.2.3.4", _zero_or_one),
    0x25: _Property("retain_available", _BYTE, _CONNACK, "3.2.2.3.5", _zero_or_one),
    0x26: _Property("user_property", _PAIR, _ALL, "3.1.2.11.8", repeats_in=_ALL),
    0x27: _Property("maximum_packet_size", _FOUR_BYTES, _CONNECTION, "3.1.2.11.4", _not_zero),
    0x28: _Property("wildcard_subscription_available", _BYTE, _CONNACK, "3.2.2.3.11", _zero_or_one),
    0x29: _Property("subscription_identifier_available", _BYTE, _CONNACK, "3.2.2.3.12", _zero_or_one),
    0x2A: _Property("shared_subscription_available", _BYTE, _CONNACK, "3.2.2.3.13", _zero_or_one),
}

_BY_NAME: Final = {row.name: (encode_varint(identifier), row) for identifier, row in _TABLE.items()}

#: Properties of a PUBLISH that belong to one connection or change while the message waits.
_REBOUND: Final = frozenset({0x02, 0x0B, 0x23})


def _block(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """Where the first property of the block at ``pos`` starts and where the block ends."""
    length, start = decode_varint(data, pos, end)
    stop = start + length
    if stop > end:
        raise Malformed("the properties run past the end of the packet", "2.2.2.1")
    return start, stop


#: Properties in one packet.  The specification sets no limit; a megabyte of empty ones takes a third of a second.
MOST: Final = 4_096


def decode_properties(data: bytes, pos: int, end: int, packet: int) -> tuple[Properties, int]:
    """The property block at ``pos``, checked for the packet type (or ``WILL``), and the position after it."""
    if pos < end and not data[pos]:  # Most packets carry none.
        return Properties(), pos + 1
    pos, stop = _block(data, pos, end)
    found: dict[str, Any] = {}
    carrier = 1 << packet
    left = MOST
    while pos < stop:
        left -= 1
        if left < 0:
            raise Violation(f"more than {MOST} properties in one packet", "2.2.2", Reason.QUOTA_EXCEEDED)
        # Every identifier in the table fits into one byte, so a longer one is unknown or not minimal.
        row = _TABLE.get(data[pos])
        if row is None:
            raise Malformed(f"there is no property 0x{data[pos]:02x}", "2.2.2.2")
        if not row.carriers & carrier:
            raise Malformed(f"{row.name} does not belong into this packet", "2.2.2.2")
        value, pos = row.kind.decode(data, pos + 1, stop)
        if row.rule is not None and not row.rule(value):
            raise Violation(f"{row.name} has the forbidden value {value!r}", row.clause or row.section)
        if row.name not in found:
            found[row.name] = [value] if row.is_list else value
        elif row.repeats_in & carrier:
            found[row.name].append(value)
        else:
            raise Violation(f"{row.name} is given twice", row.section)
    return cast(Properties, found), stop


def forwardable(data: bytes, pos: int, end: int) -> bytes:
    """The properties of a PUBLISH as received, in their order and without the length, less what is bound anew.

    Topic Alias and Subscription Identifier belong to one connection and Message Expiry Interval counts down
    [MQTT-3.3.2-6]; all the rest goes to the subscribers unaltered ([MQTT-3.3.2-4], -15 to -18, -20).  The
    block must have passed ``decode_properties``.
    """
    pos, stop = _block(data, pos, end)
    kept = []
    while pos < stop:
        start = pos
        _, pos = _TABLE[data[start]].kind.decode(data, start + 1, stop)
        if data[start] not in _REBOUND:
            kept.append(data[start:pos])
    return b"".join(kept)


def user_properties(properties: bytes) -> list[tuple[str, str]]:
    """Names and texts of a PUBLISH's properties, in the order in which they were sent; a name may stand there twice.

    The block comes without its length, as the log keeps it; one that another version wrote may not be understood, and
    has none.
    """
    if not properties:
        return []
    block = encode_varint(len(properties)) + properties
    try:
        found, _end = decode_properties(block, 0, len(block), PacketType.PUBLISH)
    except (ProtocolError, ValueError):
        return []
    return found.get("user_property", [])


def encode_properties(properties: Properties) -> bytes:
    """The block with its length, in the order of the mapping; an empty one is a single zero [MQTT-2.2.2-1]."""
    if not properties:
        return b"\0"
    parts = []
    for name, value in properties.items():
        identifier, row = _BY_NAME[name]
        for item in cast("list[Any]", value) if row.is_list else (value,):
            parts.append(identifier)
            parts.append(row.kind.encode(item))
    block = b"".join(parts)
    return encode_varint(len(block)) + block
