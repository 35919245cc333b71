"""What one number of a stream carries: one item of the core as bytes.

::

    0, flags, level, taxon, [milliseconds until it expires], publisher, topic, properties, payload
    1, version, level, publisher, QoS 0 packets as they came, back to back

Flags are the QoS, 4 for retain and 8 for an expiry.  Levels are those that the accepting broker gave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tieline.core.message import Message, Origin, Queued
from tieline.overlay.frame import LEVELS, BadFrame, Reader, put, put_bytes

_RETAIN, _EXPIRES = 4, 8


class Run(NamedTuple):
    """QoS 0 packets, as one publisher sent them."""

    packets: bytes
    version: int
    origin: Origin
    level: int


def write_parcel(item: Queued, now: float) -> bytes:
    """An item as bytes."""
    publisher = put_bytes(item.origin.client.encode())
    if not isinstance(item, Message):
        return b"".join((put(1, item.version, item.level), publisher, item.packets))
    flags = item.qos | (_RETAIN if item.retain else 0)
    expiry = b""
    if item.expires is not None:
        flags |= _EXPIRES
        expiry = put(max(0, int((item.expires - now) * 1000)))
    head = put(0, flags, item.level, item.taxon)
    return b"".join((head, expiry, publisher, put_bytes(item.topic), put_bytes(item.properties), item.payload))


def read_parcel(parcel: bytes, origin_of: Callable[[str], Origin], now: float) -> Message | Run:
    """What a parcel holds; raises BadFrame.  ``origin_of`` knows publishers by their client ids."""
    reader = Reader(parcel)
    kind = reader.integer()
    if kind == 1:
        version, level, origin = reader.integer(), reader.integer(), origin_of(reader.text())
        if version not in (4, 5) or level >= LEVELS:
            raise BadFrame(f"packets of version {version} and level {level}")
        return Run(reader.rest(), version, origin, level)
    if kind:
        raise BadFrame(f"a parcel of kind {kind}")
    flags, level, taxon = reader.integer(), reader.integer(), reader.integer()
    if flags > 15 or flags & 3 == 3 or level >= LEVELS or taxon >= LEVELS:
        raise BadFrame(f"a message with flags {flags}, level {level} and taxon {taxon}")
    expires = now + reader.integer() / 1000 if flags & _EXPIRES else None
    origin = origin_of(reader.text())
    topic, properties, payload = reader.raw(), reader.raw(), reader.rest()
    return Message(
        topic,
        payload,
        flags & 3,
        retain=bool(flags & _RETAIN),
        properties=properties,
        expires=expires,
        origin=origin,
        level=level,
        at=now,
        taxon=taxon,
    )
