"""What records say, read from them by the event types that were declared when they arrived.

Theory of operation
-------------------
A broker that captures a message does not look into it.  Whoever wants to know what it says reads it here, in its own
process, with the broker's own event types, limits included, so that the outcome is what the broker would have read.
The declarations are those of the record's time (:mod:`tieline.net.store.declarations`); later ones change nothing about
records that are there.

One kind of payload cannot be read that way: what a Sparkplug message says depends on a birth certificate that came
earlier, perhaps before the log began.  The broker knows it when the message arrives, and writes what it read into the
record.  So did brokers of earlier versions for all types.  What a record carries is never read anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from tieline.conf.quantities import Limit
from tieline.conf.schema import Content, Event, Settings
from tieline.log.record import Record, Value
from tieline.match.events import Events, EventType, ExtraNeeded
from tieline.net.store.declarations import Declaration
from tieline.net.store.schema import Damaged

#: Topics whose event types are remembered, for each declaration.
_MOST_TOPICS: Final = 10_000

TypeOf = Callable[[str], EventType | None]


class _Declared(msgspec.Struct, frozen=True):
    """What it takes to read messages as a broker does."""

    event: dict[str, Event]
    #: The order of the types is their rank, and this bounds what is searched in a payload.
    untyped_bytes: Limit


def declared_in(settings: Settings) -> str:
    """The event types of a broker, as its store keeps them."""
    if not settings.event:
        return ""
    return msgspec.json.encode(_Declared(settings.event, settings.content.untyped_bytes)).decode()


class DeclaredTypes:
    """The event types under which the records of a log arrived."""

    def __init__(self, declarations: Sequence[Declaration] = ()) -> None:
        self._declarations = list(declarations)
        self._firsts = [each.first_offset for each in declarations]
        #: The type of a topic under each declaration; made when a record of that time is read.
        self._types: list[TypeOf | None] = [None] * len(self._firsts)

    def __bool__(self) -> bool:
        """Whether anything was ever declared."""
        return bool(self._firsts)

    def read(self, offset: int, topic: str, payload: bytes, properties: bytes) -> dict[str, Value] | None:
        """What the message of a record that carries no attributes says; None if no type was declared for its topic."""
        place = bisect_right(self._firsts, offset) - 1
        if place < 0:
            return None
        type_of = self._types[place]
        if type_of is None:
            type_of = self._types[place] = _types(self._declarations[place])
        event = type_of(topic)
        return None if event is None else event.said(payload, properties, topic)

    def complete(self, record: Record) -> None:
        """Let a record, which knows its offset, say what its message says, unless it does already."""
        if record.attributes is None and self._firsts:
            record.attributes = self.read(record.offset, record.topic, record.payload, record.properties)


def _types(declaration: Declaration) -> TypeOf:
    if not declaration.text:
        return lambda _topic: None
    try:
        declared = msgspec.json.decode(declaration.text, type=_Declared)
        events = Events(Settings(event=declared.event, content=Content(untyped_bytes=declared.untyped_bytes)))
    except (msgspec.DecodeError, ExtraNeeded) as problem:
        raise Damaged(
            f"what the messages from offset {declaration.first_offset} on say cannot be read: {problem}"
        ) from None

    @lru_cache(_MOST_TOPICS)
    def type_of(topic: str) -> EventType | None:
        event = events.of(topic)
        return None if event is events.untyped or event.reads_topic else event

    return type_of
