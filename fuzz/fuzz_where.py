"""Expressions and their spellings under random text.

Any text parses or raises our own error, at a column inside it; so does any topic filter.
What parses says the same in its canonical text, and every message that it asks for lies in one of its boxes.
Exact boxes hold nothing else.

``python -m fuzz.fuzz_where --seconds 60 --seed 1``
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable
from typing import Final, NamedTuple

from fuzz import hunt
from tieline.match.box import MISSING
from tieline.match.where import ExpressionError, Predicate, bind, parse, spell, split
from tieline.match.where.terms import Value, leaves

_EXPRESSIONS: Final = (
    "195.5<=voltage<=207",
    "207>=voltage>195.5 and mode=island",
    "not (voltage<2.5e2 || mode in ('a', \"b\")) & up == TRUE",
    "`odd name`!=-1 or pcc.voltage<>.5",
    "changed(voltage) or delta(mode)>=0.25",
    'mode not in (it, \'it\'\'s\', "say ""so""")',
    "voltage not in (1,2,3) and not (1<voltage<2 or up!=false)",
)
_FILTERS: Final = ("a/+/pcc?voltage<207", "$share/g/$where/voltage%3C207/#", "$where/s=%22%C3%9C%2F%22/a", "what?/#")
_TEXTS: Final = ("", "island", "a", "it's")
_NUMBERS: Final = (-1.0, 0.0, 1.0, 195.5, 207.0, 1e308)


class _Attribute(NamedTuple):
    name: str
    kind: str


class _Type:
    """The attributes that the seeds name, one of each kind."""

    def __init__(self) -> None:
        self.attributes = (_Attribute("voltage", "number"), _Attribute("mode", "category"), _Attribute("up", "boolean"))
        self.position = {attribute.name: place for place, attribute in enumerate(self.attributes)}
        self._codes: dict[str, float] = {}

    def code(self, name: str, literal: Value) -> float:
        return self._codes.setdefault(literal, float(len(self._codes))) if isinstance(literal, str) else float(literal)

    def row(self, message: dict[str, Value | None]) -> list[float]:
        row = []
        for attribute in self.attributes:
            value = message[attribute.name]
            row.append(MISSING if value is None else self._codes.get(value, -1.0) if isinstance(value, str) else value)
        return row


def _agree(predicate: Predicate) -> bool:
    """Assert that boxes and predicate agree about messages around what the predicate names; whether they are exact."""
    again = parse(predicate.canonical)
    assert again == predicate, f"{predicate} became {again}"
    event = _Type()
    bound = bind(predicate, event)
    voltages: list[Value | None] = [None, math.nan, *_NUMBERS]
    for number, voltage in enumerate(voltages):
        seen: dict[str, Value | None] = {
            "voltage": voltage,
            "mode": (*_TEXTS, None)[number % 5],
            "up": bool(number & 1),
        }
        row = event.row(seen | {"voltage": None if voltage is None or math.isnan(float(voltage)) else voltage})
        holds = bound.predicate.holds(seen.get, None)
        assert again.holds(seen.get, None) is holds, f"{predicate} and {again} differ about {seen}"
        inside = any(box.contains(row) for box in bound.boxes)
        assert inside or not holds, f"{predicate}: {seen} is in none of {bound.boxes}"
        assert holds or not inside or not bound.is_exact, f"{predicate}: {seen} is in one of {bound.boxes}"
    return bound.is_exact


def check(data: bytes) -> Hashable:
    """Assert the invariant for one input; what kind of terms it gave, or what was expected."""
    text = data.decode(errors="replace")
    try:
        asked = split(text, question_mark=True)
    except ExpressionError as error:
        return "split", error.text
    if asked.filter:  # an empty one is refused with all other filters that are not well-formed
        assert split(spell(asked), question_mark=True) == asked, f"{asked} does not survive its spelling"
    expression = text if asked.expression is None else asked.expression
    try:
        predicate = parse(expression)
    except ExpressionError as error:
        where, expected = error.column, error.text
    else:
        return _agree(predicate), tuple(type(leaf).__name__ for leaf in leaves(predicate.term))[:4]
    assert 1 <= where <= len(expression) + 1, f"column {where} is outside of {expression!r}"
    return "parse", expected.partition(" after ")[0]


def seeds() -> list[bytes]:
    """Expressions of every form, and filters in every spelling."""
    return [text.encode() for text in (*_EXPRESSIONS, *_FILTERS)]


def run(seconds: float, seed: int) -> int:
    """A hunt with our own mutator; 0 when nothing broke."""
    return hunt.report("where", hunt.hunt(check, seeds(), seconds, seed))


if __name__ == "__main__":
    sys.exit(hunt.main("where", check, seeds()))
