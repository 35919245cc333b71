"""Packets built by hand, for what the encoder refuses to write."""

from __future__ import annotations

from tieline.wire.fields import encode_varint

CONNECT, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 0x10, 0x30, 0x40, 0x50, 0x62, 0x70
SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT, AUTH = 0x82, 0xA2, 0xC0, 0xE0, 0xF0

#: Property identifiers that the tests need as numbers.
PAYLOAD_FORMAT_INDICATOR, CONTENT_TYPE, RESPONSE_TOPIC, SUBSCRIPTION_IDENTIFIER = 0x01, 0x03, 0x08, 0x0B
REQUEST_PROBLEM_INFORMATION, RECEIVE_MAXIMUM, USER_PROPERTY, MAXIMUM_PACKET_SIZE = 0x17, 0x21, 0x26, 0x27
TOPIC_ALIAS = 0x23

#: Ill-formed UTF-8: a lone continuation, an overlong slash, both ends of the surrogates, above U+10FFFF, cut short.
ILL_FORMED = (b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xe2\x82")


def packet(first: int, *parts: bytes) -> bytes:
    """A packet with this first byte and its remaining length."""
    body = b"".join(parts)
    return bytes([first]) + encode_varint(len(body)) + body


def u16(number: int) -> bytes:
    """A two byte integer."""
    return number.to_bytes(2, "big")


def text(content: str | bytes) -> bytes:
    """Length-prefixed text or binary data, valid or not."""
    data = content.encode() if isinstance(content, str) else content
    return u16(len(data)) + data


def properties(version: int, *encoded: bytes) -> bytes:
    """A property block; nothing at all in 3.1.1, which has none."""
    block = b"".join(encoded)
    return encode_varint(len(block)) + block if version == 5 else b""


def connect(  # one argument per field
    version: int = 5,
    *payload: bytes,
    name: str | bytes = "MQTT",
    level: int | None = None,
    flags: int = 0x02,
    props: bytes = b"",
) -> bytes:
    """CONNECT with a payload of any shape."""
    return packet(
        CONNECT,
        text(name),
        bytes([version if level is None else level, flags]),
        u16(0),
        properties(version, props),
        *payload,
    )


def publish(  # one argument per field
    version: int,
    topic: str | bytes,
    payload: bytes = b"x",
    *,
    flags: int = 0,
    packet_id: int | None = None,
    props: bytes = b"",
) -> bytes:
    """PUBLISH with any flags and any topic bytes."""
    ident = b"" if packet_id is None else u16(packet_id)
    return packet(PUBLISH | flags, text(topic), ident, properties(version, props), payload)


def subscribe(version: int, *pairs: bytes, packet_id: int = 1, first: int = SUBSCRIBE, props: bytes = b"") -> bytes:
    """SUBSCRIBE whose payload is given as encoded filter and options."""
    return packet(first, u16(packet_id), properties(version, props), *pairs)


def unsubscribe(version: int, *filters: bytes, packet_id: int = 1, first: int = UNSUBSCRIBE) -> bytes:
    """UNSUBSCRIBE whose filters are given encoded."""
    return packet(first, u16(packet_id), properties(version), *filters)
