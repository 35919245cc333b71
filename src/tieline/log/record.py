"""What the log keeps: one record per captured message, one occurrence per event of the broker.

Both are written as MessagePack arrays, field by field in the order below.  A reader that meets a longer array ignores
what it does not know, so fields are only ever added at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from hashlib import blake2b
from typing import Any  # Any: what there is to say depends on the kind of event

from msgspec import Struct, defstruct
from msgspec.structs import fields

Value = float | int | bool | str


class Record(Struct, array_like=True):
    """One message of a captured topic, as it arrived."""

    #: When it arrived, in nanoseconds since 1970.
    received: int
    #: The client id of who sent it.
    publisher: str
    #: A number that changes with every new session of that client id, also across restarts.
    epoch: int
    #: The packet id of a QoS 1 or 2 message; 0 for QoS 0.
    packet_id: int
    #: The publisher says that it has sent this before.
    dup: bool
    qos: int
    retain: bool
    #: How urgent it is, 0 to 3, and what the configuration calls that level.
    level: int
    class_: str
    topic: str
    payload: bytes
    #: MQTT 5 properties that travel with the message, encoded as on the wire, without their length.
    properties: bytes
    #: Of topic and payload: what a publisher sends again looks the same.
    digest: bytes
    #: What the message says, where an event type is declared for its topic; attributes it lacks are left out.  Written
    #: only where the message alone does not tell (Sparkplug), and by earlier versions; otherwise set by the reader.
    attributes: dict[str, Value] | None = None
    #: The place in the log; not part of the array, set by the reader.
    offset: int = -1


class Occurrence(Struct, array_like=True):
    """One event of the broker, or what passed between a publisher and a subscriber in one period."""

    #: When, in nanoseconds since 1970; for a period its end.
    time: int
    #: connect, disconnect, subscribe, unsubscribe, drop, traffic, alarm.
    kind: str
    #: Whose: the client id; of traffic, the subscriber's.
    client: str
    topic: str = ""
    #: What else there is to say, by name.
    detail: dict[str, Any] = {}
    #: The place in the stream; not part of the array, set by the reader.
    offset: int = -1


def record_up_to(names: Collection[str]) -> type[Struct]:
    """The type of records of which nothing is wanted behind the last of these fields; it has no offset.

    What follows in the array is skipped by the decoder.  ``attributes`` come last, and cost more than all others.
    """
    known = Record.__struct_fields__
    return _record_of(max((known.index(name) for name in names), default=0) + 1)


@cache
def _record_of(count: int) -> type[Struct]:
    if "attributes" in Record.__struct_fields__[:count]:
        return Record
    first = [(field.name, field.type) for field in fields(Record)[:count]]
    # numbers and texts refer to nothing: the collector need not follow them
    return defstruct("ShortRecord", first, array_like=True, gc=False)


def digest_of(topic: bytes, payload: bytes) -> bytes:
    """Eight bytes that are the same for the same message; the zero keeps ``a``+``bc`` and ``ab``+``c`` apart."""
    return blake2b(topic + b"\0" + payload, digest_size=8).digest()
