"""Sparkplug B payloads: metrics by name and by alias, signs and times by data type."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.conf.schema import Event, Settings
from tieline.match.box import MISSING
from tieline.match.events import Attribute, Events, EventType
from tieline.match.events.sparkplug import MOST_METRICS, Births, payload_class

TEMPERATURE = Attribute("temperature", path="Inputs/T")
BIRTH = "spBv1.0/group/NBIRTH/edge"
DATA = "spBv1.0/group/NDATA/edge"


def payload(*metrics: dict[str, Any]) -> bytes:
    make, _problems = payload_class()
    message = make(timestamp=1, seq=0)
    for metric in metrics:
        message.metrics.add(**metric)
    encoded = message.SerializeToString()
    assert isinstance(encoded, bytes)
    return encoded


def value_of(metric: dict[str, Any], kind: Any = "number") -> object:
    event = EventType("e", "t", [Attribute("m", kind)], payload="sparkplug")
    reading = event.read(payload({"name": "m", **metric}))
    assert reading is not None
    return reading.get("m")


@pytest.mark.parametrize(
    ("metric", "kind", "value"),
    [
        ({"datatype": 1, "int_value": 0xFFFFFFFF}, "number", -1.0),
        ({"datatype": 1, "int_value": 0xFE}, "number", -2.0),
        ({"datatype": 2, "int_value": 0x8000}, "number", -32_768.0),
        ({"datatype": 3, "int_value": 0x80000000}, "number", -2_147_483_648.0),
        ({"datatype": 4, "long_value": 2**64 - 5}, "integer", -5.0),
        ({"datatype": 4, "long_value": 2**63}, "number", None),
        ({"datatype": 5, "int_value": 255}, "integer", 255.0),
        ({"datatype": 8, "long_value": 2**53 + 1}, "number", None),
        ({"datatype": 10, "double_value": 1.1}, "number", 1.1),
        ({"datatype": 10, "double_value": float("nan")}, "number", None),
        ({"datatype": 11, "boolean_value": True}, "boolean", True),
        ({"datatype": 11, "boolean_value": True}, "number", None),
        ({"datatype": 12, "string_value": "on"}, "category", "on"),
        ({"datatype": 13, "long_value": 10_500}, "timestamp", 10.5),
        ({"datatype": 7, "int_value": 5, "is_null": True}, "number", None),
        ({"datatype": 7}, "number", None),
    ],
)
def test_a_value_has_the_sign_and_the_meaning_of_its_data_type(
    metric: dict[str, Any], kind: str, value: object
) -> None:
    assert value_of(metric, kind) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_compared_as_the_float32_that_was_sent(number: float) -> None:
    assert value_of({"datatype": 9, "float_value": number}) == struct.unpack("f", struct.pack("f", number))[0]


def test_aliases_and_data_types_are_those_of_the_birth() -> None:
    event = EventType("e", "spBv1.0/#", [TEMPERATURE, Attribute("n")], payload="sparkplug")
    by_alias = payload({"alias": 7, "float_value": 2.5}, {"name": "n", "int_value": 0xFFFFFFFF})
    assert event.rows([by_alias], DATA) == [[MISSING, 4294967295.0]]
    born = payload(
        {"name": "Inputs/T", "alias": 7, "datatype": 9, "float_value": 1.5},
        {"name": "n", "datatype": 3, "int_value": 1},
    )
    assert event.rows([born], BIRTH) == [[1.5, 1.0]]
    assert event.rows([by_alias], DATA) == [[2.5, -1.0]]
    assert event.rows([by_alias], DATA + "/device") == [[MISSING, 4294967295.0]]
    reborn = payload({"name": "Inputs/T", "alias": 8, "datatype": 9, "float_value": 1.5})
    assert event.rows([reborn, by_alias], BIRTH) == [[1.5, MISSING], [MISSING, 4294967295.0]]


def test_births_are_learned_from_topics_that_nobody_asked_about() -> None:
    settings = Settings(event={"e": Event(topic="spBv1.0/+/NDATA/+", payload="sparkplug", attributes=(TEMPERATURE,))})
    events = Events(settings)
    assert events.is_birth(BIRTH) and events.is_birth("spBv1.0/g/DBIRTH/e/d")
    assert not events.is_birth(DATA) and not events.is_birth("spBv1.0/g/NBIRTH") and not events.is_birth("x/g/NBIRTH/e")
    assert not Events(Settings()).is_birth(BIRTH)
    events.learn(BIRTH, payload({"name": "Inputs/T", "alias": 7}))
    events.learn(BIRTH, b"\xff")
    assert events.of(DATA).rows([payload({"alias": 7, "float_value": 2.5})], DATA) == [[2.5]]


def test_the_device_unused_for_longest_is_forgotten_first() -> None:
    births = Births(most=2)
    for device in ("a", "b"):
        births.learn(f"spBv1.0/g/DBIRTH/e/{device}", payload({"name": device, "alias": 1}))
    assert births.of("spBv1.0/g/DDATA/e/a").names == {1: "a"}
    births.learn("spBv1.0/g/DBIRTH/e/c", payload({"name": "c", "alias": 1}))
    assert len(births) == 2
    assert [births.of(f"spBv1.0/g/DDATA/e/{device}").names for device in "abc"] == [{1: "a"}, {}, {1: "c"}]


def test_long_names_forget_devices_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieline.match.events.sparkplug.MOST_CHARACTERS", 10)
    births = Births()
    for device in range(5):
        births.learn(f"spBv1.0/g/DBIRTH/e/{device}", payload({"name": "four", "alias": 1}))
    assert len(births) == 2


def test_undeclared_metrics_are_found_by_name() -> None:
    event = EventType("e", "t", [TEMPERATURE], payload="sparkplug")
    reading = event.read(payload({"name": "Node Control/Rebirth", "datatype": 11, "boolean_value": False}))
    assert reading is not None
    assert reading.get("Node Control/Rebirth") is False and reading.get("other") is None


@pytest.mark.parametrize(
    "broken",
    [b"\xff", b"\x12", b"\x12\x02\x0a\x05", b"\x12\x03\x0a\x01\xff", b"\x12\x00" * (MOST_METRICS + 1)],
    ids=["no field", "no length", "cut off", "a name that is no UTF-8", "too many metrics"],
)
def test_what_is_broken_or_too_much_is_refused(broken: bytes) -> None:
    assert EventType("e", "t", [TEMPERATURE], payload="sparkplug").rows([broken]) == [None]


def test_a_text_that_is_no_utf8_is_missing() -> None:
    event = EventType("e", "t", [Attribute("m", "category"), Attribute("n")], payload="sparkplug")
    broken = b"\x12\x06\x0a\x01m\x7a\x01\xff" + payload({"name": "n", "double_value": 1.0})
    assert event.rows([broken]) in ([[MISSING, 1.0]], [None])
