"""What a broker has declared of events, as the ring needs it: grids, subscriptions in boxes, and places of messages.

All brokers of a ring read the same payloads by the same declarations, or one would publish beside what another one asks
for; so they compare a fingerprint of them before anything else.  Values of a category are numbered by each broker as it
meets them, so the ring says nothing of categories: whoever asks decides about those.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from tieline.conf.schema import Settings
from tieline.core.message import Burst, Item, Message
from tieline.match.box import ANY, MISSING, Box
from tieline.match.cover.filters import covers, overlap
from tieline.match.events import CodesExhausted, Events, EventType
from tieline.match.merge.digest import MAX_BITS, Routing
from tieline.match.space import Space
from tieline.match.where import ExpressionError, bind, parse
from tieline.overlay.ring.events import MOST_ATTRIBUTES, RingSubscription, Spaces

#: Bytes of a fingerprint, topics whose type is remembered, and boxes that one condition may come to.
FINGERPRINT: Final = 8
_REMEMBERED: Final = 10_000
_MOST_BOXES: Final = 64
#: Digits of a place along each attribute, at least and at most: a grid of all of them fits into a bitmap.
_LEAST_ORDER: Final = 1

#: Where a message is in the space of its type; without a declared type the name is empty.
Place = tuple[str, tuple[float, ...]]
NOWHERE: Final[Place] = ("", ())


class Declared:
    """The event types of one broker."""

    def __init__(self, settings: Settings, events: Events, beside: str = "") -> None:
        """``beside`` is what else all brokers of a ring have to agree on."""
        self._events = events
        self._types = {event.name: event for event in events.types.values() if _is_gridded(event)}
        self.spaces: Final[Spaces] = {name: _routing(event) for name, event in self._types.items()}
        #: By type, the attributes of which the ring is told nothing.
        self._hidden = {
            name: tuple(place for place, each in enumerate(event.attributes) if each.kind == "category")
            for name, event in self._types.items()
        }
        self._known: dict[bytes, EventType | None] = {}
        declared = sorted(settings.event.items())
        said = msgspec.json.encode((beside, settings.content.untyped_bytes, declared))
        self.fingerprint: Final = blake2b(said, digest_size=FINGERPRINT).digest()

    # -- what is asked for

    def subscriptions(self, filter_: str, condition: str | None) -> tuple[RingSubscription, ...]:
        """What a subscription asks of the ring: boxes if a declared type makes some of its condition, or all of it."""
        whole = (RingSubscription(filter_),)
        event = None if condition is None else self._only_type(filter_)
        if condition is None or event is None:
            return whole
        try:
            boxes = {self._shown(event, box) for box in bind(parse(condition), event).boxes}
        except (ExpressionError, CodesExhausted):
            return whole
        if len(boxes) > _MOST_BOXES:
            return whole
        return tuple(RingSubscription(filter_, event.name, box) for box in sorted(boxes))

    def _only_type(self, filter_: str) -> EventType | None:
        """The type of every message that a filter matches; None if there is none, or more than one."""
        claiming = [event for event in self._events.types.values() if overlap(event.topic, filter_)]
        if len(claiming) != 1 or not covers(claiming[0].topic, filter_):
            return None
        return self._types.get(claiming[0].name)

    def _shown(self, event: EventType, box: Box) -> Box:
        hidden = self._hidden[event.name]
        if not hidden:
            return box
        low, high = list(box.lo), list(box.hi)
        for place in hidden:
            low[place], high[place] = ANY
        return Box(tuple(low), tuple(high))

    # -- what is published

    def places(self, item: Item) -> Sequence[Place] | None:
        """Where each message of an item is in the space of its type; None if its topic has none."""
        event = self._type_of(item.topic)
        if event is None:
            return None
        nothing = [MISSING] * len(event.attributes)
        if isinstance(item, Burst):
            rows = event.rows([*item.payloads()])
            return [self._place(event, nothing if row is None else row) for row in rows]
        assert isinstance(item, Message), "what has one topic"
        reading = event.read(item.payload, item.properties, item.topic.decode())
        return [self._place(event, nothing if reading is None else reading.row)]

    def _place(self, event: EventType, row: Sequence[float]) -> Place:
        point = list(row)
        for place in self._hidden[event.name]:
            point[place] = MISSING
        return event.name, tuple(point)

    def _type_of(self, topic: bytes) -> EventType | None:
        if not self._types:
            return None
        if topic not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[topic] = self._types.get(self._events.of(topic.decode()).name)
        return self._known[topic]


def _is_gridded(event: EventType) -> bool:
    """Whether the ring can say where a message of a type is: by what it says itself, on a grid that is declared."""
    return bool(event.routing) and not event.reads_topic and len(event.attributes) <= MOST_ATTRIBUTES


def _routing(event: EventType) -> Routing:
    places = [event.position[name] for name in event.routing]
    bounds = [event.attributes[place].bounds for place in places]
    order = max(_LEAST_ORDER, min(event.order, MAX_BITS // len(places)))
    return Routing(Space([each for each in bounds if each is not None], order), places)
