"""An event type of five attributes, one of each kind, without payloads."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from tieline.match.box import MISSING
from tieline.match.where.terms import Value


class Attribute(NamedTuple):
    name: str
    kind: str


#: The only texts that are times here.
MOMENTS: Final = {"2026-01-01T00:00:00Z": 1.0, "2026-01-02T00:00:00Z": 2.0}
#: A category that never has this value.
NEVER: Final = "it's"


class FakeType:
    """As much of an event type as expressions need."""

    def __init__(self, *declared: tuple[str, str]) -> None:
        self.attributes = tuple(Attribute(*one) for one in declared)
        self.position = {attribute.name: place for place, attribute in enumerate(self.attributes)}
        self._codes: dict[str, float] = {}

    def code(self, name: str, literal: Value) -> float | None:
        kind = self.attributes[self.position[name]].kind
        if kind == "timestamp" and isinstance(literal, str):
            return MOMENTS.get(literal)
        if kind == "category" and isinstance(literal, str):
            return None if literal == NEVER else self._codes.setdefault(literal, float(len(self._codes)))
        if kind == "boolean":
            return float(literal) if isinstance(literal, bool) else None
        return literal if isinstance(literal, float) and kind != "category" else None

    def value(self, name: str, sent: Value | None) -> Value | None:
        """What an attribute reads as: nothing, if what was sent is of another kind."""
        if name not in self.position:
            return sent
        kind = self.attributes[self.position[name]].kind
        if kind == "timestamp" and isinstance(sent, str):
            return MOMENTS.get(sent)
        if kind == "category":
            return sent if isinstance(sent, str) and sent != NEVER else None
        if kind == "boolean":
            return sent if isinstance(sent, bool) else None
        is_number = isinstance(sent, float) and math.isfinite(sent) and (kind != "integer" or sent.is_integer())
        return sent if is_number else None

    def row(self, reading: dict[str, Value | None]) -> list[float]:
        """The numbers of a reading; every text that no expression named is the same number."""
        row = []
        for attribute in self.attributes:
            value = reading[attribute.name]
            row.append(MISSING if value is None else self._codes.get(value, -1.0) if isinstance(value, str) else value)
        return row


def five() -> FakeType:
    """All kinds; the other names of the strategies stay undeclared."""
    return FakeType(("v", "number"), ("n", "integer"), ("s", "category"), ("b", "boolean"), ("t", "timestamp"))
