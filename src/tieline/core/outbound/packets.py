"""One message as the bytes of one PUBLISH, with everything bound that must be bound late.

Topic aliases, subscription identifiers and what is left of the expiry depend on the connection and on the moment; the
packet id comes from the caller.
"""

from __future__ import annotations

from math import ceil

from tieline.core.client import Connection
from tieline.core.holdings import TOPIC_BYTES, Kind
from tieline.core.message import Item, Message, publish_bytes
from tieline.core.receiver import Grant
from tieline.wire.frames import stamp

#: The first byte of each PUBLISH, by flags.
FIRST = [bytes((0x30 | flags,)) for flags in range(16)]
DUP = 0x08
#: More than a time in seconds is rounded by, for centuries.
_ROUNDING_S = 1e-6


def flags_of(message: Message, grant: Grant, qos: int) -> int:
    """The flags of a PUBLISH that is sent for the first time.

    DUP is 0 ([MQTT-3.3.1-2], [MQTT-3.3.1-3], [MQTT311-4.3.1-1]); QoS as granted ([MQTT-3.8.4-8], [MQTT311-3.8.4-6]);
    RETAIN for what was retained ([MQTT311-3.3.1-8]) or as published ([MQTT-3.3.1-13]), else 0 ([MQTT-3.3.1-12],
    [MQTT311-3.3.1-9]).
    """
    return qos << 1 | (grant.set_retain or (message.retain and grant.keep_retain))


def properties_of(item: Item, grant: Grant, version: int, now: float) -> bytes | None:
    """What the packet's properties are, without a topic alias; None in 3.1.1, where it has none."""
    if version != 5:
        return None
    properties = item.properties + grant.identifiers
    if item.expires is not None:
        # [MQTT-3.3.2-6] what is left of the interval; an unacknowledged message may be sent again after its end.  The
        # sum of a time and an interval may be rounded up, and must not become a second more than was said.
        properties += b"\x02" + max(0, ceil(item.expires - now - _ROUNDING_S)).to_bytes(4, "big")
    return properties


def packet_size(conn: Connection, message: Message, grant: Grant, now: float) -> int:
    """What a message takes as a packet for one connection, as its topic aliases are now."""
    qos = min(message.qos, grant.qos)
    flags = flags_of(message, grant, qos)
    return len(_packet(conn, message, grant, message.payload, flags, 1 if qos else 0, now)[0])


def assured_pieces(
    conn: Connection, message: Message, grant: Grant, flags: int, packet_id: int
) -> tuple[bytes, ...] | None:
    """The packet of a QoS 1 or 2 message from its ready-made parts; None if something else has to be bound."""
    version = conn.version
    if not conn.raw_version or (version == 5 and (message.expires is not None or grant.identifiers)):
        return None
    head, tail = message.parts(version)
    if version == 5 and not message.properties:
        # the packet id, and a zero for no properties
        return FIRST[flags], head, (packet_id << 8).to_bytes(3, "big"), tail
    return FIRST[flags], head, packet_id.to_bytes(2, "big"), tail


def bound_packet(  # one argument per thing that is bound
    conn: Connection, item: Item, grant: Grant, payload: bytes, flags: int, packet_id: int, now: float
) -> bytes | None:
    """The packet of a message for one connection; None if it is larger than the client takes."""
    data, new_alias = _packet(conn, item, grant, payload, flags, packet_id, now)
    if len(data) > conn.max_packet:
        return None
    if new_alias:
        conn.alias_out[item.topic] = new_alias
        size = len(item.topic) + TOPIC_BYTES
        conn.alias_bytes += size
        conn.owner.take(Kind.CONNECTIONS, size)
    return data


def _packet(  # as above
    conn: Connection, item: Item, grant: Grant, payload: bytes, flags: int, packet_id: int, now: float
) -> tuple[bytes, int]:
    """The packet, and the topic alias that it would set; 0 for none."""
    topic = item.topic
    properties = properties_of(item, grant, conn.version, now)
    new_alias = 0
    if properties is not None:
        alias = conn.alias_out.get(topic)
        if alias is not None:
            topic = b""
            properties += b"\x23" + alias.to_bytes(2, "big")
        elif len(conn.alias_out) < conn.alias_out_max:
            new_alias = len(conn.alias_out) + 1
            properties += b"\x23" + new_alias.to_bytes(2, "big")
    data = publish_bytes(0x30 | flags, topic, packet_id, properties, payload)
    if conn.has_header:
        data = stamp(data, item.level)
    return data, new_alias
