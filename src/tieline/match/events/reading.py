"""What one message says: the point that an index looks up, and the values that a condition is evaluated with.

A payload is read by a codec: whatever the format, one object per event type, which knows its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tieline.conf.schema import Attribute
from tieline.match.box import MISSING
from tieline.match.events.kinds import OF_KIND, Value, undeclared, undeclared_text
from tieline.wire.properties import user_properties

#: A raw value by its place in the payload; None, or something that is no scalar, where there is none.
Find = Callable[[str], object]


class Decoded(NamedTuple):
    """A payload that could be read."""

    #: One value per declared attribute, MISSING where the payload has none of its kind.
    values: list[Value]
    #: Everything else that the payload holds, looked up on demand.
    find: Find


class Codec(Protocol):
    """Reads the payloads of one event type.  No payload makes it raise."""

    def read(self, payload: bytes, topic: str) -> Decoded | None:
        """What the payload says; None if it is not written as it should be."""

    def rows(self, payloads: Sequence[bytes], topic: str) -> list[list[Value] | None]:
        """The values of many payloads of one topic."""


def declared(attributes: Sequence[Attribute], find: Find) -> list[Value]:
    """The values of the declared attributes, one by one."""
    return [OF_KIND[attribute.kind](find(attribute.place)) for attribute in attributes]


def nothing(place: str) -> None:
    """Find nothing at any place, as in a payload that cannot be read."""


#: How the attributes of a message are read, whoever knows them; None for those that it lacks.
Get = Callable[[str], Value | None]


class Reading:
    """One message as its event type reads it."""

    __slots__ = ("_find", "_found", "_position", "_properties", "_texts", "_values", "row")

    def __init__(
        self,
        values: list[Value],
        row: list[float],
        position: Mapping[str, int],
        find: Find,
        properties: bytes,
        texts: dict[str, str] | None,
    ) -> None:
        #: One number per declared attribute, MISSING where there is none.
        self.row = row
        self._values = values
        self._position = position
        self._find = find
        self._properties = properties
        #: The user properties, once somebody needed them.
        self._texts = texts
        #: Attributes that were asked for and not declared; many conditions ask for the same.
        self._found: dict[str, Value | None] = {}

    def get(self, name: str) -> Value | None:
        """The value of an attribute, declared or not; None if the message has none."""
        position = self._position.get(name)
        if position is not None:
            value = self._values[position]
            return None if value == MISSING else value
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def raw(self, name: str, place: str) -> object:
        """What the message holds for an attribute, of whatever kind: in the payload, or as a user property."""
        found = self._find(place)
        if found is not None or not self._properties:
            return found
        texts = self._user_properties()
        return texts.get(name, texts.get(place))

    def _search(self, name: str) -> Value | None:
        value = undeclared(self._find(name))
        if value is not None or not self._properties:
            return value
        text = self._user_properties().get(name)
        return None if text is None else undeclared_text(text)

    def _user_properties(self) -> dict[str, str]:
        if self._texts is None:
            # of several with one name the last counts, as with the keys of a JSON object
            self._texts = dict(user_properties(self._properties))
        return self._texts
