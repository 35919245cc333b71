"""A payload that is one number belongs to one attribute."""

from __future__ import annotations

import pytest

from tieline.match.box import MISSING
from tieline.match.events import Attribute, EventType


def test_the_only_attribute_is_the_payload() -> None:
    event = EventType("t", "s/+", [Attribute("temperature")], payload="number")
    assert event.rows([b"23.5", b" -4e1\r\n", b"warm", b"", b"1_0", b"\xff", b"nan"]) == [
        [23.5],
        [-40.0],
        None,
        None,
        None,
        None,
        None,
    ]


def test_of_several_the_one_at_value_is_and_the_others_are_missing() -> None:
    event = EventType("t", "s", [Attribute("site", "category"), Attribute("t", path="value")], payload="number")
    reading = event.read(b"23.5")
    assert reading is not None
    assert reading.row == [MISSING, 23.5]
    assert (reading.get("site"), reading.get("t"), reading.get("value"), reading.get("x")) == (None, 23.5, 23.5, None)


def test_a_number_of_another_kind_is_missing() -> None:
    event = EventType("t", "s", [Attribute("count", "integer")], payload="number")
    assert event.rows([b"5", b"5.0", b"5.5"]) == [[5.0], [5.0], [MISSING]]


def test_a_type_in_which_no_attribute_is_the_payload_is_refused() -> None:
    with pytest.raises(ValueError, match="exactly one attribute"):
        EventType("t", "s", [Attribute("a"), Attribute("b")], payload="number")
