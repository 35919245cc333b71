"""What a message says to an index and what it says to a condition is the same: boxes and evaluation agree."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match.events import Attribute, EventType
from tieline.match.where import bind, parse

ATTRIBUTES = (
    Attribute("v", bounds=(0.0, 500.0), path="pcc.v"),
    Attribute("n", "integer"),
    Attribute("s", "category", values=("on", "off")),
    Attribute("up", "boolean"),
    Attribute("at", "timestamp"),
)

comparisons = st.sampled_from(
    [
        "v < 207",
        "v <= 207",
        "195.5 <= v <= 207",
        "v != 207",
        "n > 2",
        "n in (1, 3)",
        "s = 'on'",
        "s != 'on'",
        "s in ('off', 'lost')",
        "s = 'lost'",
        "up = true",
        "up != true",
        "at >= '1970-01-01T00:00:10Z'",
        "at < 10",
        "up = 1",
        "s = 5",
        "v = 'x'",
    ]
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds("not ({})".format, inner)
        | st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or {})".format, inner, inner)
    ),
    max_leaves=4,
)
payloads = st.fixed_dictionaries(
    {},
    optional={
        "pcc": st.fixed_dictionaries({"v": st.sampled_from([0, 195.5, 206.9, 207, 600, None, "x", True])}),
        "n": st.sampled_from([1, 2, 3, 2.5, 2**60]),
        "s": st.sampled_from(["on", "off", "lost", "never named", 5]),
        "up": st.sampled_from([True, False, 1]),
        "at": st.sampled_from([9, 10, "1970-01-01T00:00:10Z", "noon"]),
    },
)


@given(conditions, payloads)
@examples(200)
def test_a_point_is_in_a_box_exactly_if_the_condition_holds(text: str, said: dict[str, Any]) -> None:
    event = EventType("e", "t", ATTRIBUTES)
    bound = bind(parse(text), event)
    reading = event.read(json.dumps(said).encode())
    assert reading is not None
    is_inside = any(box.contains(reading.row) for box in bound.boxes)
    holds = bound.predicate.holds(reading.get, None)
    assert is_inside == holds if bound.is_exact else is_inside or not holds
