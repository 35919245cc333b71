"""Event types: numbers for literals, user properties in the second place, and rows that agree with values."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.match.topics import filters, names
from tieline.conf.schema import Content, Event, Settings
from tieline.match.box import MISSING
from tieline.match.events import OTHER, UNTYPED, Attribute, Events, EventType, ExtraNeeded, Value
from tieline.wire.fields import decode_varint
from tieline.wire.properties import Properties, encode_properties
from tieline.wire.topics import matches

ALL = (
    Attribute("voltage", bounds=(0.0, 500.0), path="pcc.voltage"),
    Attribute("count", "integer", bounds=(0.0, 10.0)),
    Attribute("state", "category", values=("on", "off")),
    Attribute("up", "boolean"),
    Attribute("at", "timestamp"),
)
#: Beginnings that lead a random payload to a value.
STARTS = (b'{"count":', b'{"state":"', b"\xa1\x65count", b"\xa1\x65state\x61", b"\x12\x09\x0a\x05count")
EVENT = EventType("island_mode", "microgrid/+/pcc", ALL)


def properties(*pairs: tuple[str, str], **others: object) -> bytes:
    block = encode_properties(Properties(user_property=list(pairs), **others))  # type: ignore[typeddict-item]
    _length, start = decode_varint(block, 0, len(block))
    return block[start:]


@pytest.mark.parametrize(
    ("name", "literal", "code"),
    [
        ("voltage", 207.5, 207.5),
        ("voltage", "207.5", None),
        ("voltage", True, None),
        ("voltage", float("nan"), None),
        ("voltage", float("inf"), None),
        ("count", 2.5, 2.5),
        ("state", "on", 0.0),
        ("state", "off", 1.0),
        ("state", 0.0, None),
        ("state", True, None),
        ("up", True, 1.0),
        ("up", False, 0.0),
        ("up", 1.0, None),
        ("up", "true", None),
        ("at", 12.0, 12.0),
        ("at", "1970-01-01T00:00:10Z", 10.0),
        ("at", "noon", None),
        ("at", False, None),
    ],
)
def test_a_literal_has_the_number_of_equal_values_or_none(name: str, literal: Value, code: float | None) -> None:
    assert EVENT.code(name, literal) == code


def test_a_category_that_a_condition_names_gets_a_number_of_its_own() -> None:
    event = EventType("e", "t", [Attribute("state", "category", values=("on",))])
    assert event.rows([b'{"state":"broken"}']) == [[OTHER]]
    code = event.code("state", "broken")
    assert code is not None and code not in (OTHER, event.code("state", "on"))
    assert event.rows([b'{"state":"broken"}', b'{"state":"lost"}']) == [[code], [OTHER]]
    event.keep("state", [0.0])
    assert event.rows([b'{"state":"broken"}', b'{"state":"on"}']) == [[OTHER], [0.0]]


def test_positions_follow_the_declaration() -> None:
    assert list(EVENT.position.items()) == [("voltage", 0), ("count", 1), ("state", 2), ("up", 3), ("at", 4)]
    assert "island_mode microgrid/+/pcc: voltage, count" in repr(EVENT)


def test_the_routing_space_is_that_of_the_first_bounded_numbers_unless_said() -> None:
    assert EVENT.routing == ("voltage", "count")
    many = [Attribute(name, bounds=(0.0, 1.0)) for name in "abcd"]
    assert EventType("e", "t", many).routing == ("a", "b", "c")
    assert EventType("e", "t", many, routing=["d"], order=9).routing == ("d",)


def test_a_user_property_stands_in_for_what_the_payload_lacks() -> None:
    texts = {"voltage": "230", "count": "9", "state": "off", "up": "true", "at": "1970-01-01T00:00:10Z"}
    reading = EVENT.read(b'{"count":3}', properties(*texts.items()))
    assert reading is not None
    assert reading.row == [230.0, 3.0, 1.0, 1.0, 10.0]
    assert [reading.get(name) for name in EVENT.position] == [230.0, 3.0, "off", True, 10.0]


def test_the_name_counts_before_the_place_and_the_last_of_equal_names() -> None:
    by_place = EVENT.read(b"{}", properties(("pcc.voltage", "1")))
    by_both = EVENT.read(b"{}", properties(("voltage", "1"), ("pcc.voltage", "2"), ("voltage", "3")))
    assert by_place is not None and by_place.get("voltage") == 1.0
    assert by_both is not None and by_both.get("voltage") == 3.0


def test_a_property_of_another_kind_is_missing() -> None:
    reading = EVENT.read(b"{}", properties(("voltage", "high"), ("up", "1"), ("count", "2.5")))
    assert reading is not None and reading.row == [MISSING] * 5


def test_properties_alone_are_enough_and_without_any_an_unreadable_payload_is_none() -> None:
    picture = b"\x89PNG"
    reading = EVENT.read(picture, properties(("voltage", "230"), ("site", "north")))
    assert reading is not None
    assert reading.get("voltage") == 230.0 and reading.get("site") == "north" and reading.get("count") is None
    assert EVENT.read(picture) is None
    assert EVENT.read(picture, properties(content_type="image/png")) is None
    assert EVENT.read(picture, b"\xff\xff") is None


def test_undeclared_attributes_come_from_the_payload_and_then_from_properties() -> None:
    reading = UNTYPED.read(b'{"t":31,"deep":{"x":"y"}}', properties(("t", "5"), ("u", "6"), ("site", "007")))
    assert reading is not None and reading.row == []
    assert [reading.get(name) for name in ("t", "deep.x", "u", "site", "nothing", "t")] == [
        31.0,
        "y",
        6.0,
        "007",
        None,
        31.0,
    ]


@pytest.mark.parametrize("payload", ["json", "cbor", "sparkplug", "number"])
@given(data=st.data())
@examples(60)
def test_no_bytes_raise_and_every_row_agrees_with_its_values(payload: str, data: st.DataObject) -> None:
    attributes = ALL[:1] if payload == "number" else ALL
    event = EventType("e", "t", attributes, payload=payload)  # type: ignore[arg-type]
    bytes_ = data.draw(
        st.binary(max_size=60)
        | st.sampled_from(STARTS).flatmap(lambda start: st.binary(max_size=20).map(lambda end: start + end))
        | st.text("0123456789eE+-._{}[]:,\"' \n", max_size=20).map(str.encode)
    )
    encoded = data.draw(st.just(b"") | st.binary(max_size=30) | st.just(properties(("count", "7"), ("state", "x"))))
    topic = data.draw(st.sampled_from(["", "spBv1.0/g/NBIRTH/e", "spBv1.0/g/DDATA/e/d"]))
    reading = event.read(bytes_, encoded, topic)
    if not encoded:
        assert event.rows([bytes_], topic) == [None if reading is None else reading.row]
    if reading is None:
        return
    assert len(reading.row) == len(attributes)
    reading.get("undeclared.name")
    for position, attribute in enumerate(attributes):
        value = reading.get(attribute.name)
        if value is None:
            assert reading.row[position] == MISSING
        elif attribute.kind == "category":
            assert isinstance(value, str)
            assert reading.row[position] == {"on": 0.0, "off": 1.0}.get(value, OTHER)
        else:
            assert event.code(attribute.name, value) == reading.row[position]


VALUE = (Attribute("v"),)


@given(st.lists(filters, max_size=5), names)
def test_a_topic_belongs_to_the_first_type_that_claims_it(claims: list[str], topic: str) -> None:
    declared = {f"e{number}": Event(topic=claim, attributes=VALUE) for number, claim in enumerate(claims)}
    events = Events(Settings(event=declared))
    first = next((name for name, event in declared.items() if matches(event.topic, topic)), "untyped")
    assert events.of(topic).name == first


def test_a_type_is_as_declared() -> None:
    declared = Event(topic="a/+", attributes=VALUE, payload="number", routing=("v",), order=4)
    event = Events(Settings(event={"e": declared})).types["e"]
    assert (event.name, event.topic, event.attributes, event.routing, event.order) == ("e", "a/+", VALUE, ("v",), 4)
    assert event.rows([b"5"]) == [[5.0]]


def test_untyped_topics_have_the_configured_size() -> None:
    events = Events(Settings(content=Content(untyped_bytes=5)))
    assert events.of("anything").read(b'"123"') is not None
    assert events.of("anything").read(b'"1234"') is None
    assert UNTYPED.read(b'"' + b"x" * 65_535 + b'"') is None
    assert UNTYPED.attributes == ()


@pytest.mark.parametrize(("payload", "library"), [("cbor", "cbor2"), ("sparkplug", "google.protobuf")])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(
    payload: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tieline.match.events import sparkplug

    sparkplug.payload_class.cache_clear()
    for name in [*sys.modules]:
        if name == library or name.startswith(f"{library}."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ExtraNeeded, match=r"pip install 'tieline\[payloads\]'"):
        EventType("e", "t", VALUE, payload=payload)  # type: ignore[arg-type]


def test_small_installations_load_nothing_heavy() -> None:
    program = (
        "import sys; from tieline.match.events import Events; from tieline.conf.schema import *; "
        "Events(Settings(event={'e': Event(topic='t', attributes=(Attribute('v'),))})).of('t').rows([b'{}']); "
        "print(sorted({'numpy', 'numba', 'cbor2', 'google.protobuf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
