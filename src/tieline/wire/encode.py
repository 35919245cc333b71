"""A packet to its bytes; what the version cannot say is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final  # Any: each encoder takes the packet that the table names it for

from tieline.wire.fields import encode_binary, encode_utf8, encode_varint
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    Will,
)
from tieline.wire.properties import Properties, encode_properties
from tieline.wire.reason import Reason, connack_return_code


def _properties(properties: Properties, version: int) -> bytes:
    return encode_properties(properties) if version == 5 else b""


def _connect(packet: Connect, version: int) -> tuple[int, bytes]:
    version = packet.version
    will = packet.will
    flags = (
        packet.clean_start << 1
        | (packet.password is not None) << 6
        | (packet.username is not None) << 7
        | (0 if will is None else 0x04 | will.qos << 3 | will.retain << 5)
    )
    parts = [
        encode_utf8("MQTT"),
        bytes((version, flags)),
        packet.keep_alive.to_bytes(2),
        _properties(packet.properties, version),
        encode_utf8(packet.client_id),
    ]
    if will is not None:
        parts.append(_will(will, version))
    if packet.username is not None:
        parts.append(encode_utf8(packet.username))
    if packet.password is not None:
        parts.append(encode_binary(packet.password))
    return 0, b"".join(parts)


def _will(will: Will, version: int) -> bytes:
    return _properties(will.properties, version) + encode_utf8(will.topic) + encode_binary(will.payload)


def _connack(packet: Connack, version: int) -> tuple[int, bytes]:
    if version != 5:
        return 0, bytes((packet.session_present, connack_return_code(packet.reason)))
    return 0, bytes((packet.session_present, packet.reason)) + encode_properties(packet.properties)


def _publish(packet: Publish, version: int) -> tuple[int, bytes]:
    flags = packet.dup << 3 | packet.qos << 1 | packet.retain
    topic = encode_utf8(packet.topic)
    packet_id = packet.packet_id.to_bytes(2) if packet.qos else b""  # [MQTT-2.2.1-2]
    return flags, b"".join((topic, packet_id, _properties(packet.properties, version), packet.payload))


def _outcome(reason: Reason, properties: Properties, version: int) -> bytes:
    """Reason and properties at the end of a packet, in the shortest form.

    Plain success is said by nothing at all, and where there are no properties there is no length of them
    [3.4.2.1, 3.14.2.1].
    """
    if version != 5 or not (reason or properties):
        return b""
    if not properties:
        return reason.to_bytes()
    return reason.to_bytes() + encode_properties(properties)


def _acknowledgement(packet: Puback | Pubrec | Pubcomp, version: int) -> tuple[int, bytes]:
    return 0, packet.packet_id.to_bytes(2) + _outcome(packet.reason, packet.properties, version)


def _pubrel(packet: Pubrel, version: int) -> tuple[int, bytes]:
    return 2, packet.packet_id.to_bytes(2) + _outcome(packet.reason, packet.properties, version)


def _subscribe(packet: Subscribe, version: int) -> tuple[int, bytes]:
    parts = [packet.packet_id.to_bytes(2), _properties(packet.properties, version)]
    for subscription in packet.subscriptions:
        parts.append(encode_utf8(subscription.filter))
        parts.append(_options(subscription, version).to_bytes())
    return 2, b"".join(parts)


def _options(subscription: Subscription, version: int) -> int:
    if version != 5:
        return subscription.qos
    return (
        subscription.qos
        | subscription.no_local << 2
        | subscription.retain_as_published << 3
        | subscription.retain_handling << 4
    )


def _suback(packet: Suback, version: int) -> tuple[int, bytes]:
    # 3.1.1 knows one failure [3.1.1 MQTT-3.9.3-2].
    reasons = packet.reasons if version == 5 else [min(reason, 0x80) for reason in packet.reasons]
    return 0, packet.packet_id.to_bytes(2) + _properties(packet.properties, version) + bytes(reasons)


def _unsubscribe(packet: Unsubscribe, version: int) -> tuple[int, bytes]:
    filters = b"".join(map(encode_utf8, packet.filters))
    return 2, packet.packet_id.to_bytes(2) + _properties(packet.properties, version) + filters


def _unsuback(packet: Unsuback, version: int) -> tuple[int, bytes]:
    packet_id = packet.packet_id.to_bytes(2)
    if version != 5:
        return 0, packet_id
    return 0, packet_id + encode_properties(packet.properties) + bytes(packet.reasons)


def _ping(_packet: Pingreq | Pingresp, _version: int) -> tuple[int, bytes]:
    return 0, b""


def _disconnect(packet: Disconnect, version: int) -> tuple[int, bytes]:
    return 0, _outcome(packet.reason, packet.properties, version)


def _auth(packet: Auth, version: int) -> tuple[int, bytes]:
    if version != 5:
        raise ValueError("MQTT 3.1.1 has no AUTH packet")
    return 0, _outcome(packet.reason, packet.properties, version)


#: How to write each class: its number, and the function that gives its flag bits and its body.
_ENCODERS: Final[dict[type[Packet], tuple[PacketType, Callable[[Any, int], tuple[int, bytes]]]]] = {
    Connect: (PacketType.CONNECT, _connect),
    Connack: (PacketType.CONNACK, _connack),
    Publish: (PacketType.PUBLISH, _publish),
    Puback: (PacketType.PUBACK, _acknowledgement),
    Pubrec: (PacketType.PUBREC, _acknowledgement),
    Pubrel: (PacketType.PUBREL, _pubrel),
    Pubcomp: (PacketType.PUBCOMP, _acknowledgement),
    Subscribe: (PacketType.SUBSCRIBE, _subscribe),
    Suback: (PacketType.SUBACK, _suback),
    Unsubscribe: (PacketType.UNSUBSCRIBE, _unsubscribe),
    Unsuback: (PacketType.UNSUBACK, _unsuback),
    Pingreq: (PacketType.PINGREQ, _ping),
    Pingresp: (PacketType.PINGRESP, _ping),
    Disconnect: (PacketType.DISCONNECT, _disconnect),
    Auth: (PacketType.AUTH, _auth),
}


def encode(packet: Packet, version: int) -> bytes:
    """The complete packet for a connection of this version, 4 or 5 (a CONNECT is written in its own).

    The caller answers for the sense of the values; what the format cannot hold (a string above 65,535 bytes,
    a number out of range) raises ``ValueError`` or ``OverflowError``.
    """
    number, encoder = _ENCODERS[type(packet)]
    flags, body = encoder(packet, version)
    return bytes((number << 4 | flags,)) + encode_varint(len(body)) + body
