"""What is published on the ring, and what is asked for: points in the space of an event type, boxes, and topics.

A hop decides by an event where it goes, without looking into its payload: who publishes has read the attributes once,
and the point travels with the message.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from tieline.match.box import Box
from tieline.match.merge.digest import Routing
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.wire.topics import matches

#: Attributes of an event type that a hop may be asked to look at.
MOST_ATTRIBUTES: Final = 64
#: The grid of each declared event type, which all brokers of a ring have to declare alike.
Spaces = Mapping[str, Routing]


class Event(NamedTuple):
    """A publication as the ring routes it: by its topic, and by its place in the space of its type."""

    topic: str
    payload: bytes = b""
    #: The name of its event type and its place in that one's space; without a declared type there is none.
    type: str = ""
    point: tuple[float, ...] = ()

    def __repr__(self) -> str:
        where = f" at {self.point}" if self.point else ""
        return f"<Event {self.topic} {self.type}{where}, {len(self.payload)} bytes>"


class RingSubscription(NamedTuple):
    """One thing that a broker's clients ask for: a filter, and a box of a declared type if not all of it is meant.

    A condition that no declared type makes a box of is left out: the broker that asks decides about each message.
    """

    filter: str
    type: str = ""
    box: Box | None = None

    def may_want(self, event: Event) -> bool:
        """Whether an event is meant, as far as a broker can say without its payload."""
        if not matches(self.filter, event.topic):
            return False
        if self.box is None or self.type != event.type or len(event.point) != len(self.box.lo):
            return self.box is None
        return self.box.contains(event.point)


class Sent(NamedTuple):
    """An event under way: its number is so much smaller than that of the batch in which it travels."""

    back: int
    event: Event


def put_sent(sent: Sent) -> bytes:
    """An event under way as it travels."""
    return put(sent.back) + put_event(sent.event)


def read_sent(reader: Reader) -> Sent:
    """An event under way from its bytes; :class:`BadFrame` if it is none."""
    return Sent(reader.integer(), read_event(reader))


def put_event(event: Event) -> bytes:
    """An event as it travels."""
    head = put_bytes(event.topic.encode()) + put_bytes(event.type.encode()) + put(len(event.point))
    return head + struct.pack(f"<{len(event.point)}d", *event.point) + put_bytes(event.payload)


def read_event(reader: Reader) -> Event:
    """An event from its bytes; :class:`BadFrame` if it is none."""
    topic, kind, count = reader.text(), reader.text(), reader.integer()
    if count > MOST_ATTRIBUTES:
        raise BadFrame(f"an event of {count} attributes")
    point = struct.unpack(f"<{count}d", reader.take(8 * count))
    if any(map(math.isnan, point)):
        raise BadFrame("an event at a place that is no number")
    return Event(topic, reader.raw(), kind, point)
