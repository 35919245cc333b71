"""CBOR payloads: the same values as in JSON, tags left alone, nothing that runs away."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.events.test_json_payload import attributes, walk
from tieline.match.box import MISSING
from tieline.match.events import Attribute, EventType
from tieline.match.events.kinds import OF_KIND

scalars = st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.floats() | st.sampled_from(["x", ""])
data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "value"]), inner),
    max_leaves=8,
)


@given(attributes, data)
def test_every_declared_attribute_is_what_the_oracle_finds(declared: list[Attribute], found: Any) -> None:
    reading = EventType("e", "t", declared, payload="cbor").read(cbor2.dumps(found))
    assert reading is not None
    expected = [OF_KIND[each.kind](walk(found, each.place)) for each in declared]
    assert [reading.get(each.name) for each in declared] == [None if v == MISSING else v for v in expected]


@pytest.mark.parametrize(
    ("found", "path", "value"),
    [
        ({"a": {1: 5}}, "a.1", 5.0),
        ({-1: 5}, "-1", 5.0),
        ({1: 5, "1": 6}, "1", 6.0),
        ({"a": [1, {"b": 2}]}, "a.1.b", 2.0),
        ({"a": datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC)}, "a", 10.0),
        ({"a": Decimal("1.5")}, "a", MISSING),
        ({"a": UUID(int=5)}, "a", MISSING),
        ({"a": 2**70}, "a", MISSING),
        ({"a": b"5"}, "a", MISSING),
        ({"a": cbor2.CBORTag(4711, 5)}, "a", MISSING),
        ({"a": cbor2.CBORTag(0, "noon"), "b": 1}, "b", 1.0),
        (7, "value", 7.0),
    ],
)
def test_keys_tags_and_positions(found: object, path: str, value: float) -> None:
    event = EventType("e", "t", [Attribute("n", "timestamp", path=path)], payload="cbor")
    assert event.rows([cbor2.dumps(found)]) == [[value]]


def test_undeclared_attributes_are_found_too() -> None:
    reading = EventType("e", "t", [Attribute("n")], payload="cbor").read(cbor2.dumps({"n": 1, "a": {"b": "x"}}))
    assert reading is not None and reading.get("a.b") == "x" and reading.get("a") is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x81" * 10_000 + b"\x01",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x7b\x0f\xff\xff\xff\xff\xff\xff\xff",
        b"\x61\xff",
        b"\xa1\xd8\x1c\xa1\x01\x02\x03",
        cbor2.dumps({"n": 1, "filling": b"x" * 200_000}),
        cbor2.dumps({(1, number): number for number in range(1000)} | {"n": 1}),
    ],
    ids=["empty", "deep", "endless array", "endless text", "no UTF-8", "a map as key", "large", "many odd keys"],
)
def test_what_is_broken_or_too_much_is_refused(payload: bytes) -> None:
    event = EventType("e", "t", [Attribute("n")], payload="cbor")
    assert event.rows([payload]) in ([None], [[MISSING]])
