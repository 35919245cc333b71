"""The schema that readers rely on, and records as its columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.net.logserver.writing import record
from tieline.log.record import Occurrence
from tieline.net.logserver.columns import SCHEMAS, events_batch, log_batch, schema_of
from tieline.net.logserver.question import Unanswerable
from tieline.wire.properties import Properties, encode_properties


def test_the_schema_is_a_promise() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in SCHEMAS["log"]] == [
        ("offset", "int64", False),
        ("received", "timestamp[us, tz=UTC]", False),
        ("received_ns", "int64", False),
        ("publisher", "string", False),
        ("epoch", "int64", False),
        ("packet_id", "int32", False),
        ("dup", "bool", False),
        ("qos", "int8", False),
        ("retain", "bool", False),
        ("level", "int8", False),
        ("class", "string", False),
        ("topic", "string", False),
        ("payload", "binary", False),
        ("properties", "list<item: struct<key: string not null, value: string not null>>", False),
        ("raw_properties", "binary", False),
        ("digest", "binary", False),
        ("event", "string", True),
        ("attributes", "map<string, struct<number: double, text: string, flag: bool>>", True),
    ]
    assert [(field.name, str(field.type)) for field in SCHEMAS["events"]] == [
        ("offset", "int64"),
        ("time", "timestamp[us, tz=UTC]"),
        ("time_ns", "int64"),
        ("kind", "string"),
        ("client", "string"),
        ("topic", "string"),
        ("detail", "string"),
    ]


def test_a_message() -> None:
    pairs = [("seq", "7"), ("unit", "V"), ("seq", "8")]
    block = encode_properties(Properties(content_type="text/plain", user_property=pairs))[1:]
    message = record(5, properties=block, attributes={"voltage": 230.5, "phase": "L1", "islanded": True, "count": 3})
    message.offset = 17
    row = log_batch([message], SCHEMAS["log"], lambda _topic: "pcc").to_pylist()[0]
    assert row["offset"] == 17
    assert row["received"] == datetime(2023, 11, 14, 22, 13, 20, 5, tzinfo=UTC)
    assert row["received_ns"] == message.received
    assert (row["publisher"], row["class"], row["topic"]) == (message.publisher, message.class_, message.topic)
    assert (row["payload"], row["digest"]) == (message.payload, message.digest)
    assert row["properties"] == [{"key": key, "value": value} for key, value in pairs]
    assert row["raw_properties"] == block
    assert row["event"] == "pcc"
    nothing = {"number": None, "text": None, "flag": None}
    assert row["attributes"] == [
        ("voltage", nothing | {"number": 230.5}),
        ("phase", nothing | {"text": "L1"}),
        ("islanded", nothing | {"flag": True}),
        ("count", nothing | {"number": 3.0}),
    ]


attributes = st.none() | st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False) | st.booleans() | st.text())


@given(st.lists(attributes, max_size=8))
def test_every_row_keeps_its_own_attributes(maps: list[dict[str, object] | None]) -> None:
    batch = log_batch([record(attributes=each) for each in maps], schema_of("log", ["attributes"]), lambda _topic: None)
    batch.validate(full=True)
    found = [
        None
        if row is None
        else {name: next(value for value in values.values() if value is not None) for name, values in row}
        for row in batch.column("attributes").to_pylist()
    ]
    assert found == maps


@given(st.lists(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=3), max_size=6))
def test_every_row_keeps_its_own_properties(lists: list[list[tuple[str, str]]]) -> None:
    clean = [[(a.replace("\0", ""), b.replace("\0", "")) for a, b in pairs] for pairs in lists]
    blocks = [encode_properties(Properties(user_property=pairs))[1:] if pairs else b"" for pairs in clean]
    batch = log_batch([record(properties=each) for each in blocks], schema_of("log", ["properties"]), lambda _topic: "")
    batch.validate(full=True)
    assert [[(pair["key"], pair["value"]) for pair in row] for row in batch.column("properties").to_pylist()] == clean


def test_an_event() -> None:
    event = Occurrence(1_000_000_123, "traffic", "s", "a/b", {"count": 3, "waits_ms": {1: 2, 4: 1}}, 9)
    row = events_batch([event], SCHEMAS["events"]).to_pylist()[0]
    assert row["offset"] == 9 and row["time_ns"] == 1_000_000_123
    assert row["time"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (row["kind"], row["client"], row["topic"]) == ("traffic", "s", "a/b")
    assert row["detail"] == '{"count":3,"waits_ms":{"1":2,"4":1}}'


def test_some_columns_in_the_order_asked_for() -> None:
    schema = schema_of("log", ["payload", "offset"])
    assert log_batch([record(1)], schema, lambda _topic: None).schema.names == ["payload", "offset"]


@pytest.mark.parametrize("names", [[], ["offset", "offset"], ["colour"], [""]])
def test_columns_that_cannot_be_meant(names: list[str]) -> None:
    with pytest.raises(Unanswerable) as refused:
        schema_of("log", names)
    assert refused.value.rule == "columns"
