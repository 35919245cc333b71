"""Boxes and evaluation together find exactly the messages for which the condition holds when it is evaluated alone."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.match.where.expressions import Tree, readings, spelled, trees
from tieline.match.events import UNTYPED, Attribute, EventType, Kind
from tieline.match.narrowing import Narrowed, narrow
from tieline.match.where import parse, understood
from tieline.match.where.terms import Value

KINDS: dict[str, Kind] = {"v": "number", "n": "integer", "s": "category", "b": "boolean", "t": "timestamp"}
Said = dict[str, Value | None]


def five(most_codes: int | None = None) -> EventType:
    """One attribute of each kind; all other names stay undeclared."""
    event = EventType("five", "#", [Attribute(name, kind) for name, kind in KINDS.items()])
    if most_codes is not None:
        event._codes[event.position["s"]]._most = most_codes
    return event


def finds(narrowed: Narrowed, row: list[float], *, holds: bool) -> bool:
    """Whether somebody who follows the instructions takes a message for which the condition holds, or does not."""
    if narrowed.boxes is None:
        return holds
    return any(box.contains(row) for box in narrowed.boxes) and (narrowed.is_exact or holds)


@examples(250)
@given(
    trees, st.lists(st.tuples(readings, st.none() | readings), min_size=1, max_size=5), st.sampled_from((None, 0, 1)),
    st.booleans(), st.data(),
)  # fmt: skip
def test_what_is_found_is_what_evaluating_every_message_finds(
    tree: Tree, messages: list[tuple[Said, Said | None]], most_codes: int | None, is_typed: bool, data: st.DataObject
) -> None:
    event = five(most_codes) if is_typed else UNTYPED
    predicate = parse(data.draw(spelled(tree)))
    narrowed = narrow(predicate, event)
    for sent, before in messages:
        said = {name: value for name, value in sent.items() if not isinstance(value, float) or math.isfinite(value)}
        reading = event.read(json.dumps(said).encode())
        assert reading is not None
        expected = understood(predicate, event).holds(reading.get, before)
        assert narrowed.condition.holds(reading.get, before) is expected
        assert finds(narrowed, reading.row, holds=expected) is expected


@pytest.mark.parametrize(
    ("text", "boxes", "is_exact"),
    [
        ("v < 5", 1, True),
        ("v < 5 or n = 2", 2, True),
        ("v > 5 and v < 4", 0, True),
        ("changed(v)", 1, False),
        ("x > 1 and v < 5", 1, False),
        ("x > 1", None, False),
        ("x > 1 or v < 5", None, False),
    ],
)
def test_how_a_condition_is_found(text: str, boxes: int | None, is_exact: bool) -> None:
    narrowed = narrow(parse(text), five())
    assert (None if narrowed.boxes is None else len(narrowed.boxes)) == boxes
    assert narrowed.is_exact is is_exact


def test_a_category_without_a_number_left_is_evaluated_and_times_are_still_times() -> None:
    event = five(most_codes=1)
    assert narrow(parse("s = 'on'"), event).boxes is not None
    text = "s = 'off' and t >= '1970-01-01T00:00:10Z'"
    narrowed = narrow(parse(text), event)
    assert narrowed.boxes is None
    reading = event.read(b'{"s": "off", "t": 11}')
    assert reading is not None and narrowed.condition.holds(reading.get)


def test_a_type_without_attributes_has_no_boxes() -> None:
    assert narrow(parse("v < 5"), UNTYPED).boxes is None
    assert narrow(parse("v > 5 and v < 4"), UNTYPED).boxes is None
