"""JSON payloads: the fast reading and the tolerant one agree with an oracle that walks what ``json`` loaded."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match.box import MISSING
from tieline.match.events import UNTYPED, Attribute, AttributeKind, EventType
from tieline.match.events.kinds import OF_KIND, Value

KINDS: tuple[AttributeKind, ...] = ("number", "integer", "category", "boolean", "timestamp")
KEYS = ("a", "b", "0", "1", "value", "", "é")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**54), 2**54)
    | st.floats(allow_nan=False)
    | st.sampled_from(["x", "", "1970-01-01T00:00:10Z", "5"])
)
data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
paths = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(".".join).filter(bool)
attributes = st.lists(st.tuples(st.sampled_from(KINDS), paths), min_size=1, max_size=4).map(
    lambda made: [Attribute(f"n{number}", kind, path=path) for number, (kind, path) in enumerate(made)]
)


def walk(found: Any, path: str) -> Any:
    """The oracle: one step after the other."""
    if not isinstance(found, dict | list):
        return found if path == "value" else None
    for step in path.split("."):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


@given(attributes, data)
@examples(300)
def test_every_declared_attribute_is_what_the_oracle_finds(declared: list[Attribute], found: Any) -> None:
    payload = json.dumps(found).replace("Infinity", "1e999").encode()
    event = EventType("e", "t", declared)
    reading = event.read(payload)
    assert reading is not None
    expected = [OF_KIND[each.kind](walk(found, each.place)) for each in declared]
    assert [reading.get(each.name) for each in declared] == [None if v == MISSING else v for v in expected]
    assert event.rows([payload]) == [reading.row]


@given(data, paths)
def test_an_undeclared_attribute_is_found_by_its_path(found: Any, path: str) -> None:
    payload = json.dumps(found).replace("Infinity", "1e999").encode()
    value = walk(found, path)
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) <= 2**53 else None
    if isinstance(value, dict | list) or (isinstance(value, float) and not math.isfinite(value)):
        value = None
    for event in (UNTYPED, EventType("e", "t", [Attribute("declared", path="elsewhere")])):
        reading = event.read(payload)
        assert reading is not None
        assert reading.get(path) == value


@pytest.mark.parametrize(
    ("payload", "row"),
    [
        (b'{"v":230,"f":50}', [230.0, 50.0]),
        (b' {"v":230,"f":50,"other":{"deep":[1,2,{"v":3}]}}\n', [230.0, 50.0]),
        (b'{"f":50}', [MISSING, 50.0]),
        (b'{"v":null,"f":50}', [MISSING, 50.0]),
        (b'{"v":"230","f":50}', [MISSING, 50.0]),
        (b'{"v":true,"f":50}', [MISSING, 50.0]),
        (b'{"v":[230],"f":50}', [MISSING, 50.0]),
        (b'{"v":1e999,"f":50}', [MISSING, 50.0]),
        (b'{"v":9007199254740993,"f":50}', [MISSING, 50.0]),
        (b'{"v":' + b"9" * 5000 + b',"f":50}', [MISSING, 50.0]),
        (b'{"v":1e300,"f":50}', [1e300, 50.0]),
        (b'{"v":1,"f":50,"v":2}', [2.0, 50.0]),
        (b'{"v":1,"f":50,"v":"two"}', [MISSING, 50.0]),
        (b'{"v":"one","f":50,"v":2}', [2.0, 50.0]),
        (b"{}", [MISSING, MISSING]),
        (b"[1,2]", [MISSING, MISSING]),
        (b"7", [MISSING, MISSING]),
        (b"null", [MISSING, MISSING]),
    ],
)
def test_a_wrong_attribute_is_only_itself_missing(payload: bytes, row: list[float]) -> None:
    event = EventType("e", "t", [Attribute("v"), Attribute("f")])
    assert event.rows([payload]) == [row]
    reading = event.read(payload)
    assert reading is not None and reading.row == row


@pytest.mark.parametrize(
    "payload",
    [b"", b" ", b"{", b'{"v":}', b'{"v":1}}', b'{"v":1,}', b"nan", b"[", b"\xff", b'{"v":' + b"[" * 99_999, b'"\xff"'],
)
def test_what_is_not_json_is_refused_and_the_others_are_read(payload: bytes) -> None:
    event = EventType("e", "t", [Attribute("v")])
    assert event.read(payload) is None
    assert UNTYPED.read(payload) is None
    assert event.rows([b'{"v":1}', payload, b'{"v":2}']) == [[1.0], None, [2.0]]


def test_a_bare_value_is_called_value() -> None:
    event = EventType("e", "t", [Attribute("value"), Attribute("other")])
    assert event.rows([b"231.5", b'{"value":5}', b"true"]) == [[231.5, MISSING], [5.0, MISSING], [MISSING, MISSING]]
    reading = UNTYPED.read(b"31")
    assert reading is not None and reading.get("value") == 31.0 and reading.get("v") is None


def test_paths_may_share_places_and_end_inside_each_other() -> None:
    event = EventType(
        "e",
        "t",
        [
            Attribute("all", "category", path="a"),
            Attribute("inner", path="a.b"),
            Attribute("same", path="a.b"),
            Attribute("cell", path="cells.1.v"),
        ],
    )
    assert event.rows([b'{"a":{"b":5},"cells":[0,{"v":7}]}', b'{"a":"x","cells":{"1":{"v":8}}}']) == [
        [MISSING, 5.0, 5.0, 7.0],
        [-1.0, MISSING, MISSING, 8.0],
    ]


def test_a_large_payload_is_not_searched_for_what_was_not_declared() -> None:
    payload = b'{"v":1,"w":2,"filling":"' + b"x" * 100 + b'"}'
    small = EventType("e", "t", [Attribute("v")], most_bytes=50)
    reading = small.read(payload)
    assert reading is not None and reading.get("v") == 1.0 and reading.get("w") is None
    assert EventType("e", "t", most_bytes=50).read(payload) is None


def test_a_large_payload_is_read_as_carefully_as_a_small_one() -> None:
    declared = [Attribute("v"), Attribute("w", path="a.b"), Attribute("c", path="cells.1")]
    event = EventType("e", "t", declared, most_bytes=9)
    filling = b',"filling":[' + b"0," * 5000 + b"0]}"
    assert event.rows(
        [
            b'{"v":1,"a":{"b":2},"cells":[3,4]' + filling,
            b'{"v":null,"a":{"b":2},"cells":[3,4]' + filling,
            b'{"v":1,"a":5,"cells":7' + filling,
            b'{"x":1' + filling,
        ]
    ) == [[1.0, 2.0, 4.0], [MISSING, 2.0, 4.0], [1.0, MISSING, MISSING], [MISSING] * 3]


def test_what_is_broken_beside_the_declared_attributes_does_no_harm() -> None:
    reading = EventType("e", "t", [Attribute("v")]).read(b'{"v":1,"\xff":2,"w":3}')
    assert reading is not None
    value: Value | None = reading.get("v")
    assert value == 1.0 and reading.get("w") is None
