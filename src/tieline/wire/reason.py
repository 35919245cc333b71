"""Reason codes: their names, which packet may carry which, and what MQTT 3.1.1 says instead."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from tieline.wire.packet_type import PacketType


class Reason(IntEnum):
    """Every MQTT 5 reason code [2.4]; 0x80 and above mean failure."""

    SUCCESS = 0x00
    NORMAL_DISCONNECTION = 0x00
    GRANTED_QOS_0 = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL_MESSAGE = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    REAUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2


def _table(codes: str) -> dict[int, Reason]:
    return {code: Reason(code) for code in bytes.fromhex(codes)}


_PUBLISH_ACK: Final = _table("00 10 80 83 87 90 91 97 99")
_RELEASE_ACK: Final = _table("00 92")

#: The codes a packet may carry, by number.  0x8C is in DISCONNECT's set because the table of section 2.4
#: lists it there, although table 3-10 leaves it out.
ALLOWED: Final[dict[PacketType, dict[int, Reason]]] = {
    PacketType.CONNACK: _table("00 80 81 82 83 84 85 86 87 88 89 8A 8C 90 95 97 99 9A 9B 9C 9D 9F"),
    PacketType.PUBACK: _PUBLISH_ACK,
    PacketType.PUBREC: _PUBLISH_ACK,
    PacketType.PUBREL: _RELEASE_ACK,
    PacketType.PUBCOMP: _RELEASE_ACK,
    PacketType.SUBACK: _table("00 01 02 80 83 87 8F 91 97 9E A1 A2"),
    PacketType.UNSUBACK: _table("00 11 80 83 87 8F 91"),
    PacketType.DISCONNECT: _table(
        "00 04 80 81 82 83 87 89 8B 8C 8D 8E 8F 90 93 94 95 96 97 98 99 9A 9B 9C 9D 9E 9F A0 A1 A2"
    ),
    PacketType.AUTH: _table("00 18 19"),
}

#: The return codes of a 3.1.1 CONNACK (3.1.1 table 3.1), each as the reason that means the same.
RETURN_CODES: Final = (
    Reason.SUCCESS,
    Reason.UNSUPPORTED_PROTOCOL_VERSION,
    Reason.CLIENT_IDENTIFIER_NOT_VALID,
    Reason.SERVER_UNAVAILABLE,
    Reason.BAD_USER_NAME_OR_PASSWORD,
    Reason.NOT_AUTHORIZED,
)

_SERVER_UNAVAILABLE: Final = 3
_NOT_AUTHORIZED: Final = 5
_RETURN_CODE_OF: Final = {reason: code for code, reason in enumerate(RETURN_CODES)} | {
    Reason.BANNED: _NOT_AUTHORIZED,
    Reason.BAD_AUTHENTICATION_METHOD: _NOT_AUTHORIZED,
}


def connack_return_code(reason: Reason) -> int:
    """The 3.1.1 CONNACK return code that comes nearest; "server unavailable" when 3.1.1 has no word for it."""
    return _RETURN_CODE_OF.get(reason, _SERVER_UNAVAILABLE)
