"""The event types of a configuration: which of them a topic belongs to."""

from __future__ import annotations

from typing import Final

from tieline.conf.schema import Content, Settings, bound
from tieline.match.events.births import Births
from tieline.match.events.event_type import EventType, declared_type
from tieline.match.events.reading import Reading
from tieline.match.filters import FilterTree

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
