"""What the ways to write a payload have in common: one object per event type, which knows its attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tieline.conf.schema import Attribute
from tieline.match.events.kinds import OF_KIND, Value

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
