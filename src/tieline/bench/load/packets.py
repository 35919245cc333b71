"""The few packets the generator sends, encoded here and not by ``tieline.wire``.

A generator that shared its encoder with one of the brokers would share that broker's mistakes too.
"""

from __future__ import annotations

from collections.abc import Sequence

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK = 0x20, 0x30, 0x40, 0x50, 0x62, 0x70, 0x90
DISCONNECT = b"\xe0\x00"


def varint(number: int) -> bytes:
    """Remaining length."""
    out = bytearray()
    while True:
        number, low = divmod(number, 128)
        out.append(low | 0x80 if number else low)
        if not number:
            return bytes(out)


def text(value: str) -> bytes:
    """A length-prefixed string."""
    raw = value.encode()
    return len(raw).to_bytes(2, "big") + raw


def framed(first: int, body: bytes) -> bytes:
    """A complete packet."""
    return bytes([first]) + varint(len(body)) + body


def connect(client_id: str, *, version: int, keep_alive_s: int = 600, clean: bool = True) -> bytes:
    """CONNECT without will, user or property; ``clean`` begins a session anew and, in 3.1.1, ends it with itself."""
    properties = b"\x00" if version == 5 else b""
    head = text("MQTT") + bytes([version, 0x02 if clean else 0x00]) + keep_alive_s.to_bytes(2, "big")
    return framed(0x10, head + properties + text(client_id))


def subscribe(packet_id: int, filters: Sequence[str], *, qos: int, version: int) -> bytes:
    """SUBSCRIBE to all filters at one QoS."""
    properties = b"\x00" if version == 5 else b""
    body = b"".join(text(name) + bytes([qos]) for name in filters)
    return framed(0x82, packet_id.to_bytes(2, "big") + properties + body)


def length_of(data: bytes) -> int:
    """Size of the packet at the start of ``data``, 0 while its header is incomplete."""
    size = shift = 0
    for at in range(1, min(len(data), 5)):
        size |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return size + at + 1
        shift += 7
    return 0
