"""The body of one packet to the object it stands for, or the refusal that the specification asks for.

Theory of operation: ``decode`` checks what all packets share (the type and its flag bits) and hands the body
to the function for that type.  Each of those reads fields in order with functions that know where the body
ends, so no read can leave it, and finishes with ``_end``: bytes that nobody asked for are malformed too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.wire.connect import decode_connect
from tieline.wire.errors import Malformed, Violation
from tieline.wire.fields import decode_utf8
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
)
from tieline.wire.properties import Properties, decode_properties, forwardable
from tieline.wire.reason import ALLOWED, RETURN_CODES, Reason
from tieline.wire.topics import SHARE


def _packet_id(body: bytes, pos: int = 0) -> int:
    if len(body) < pos + 2:
        raise Malformed("a packet has no room for its packet identifier", "2.2.1")
    packet_id = body[pos] << 8 | body[pos + 1]
    if not packet_id:
        raise Violation("a packet identifier is 0", "MQTT-2.2.1-3")
    return packet_id


def _end(body: bytes, pos: int) -> None:
    if pos != len(body):
        raise Malformed(f"a packet has {len(body) - pos} bytes too many", "2.1.4")


def _reason(packet: PacketType, code: int, clause: str) -> Reason:
    reason = ALLOWED[packet].get(code)
    if reason is None:
        raise Violation(f"{packet.name} cannot carry reason code 0x{code:02x}", clause)
    return reason


def _connack(body: bytes, version: int) -> Connack:
    if len(body) < 2:
        raise Malformed("CONNACK is too short", "3.2.2")
    if body[0] > 1:
        raise Malformed("CONNACK sets a reserved flag", "MQTT-3.2.2-1")
    if version == 5:
        reason = _reason(PacketType.CONNACK, body[1], "MQTT-3.2.2-8")
        properties, pos = decode_properties(body, 2, len(body), PacketType.CONNACK)
    else:
        if body[1] >= len(RETURN_CODES):
            raise Violation(f"CONNACK has the reserved return code {body[1]}", "3.1.1 3.2.2.3")
        reason, properties, pos = RETURN_CODES[body[1]], Properties(), 2
    _end(body, pos)
    if reason and body[0]:
        raise Violation("CONNACK refuses the connection and yet has a session", "MQTT-3.2.2-6")
    return Connack(session_present=body[0] == 1, reason=reason, properties=properties)


def _publish(flags: int, body: bytes, version: int) -> Publish:
    qos = flags >> 1 & 3
    if qos == 3:
        raise Malformed("PUBLISH has QoS 3", "MQTT-3.3.1-4")
    if not qos and flags & 8:
        raise Malformed("PUBLISH has DUP set at QoS 0", "MQTT-3.3.1-2")
    end = len(body)
    topic, pos = decode_utf8(body, 0, end)
    if "+" in topic or "#" in topic:
        raise Violation("PUBLISH has a wildcard in its topic name", "MQTT-3.3.2-2")
    packet_id = 0
    if qos:
        packet_id = _packet_id(body, pos)
        pos += 2
    if version != 5:
        if not topic:
            raise Violation("PUBLISH has an empty topic name", "MQTT-4.7.3-1")
        return Publish(
            topic=topic, payload=body[pos:], qos=qos, retain=flags & 1 == 1, dup=flags & 8 == 8, packet_id=packet_id
        )
    start = pos
    properties, pos = decode_properties(body, pos, end, PacketType.PUBLISH)
    if not topic and "topic_alias" not in properties:
        raise Violation("PUBLISH has neither a topic name nor a topic alias", "3.3.2.1")
    return Publish(
        topic=topic,
        payload=body[pos:],
        qos=qos,
        retain=flags & 1 == 1,
        dup=flags & 8 == 8,
        packet_id=packet_id,
        properties=properties,
        forward=forwardable(body, start, end) if properties else b"",
    )


def _acknowledgement(
    packet: PacketType, make: type[Puback | Pubrec | Pubrel | Pubcomp], clause: str
) -> Callable[[bytes, int], Puback | Pubrec | Pubrel | Pubcomp]:
    """PUBACK, PUBREC, PUBREL and PUBCOMP differ only in their type and their reason codes."""

    def decode(body: bytes, version: int) -> Puback | Pubrec | Pubrel | Pubcomp:
        packet_id = _packet_id(body)
        length = len(body)
        if length == 2:
            return make(packet_id=packet_id)
        if version != 5:
            _end(body, 2)
        reason = _reason(packet, body[2], clause)
        if length == 3:
            # Below four bytes there is no property length and no property [3.4.2.2.1].
            return make(packet_id=packet_id, reason=reason)
        properties, pos = decode_properties(body, 3, length, packet)
        _end(body, pos)
        return make(packet_id=packet_id, reason=reason, properties=properties)

    return decode


def _subscribe(body: bytes, version: int) -> Subscribe:
    packet_id = _packet_id(body)
    end = len(body)
    properties, pos = decode_properties(body, 2, end, PacketType.SUBSCRIBE) if version == 5 else (Properties(), 2)
    subscriptions = []
    while pos < end:
        filter, pos = decode_utf8(body, pos, end)
        if pos >= end:
            raise Malformed("SUBSCRIBE has a topic filter without options", "3.8.3")
        subscriptions.append(_subscription(filter, body[pos], version))
        pos += 1
    if not subscriptions:
        raise Violation("SUBSCRIBE has no topic filter", "MQTT-3.8.3-2")
    return Subscribe(packet_id=packet_id, subscriptions=tuple(subscriptions), properties=properties)


def _subscription(filter: str, options: int, version: int) -> Subscription:
    qos = options & 3
    if version != 5:
        if options > 2:
            raise Malformed("SUBSCRIBE requests a reserved QoS", "3.1.1 MQTT-3.8.3-4")
        return Subscription(filter=filter, qos=qos)
    if options & 0xC0:
        raise Malformed("SUBSCRIBE sets a reserved option bit", "MQTT-3.8.3-5")
    if qos == 3:
        raise Violation("SUBSCRIBE has Maximum QoS 3", "3.8.3.1")
    retain_handling = options >> 4
    if retain_handling == 3:
        raise Violation("SUBSCRIBE has Retain Handling 3", "3.8.3.1")
    no_local = options & 4 == 4
    if no_local and filter.startswith(SHARE):
        raise Violation("SUBSCRIBE sets No Local on a shared subscription", "MQTT-3.8.3-4")
    return Subscription(
        filter=filter,
        qos=qos,
        no_local=no_local,
        retain_as_published=options & 8 == 8,
        retain_handling=retain_handling,
    )


def _suback(body: bytes, version: int) -> Suback:
    packet_id = _packet_id(body)
    reasons: tuple[int, ...]
    if version == 5:
        properties, pos = decode_properties(body, 2, len(body), PacketType.SUBACK)
        reasons = tuple(_reason(PacketType.SUBACK, code, "MQTT-3.9.3-2") for code in body[pos:])
    else:
        properties, reasons = Properties(), tuple(body[2:])
        if any(code > 2 and code != 0x80 for code in reasons):
            raise Violation("SUBACK has a reserved return code", "3.1.1 MQTT-3.9.3-2")
    if not reasons:
        raise Violation("SUBACK has no reason code", "MQTT-3.8.4-6")
    return Suback(packet_id=packet_id, reasons=reasons, properties=properties)


def _unsubscribe(body: bytes, version: int) -> Unsubscribe:
    packet_id = _packet_id(body)
    end = len(body)
    properties, pos = decode_properties(body, 2, end, PacketType.UNSUBSCRIBE) if version == 5 else (Properties(), 2)
    filters = []
    while pos < end:
        filter, pos = decode_utf8(body, pos, end)
        filters.append(filter)
    if not filters:
        raise Violation("UNSUBSCRIBE has no topic filter", "MQTT-3.10.3-2")
    return Unsubscribe(packet_id=packet_id, filters=tuple(filters), properties=properties)


def _unsuback(body: bytes, version: int) -> Unsuback:
    packet_id = _packet_id(body)
    if version != 5:
        _end(body, 2)
        return Unsuback(packet_id=packet_id)
    properties, pos = decode_properties(body, 2, len(body), PacketType.UNSUBACK)
    reasons = tuple(_reason(PacketType.UNSUBACK, code, "MQTT-3.11.3-2") for code in body[pos:])
    if not reasons:
        raise Violation("UNSUBACK has no reason code", "3.11.3")
    return Unsuback(packet_id=packet_id, reasons=reasons, properties=properties)


def _pingreq(body: bytes, _version: int) -> Pingreq:
    _end(body, 0)
    return Pingreq()


def _pingresp(body: bytes, _version: int) -> Pingresp:
    _end(body, 0)
    return Pingresp()


def _disconnect(body: bytes, version: int) -> Disconnect:
    if version != 5:
        _end(body, 0)
    if not body:
        return Disconnect()
    reason = _reason(PacketType.DISCONNECT, body[0], "MQTT-3.14.2-1")
    if len(body) == 1:
        return Disconnect(reason=reason)
    properties, pos = decode_properties(body, 1, len(body), PacketType.DISCONNECT)
    _end(body, pos)
    return Disconnect(reason=reason, properties=properties)


def _auth(body: bytes, version: int) -> Auth:
    if version != 5:
        raise Malformed("packet type 15 is reserved in MQTT 3.1.1", "3.1.1 2.2.1")
    if not body:
        return Auth()
    reason = _reason(PacketType.AUTH, body[0], "MQTT-3.15.2-1")
    # Only Remaining Length 0 lets the properties be left out, but a lone reason code is as clear as in DISCONNECT.
    properties, pos = decode_properties(body, 1, len(body), PacketType.AUTH) if len(body) > 1 else (Properties(), 1)
    _end(body, pos)
    if "authentication_method" not in properties:
        raise Violation("AUTH does not name its authentication method", "3.15.2.2.2")
    return Auth(reason=reason, properties=properties)


def _connect(body: bytes, _version: int) -> Connect:
    return decode_connect(body)


_Decoder = Callable[[bytes, int], Packet]

#: All but PUBLISH, the one packet whose flag bits say something.
_DECODERS: Final[dict[PacketType, _Decoder]] = {
    PacketType.CONNECT: _connect,
    PacketType.CONNACK: _connack,
    PacketType.PUBACK: _acknowledgement(PacketType.PUBACK, Puback, "MQTT-3.4.2-1"),
    PacketType.PUBREC: _acknowledgement(PacketType.PUBREC, Pubrec, "MQTT-3.5.2-1"),
    PacketType.PUBREL: _acknowledgement(PacketType.PUBREL, Pubrel, "MQTT-3.6.2-1"),
    PacketType.PUBCOMP: _acknowledgement(PacketType.PUBCOMP, Pubcomp, "MQTT-3.7.2-1"),
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.SUBACK: _suback,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.UNSUBACK: _unsuback,
    PacketType.PINGREQ: _pingreq,
    PacketType.PINGRESP: _pingresp,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}

#: The clauses that single out the flag bits of one packet type; for all others it is MQTT-2.1.3-1.
_FLAG_CLAUSES: Final = {
    PacketType.PUBREL: "MQTT-3.6.1-1",
    PacketType.SUBSCRIBE: "MQTT-3.8.1-1",
    PacketType.UNSUBSCRIBE: "MQTT-3.10.1-1",
    PacketType.DISCONNECT: "MQTT-3.14.1-1",
    PacketType.AUTH: "MQTT-3.15.1-1",
}

#: Flag bits that are not free are 0000, and 0010 in these (table 2-2).
_FLAGS_0010: Final = frozenset({PacketType.PUBREL, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE})


def _by_first_byte() -> list[_Decoder | None]:
    """The decoder for each first byte, ``None`` where the flag bits or the type are not allowed."""
    table: list[_Decoder | None] = [None] * 256
    for packet, decoder in _DECODERS.items():
        table[packet << 4 | (2 if packet in _FLAGS_0010 else 0)] = decoder
    return table


_BY_FIRST_BYTE: Final = _by_first_byte()


def decode(first: int, body: bytes, version: int) -> Packet:
    """The packet with this first byte and everything behind its remaining length.

    ``version`` is 4 or 5 and does not matter for a CONNECT.  Whatever the bytes are, the result is a packet
    or a ``ProtocolError``.
    """
    if 0x30 <= first < 0x40:  # PUBLISH, with any flags
        return _publish(first & 15, body, version)
    decoder = _BY_FIRST_BYTE[first]
    if decoder is None:
        if first < 0x10:
            raise Malformed("packet type 0 is reserved", "2.1.2")
        packet = PacketType(first >> 4)
        raise Malformed(f"{packet.name} has flags {first & 15:04b}", _FLAG_CLAUSES.get(packet, "MQTT-2.1.3-1"))
    return decoder(body, version)
