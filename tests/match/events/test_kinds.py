"""A raw value becomes the value that was declared, or is missing; nothing is rounded on the way."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.match.box import MISSING
from tieline.match.events.kinds import (
    OF_KIND,
    OF_TEXT,
    OTHER,
    Codes,
    CodesExhausted,
    Value,
    decimal,
    undeclared,
    undeclared_text,
)

LARGEST = 2**53


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("number", 5, 5.0),
        ("number", -0.5, -0.5),
        ("number", 1e300, 1e300),
        ("number", LARGEST, float(LARGEST)),
        ("number", LARGEST + 1, MISSING),
        ("number", -LARGEST - 1, MISSING),
        ("number", 10**400, MISSING),
        ("number", math.nan, MISSING),
        ("number", math.inf, MISSING),
        ("number", -math.inf, MISSING),
        ("number", True, MISSING),
        ("number", "5", MISSING),
        ("number", None, MISSING),
        ("number", [5], MISSING),
        ("integer", 5, 5.0),
        ("integer", 5.0, 5.0),
        ("integer", 5.5, MISSING),
        ("integer", 1e20, MISSING),
        ("integer", False, MISSING),
        ("category", "on", "on"),
        ("category", "", ""),
        ("category", 1, MISSING),
        ("boolean", True, True),
        ("boolean", 1, MISSING),
        ("boolean", "true", MISSING),
        ("timestamp", 12, 12.0),
        ("timestamp", "1970-01-01T00:00:10Z", 10.0),
        ("timestamp", "1970-01-01T01:00:10.5+01:00", 10.5),
        ("timestamp", "1970-01-01T00:00:10", MISSING),
        ("timestamp", "1970-01-01", MISSING),
        ("timestamp", "yesterday", MISSING),
        ("timestamp", True, MISSING),
    ],
)
def test_a_raw_value_of_the_kind_declared_is_itself_and_any_other_is_missing(
    kind: str, raw: object, value: Value
) -> None:
    found = OF_KIND[kind](raw)  # type: ignore[index]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", "5", 5.0),
        ("number", " -.5e1\n", -5.0),
        ("number", "5.", 5.0),
        ("number", "nan", MISSING),
        ("number", "Infinity", MISSING),
        ("number", "1_000", MISSING),
        ("number", "٣", MISSING),
        ("number", "1e999", MISSING),
        ("number", "", MISSING),
        ("number", "0" * 65, MISSING),
        ("number", str(LARGEST), float(LARGEST)),
        ("number", str(LARGEST + 1), MISSING),
        ("number", "1e16", 1e16),
        ("integer", "7", 7.0),
        ("integer", "7.5", MISSING),
        ("category", "7", "7"),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("boolean", "True", MISSING),
        ("boolean", "1", MISSING),
        ("timestamp", "1970-01-01T00:00:10Z", 10.0),
        ("timestamp", "10.5", 10.5),
        ("timestamp", "noon", MISSING),
    ],
)
def test_the_text_of_a_user_property_becomes_the_kind_declared(kind: str, text: str, value: Value) -> None:
    found = OF_TEXT[kind](text)  # type: ignore[index]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 30.0),
        ("-1.5", -1.5),
        ("true", True),
        ("007", "007"),
        ("null", "null"),
        ("+5", "+5"),
        ("", ""),
        ("1" * 20, "1" * 20),
    ],
)
def test_without_a_declaration_a_property_is_what_json_would_read_or_itself(text: str, value: Value) -> None:
    found = undeclared_text(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("raw", "value"), [(1, 1.0), ("x", "x"), (False, False), (None, None), ([1], None), (LARGEST + 1, None)]
)
def test_without_a_declaration_a_scalar_is_itself(raw: object, value: Value | None) -> None:
    found = undeclared(raw)
    assert found == value and type(found) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-LARGEST, LARGEST))
def test_every_number_survives_its_decimal_text(number: float) -> None:
    assert decimal(repr(number)) == number
    assert decimal(repr(number).encode()) == number


@given(st.text(max_size=70) | st.binary(max_size=70))
def test_no_text_makes_a_number_that_is_not_finite(text: str | bytes) -> None:
    value = decimal(text)
    assert value == MISSING or math.isfinite(value)
    if isinstance(text, str):
        for of_text in OF_TEXT.values():
            of_text(text)
        undeclared_text(text)


def test_listed_values_have_numbers_from_the_start() -> None:
    codes = Codes(("on", "off", "on"))
    assert (codes.sent("on"), codes.sent("off"), codes.sent("broken")) == (0.0, 1.0, OTHER)
    assert len(codes) == 2


def test_a_message_gives_no_numbers_and_a_condition_does() -> None:
    codes = Codes()
    assert codes.sent("on") == OTHER and len(codes) == 0
    assert codes.named("on") == codes.sent("on") != OTHER
    assert codes.sent(MISSING) == MISSING


def test_a_full_table_says_so_and_still_knows_what_it_knew() -> None:
    codes = Codes(("a",), most=2)
    codes.named("b")
    with pytest.raises(CodesExhausted, match="2 values"):
        codes.named("c")
    assert codes.named("b") == 1.0 and codes.sent("c") == OTHER


@given(st.lists(st.tuples(st.sampled_from(["name", "keep"]), st.sets(st.sampled_from("abcdef"), min_size=1))))
def test_no_number_ever_stands_for_two_values(steps: list[tuple[str, set[str]]]) -> None:
    codes = Codes(("a",))
    given_out: dict[float, str] = {0.0: "a"}
    for step, values in steps:
        if step == "name":
            for value in values:
                assert given_out.setdefault(codes.named(value), value) == value
        else:
            kept = {value: codes.sent(value) for value in values}
            codes.keep(kept.values())
            assert all(codes.sent(value) == kept.get(value, OTHER) for value in "abcdef")
        assert codes.sent(MISSING) == MISSING
