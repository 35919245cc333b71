"""Payloads that are one number in decimal text, as simple sensors send them."""

from __future__ import annotations

from collections.abc import Sequence

from tieline.conf.schema import Attribute
from tieline.match.box import MISSING
from tieline.match.events.json_tree import BARE
from tieline.match.events.kinds import OF_KIND, Value, decimal
from tieline.match.events.reading import Decoded


class NumberPayload:
    """Reads a plain number; see :class:`tieline.match.events.reading.Codec`.

    The number belongs to the only attribute, or to the one whose place is ``value`` where there are several; the others
    are user properties.
    """

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        of_payload = [
            position for position, each in enumerate(attributes) if len(attributes) == 1 or each.place == BARE
        ]
        if len(of_payload) != 1:
            raise ValueError("a payload that is one number needs exactly one attribute that it belongs to")
        self._position = of_payload[0]
        self._of_kind = OF_KIND[attributes[self._position].kind]
        self._count = len(attributes)

    def read(self, payload: bytes, topic: str) -> Decoded | None:
        number = decimal(payload)
        if number == MISSING:
            return None
        return Decoded(self._row(number), {BARE: number}.get)

    def rows(self, payloads: Sequence[bytes], topic: str) -> list[list[Value] | None]:
        return [None if number == MISSING else self._row(number) for number in map(decimal, payloads)]

    def _row(self, number: float) -> list[Value]:
        row: list[Value] = [MISSING] * self._count
        row[self._position] = self._of_kind(number)
        return row
