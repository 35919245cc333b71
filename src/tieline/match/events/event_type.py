"""Event types: what messages of some topics say, as numbers that an index knows, and which type a topic has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, cast

from tieline.conf.quantities import UNLIMITED, bound
from tieline.conf.schema import Attribute, Content, Event, Settings
from tieline.match.box import MISSING
from tieline.match.events.kinds import NUMERIC, OF_TEXT, Codes, Value, timestamp
from tieline.match.events.reading import Codec, Reading, nothing
from tieline.match.events.sparkplug import Births
from tieline.match.trees import FilterTree
from tieline.wire.properties import user_properties

#: The part of an event by which brokers route has at most as many attributes: beyond, a curve says too little.
MOST_ROUTING: Final = 3


class EventType:
    """The attributes of one kind of event, and how messages carry them."""

    __slots__ = (
        "_codec",
        "_coders",
        "_codes",
        "attributes",
        "name",
        "order",
        "position",
        "reads_topic",
        "routing",
        "topic",
    )

    # The keys of an event table, each with its default, so that programs declare types as files do.
    def __init__(
        self,
        name: str,
        topic: str,
        attributes: Sequence[Attribute] = (),
        *,
        payload: Literal["json", "sparkplug", "cbor", "number"] = "json",
        routing: Sequence[str] | None = None,
        order: int = 6,
        most_bytes: int = UNLIMITED,
        births: Births | None = None,
    ) -> None:
        self.name = name
        self.topic = topic
        self.attributes = tuple(attributes)
        #: Where each attribute is in a row.
        self.position = {attribute.name: number for number, attribute in enumerate(self.attributes)}
        #: The attributes by which brokers route, and how many bits of each.
        self.routing = tuple(_bounded(self.attributes)[:MOST_ROUTING] if routing is None else routing)
        self.order = order
        #: Whether the topic, and what came by it earlier, is needed to read a message: the names behind Sparkplug's
        #: aliases are those that one device gave at its birth.
        self.reads_topic = payload == "sparkplug"
        self._codec = _codec(payload, self.attributes, most_bytes, births)
        #: The numbers of categories, by position.
        self._codes = {
            number: Codes(attribute.values)
            for number, attribute in enumerate(self.attributes)
            if attribute.kind == "category"
        }
        #: What makes a number of a value that is none.
        self._coders: list[tuple[int, Callable[[Value], float]]] = [
            (number, self._coder(number, attribute))
            for number, attribute in enumerate(self.attributes)
            if attribute.kind not in NUMERIC
        ]

    def __repr__(self) -> str:
        return f"<EventType {self.name} {self.topic}: {', '.join(self.position) or 'untyped'}>"

    def code(self, name: str, literal: Value) -> float | None:
        """The number by which an index knows a value that a condition compares an attribute with.

        None if the attribute can never have that value.  A category named for the first time gets a number of its own;
        raises :class:`tieline.match.events.kinds.CodesExhausted` if there are too many.
        """
        position = self.position[name]
        kind = self.attributes[position].kind
        if kind == "category":
            return self._codes[position].named(literal) if isinstance(literal, str) else None
        if kind == "boolean":
            return float(literal) if isinstance(literal, bool) else None
        if isinstance(literal, bool):
            return None
        if isinstance(literal, str):
            if kind != "timestamp":
                return None
            literal = timestamp(literal)
        return float(literal) if math.isfinite(literal) else None

    def named_values(self, name: str) -> dict[str, float]:
        """The values of a category that a configuration lists or a condition names, with their numbers."""
        return self._codes[self.position[name]].all_named()

    def keep(self, name: str, codes: Iterable[float]) -> None:
        """Forget the values of a category that no condition names any longer: those whose numbers are not given."""
        self._codes[self.position[name]].keep(codes)

    def read(self, payload: bytes, properties: bytes = b"", topic: str = "") -> Reading | None:
        """What a message says; None if its payload cannot be read and no user property stands in.

        The payload counts first.  An attribute that it lacks may be a user property, named like the attribute or like
        its place in the payload.
        """
        decoded = self._codec.read(payload, topic)
        texts: dict[str, str] | None = None
        if decoded is not None:
            values, find = decoded
            if properties and MISSING in values:
                texts = dict(user_properties(properties))
                self._fill(values, texts)
        else:
            texts = dict(user_properties(properties)) if properties else None
            if not texts:
                return None
            values, find = [MISSING] * len(self.attributes), nothing
            self._fill(values, texts)
        row = self._coded(list(values)) if self._coders else cast("list[float]", values)
        return Reading(values, row, self.position, find, properties, texts)

    def said(self, payload: bytes, properties: bytes = b"", topic: str = "") -> dict[str, Value]:
        """What a message says about the declared attributes; those that it lacks are left out."""
        if not properties:
            # a reading also knows how to search for what is not declared, and costs as much as the payload
            (values,) = self._codec.rows((payload,), topic)
            pairs = () if values is None else zip(self.position, values, strict=True)
            return {name: value for name, value in pairs if value != MISSING}
        reading = self.read(payload, properties, topic)
        found = () if reading is None else ((name, reading.get(name)) for name in self.position)
        return {name: value for name, value in found if value is not None}

    def values(self, payloads: Sequence[bytes], topic: str = "") -> list[list[Value] | None]:
        """What many payloads say, one value per declared attribute; None for payloads that cannot be read."""
        return self._codec.rows(payloads, topic)

    def rows(self, payloads: Sequence[bytes], topic: str = "") -> list[list[float] | None]:
        """The rows of many messages without properties, None for payloads that cannot be read."""
        rows = self.values(payloads, topic)
        for position, number in self._coders:
            for row in rows:
                if row is not None:
                    row[position] = number(row[position])
        return cast("list[list[float] | None]", rows)

    def _fill(self, values: list[Value], texts: dict[str, str]) -> None:
        for position, attribute in enumerate(self.attributes):
            if values[position] == MISSING:
                text = texts.get(attribute.name)
                if text is None:
                    text = texts.get(attribute.place)
                if text is not None:
                    values[position] = OF_TEXT[attribute.kind](text)

    def _coded(self, values: list[Value]) -> list[float]:
        """Make numbers of the values, in place."""
        for position, number in self._coders:
            values[position] = number(values[position])
        return cast("list[float]", values)

    def _coder(self, position: int, attribute: Attribute) -> Callable[[Value], float]:
        if attribute.kind == "boolean":
            return float
        return self._codes[position].sent


def declared_type(name: str, event: Event, content: Content, births: Births) -> EventType:
    """An event type as the configuration declares it."""
    return EventType(
        name,
        event.topic,
        event.attributes,
        payload=event.payload,
        routing=event.routing,
        order=event.order,
        most_bytes=bound(content.untyped_bytes),
        births=births,
    )


def _bounded(attributes: Sequence[Attribute]) -> list[str]:
    return [each.name for each in attributes if each.kind in NUMERIC and each.bounds is not None]


def _codec(payload: str, attributes: Sequence[Attribute], most_bytes: int, births: Births | None) -> Codec:
    """The reader of a payload; libraries are loaded only for those that are used."""
    match payload:
        case "number":
            from tieline.match.events.number import NumberPayload

            return NumberPayload(attributes)
        case "cbor":
            from tieline.match.events.cbor import CborPayload

            return CborPayload(attributes)
        case "sparkplug":
            from tieline.match.events.sparkplug import SparkplugPayload

            return SparkplugPayload(attributes, Births() if births is None else births)
    from tieline.match.events.json_payload import JsonPayload

    return JsonPayload(attributes, most_bytes)


#: The type of topics that no declared type claims: attributes are found on demand, in JSON, up to the usual size.
UNTYPED: Final = EventType("untyped", "#", most_bytes=bound(Content().untyped_bytes))


class Events:
    """All event types of one broker."""

    __slots__ = ("_births", "_learns", "_ranked", "types", "untyped")

    def __init__(self, settings: Settings) -> None:
        self._births = Births()
        #: Whether birth certificates are worth reading.
        self._learns = any(event.payload == "sparkplug" for event in settings.event.values())
        #: The declared types by name, in the order of the file.
        self.types = {
            name: declared_type(name, event, settings.content, self._births) for name, event in settings.event.items()
        }
        #: What a topic is that no declared type claims; as ``UNTYPED``, with the configured size.
        self.untyped = EventType("untyped", "#", most_bytes=bound(settings.content.untyped_bytes))
        self._ranked: FilterTree[tuple[int, EventType]] = FilterTree()
        for rank, each in enumerate(self.types.values()):
            if self._ranked.get(each.topic) is None:
                self._ranked.put(each.topic, (rank, each))

    def of(self, topic: str) -> EventType:
        """The type of a topic's messages: of those that claim it, the first in the file."""
        claims = self._ranked.match(topic)
        return min(claims, key=lambda claim: claim[0])[1] if claims else self.untyped

    def look(self, topic: str, payload: bytes, properties: bytes = b"") -> Reading | None:
        """What a message would say; nothing is learned from it."""
        with self._births.looking():
            return self.of(topic).read(payload, properties, topic)

    def is_birth(self, topic: str) -> bool:
        """Whether :meth:`learn` wants the messages of a topic, subscribed or not."""
        return self._learns and self._births.is_birth(topic)

    def learn(self, topic: str, payload: bytes) -> None:
        """Remember what a Sparkplug birth certificate says, so that later messages with aliases can be read."""
        if self._learns:
            self._births.learn(topic, payload)
