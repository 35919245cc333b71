"""Rows as messages: the same rows get the same numbers, however they were cut and shuffled."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructField, StructType, _parse_datatype_json_value

from tieline.pipeline.broker import BrokerError
from tieline.pipeline.options import OptionError
from tieline.pipeline.sink import writers
from tieline.pipeline.sink.options import check_columns
from tieline.pipeline.sink.rows import BATCH_SPAN, Message, messages, numbered, producer_of
from tieline.pipeline.sink.writers import stage, unpack

ROWS = st.lists(
    st.builds(
        Message,
        st.integers(-5, 5),
        st.sampled_from(["a", "a/b", "b"]),
        st.binary(max_size=3),
        st.integers(1, 2),
        st.booleans(),
        st.integers(-1, 3),
    ),
    max_size=30,
)


def table(rows: list[Message]) -> pa.RecordBatch:
    columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) if rows else [()] * 6
    levels = pa.array([None if level == -1 else level for level in columns[5]], pa.int32())
    kinds = (pa.int64(), pa.string(), pa.binary(), pa.int32(), pa.bool_())
    arrays = [pa.array(column, kind) for column, kind in zip(columns[:5], kinds, strict=True)]
    return pa.record_batch([*arrays, levels], names=["order", "topic", "payload", "qos", "retain", "level"])


@given(rows=ROWS, data=st.data())
def test_numbers_do_not_depend_on_partitions(rows: list[Message], data: st.DataObject) -> None:
    batch_id = data.draw(st.integers(0, 2**20))
    expected = numbered(rows, batch_id)
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    edges = [0, *cuts, len(rows)]
    tasks = [shuffled[first:last] for first, last in pairwise(edges)]
    staged = [stage(iter([table(task)]), "query") for task in tasks]
    assert numbered(unpack(staged), batch_id) == expected
    assert [number for number, _row in expected] == list(
        range(batch_id * BATCH_SPAN, batch_id * BATCH_SPAN + len(rows))
    )
    assert sorted(row for _number, row in expected) == sorted(rows)


def test_the_order_that_a_query_asks_for_comes_first() -> None:
    rows = [Message(2, "a", b"", 1, False, -1), Message(1, "b", b"", 1, False, -1)]
    assert [row.topic for _number, row in numbered(rows, 0)] == ["b", "a"]


def test_a_producer_is_the_querys_and_stays_so() -> None:
    assert producer_of("one") == producer_of("one") != producer_of("other")
    assert len(producer_of("one")) == 16 and int(producer_of("one"), 16) >= 0


def test_what_columns_leave_out() -> None:
    batch = pa.record_batch([pa.array(["a", "b"]), pa.array(["ü", None])], names=["topic", "payload"])
    assert list(messages(batch, least_qos=1)) == [
        Message(0, "a", "ü".encode(), 1, False, -1),
        Message(0, "b", b"", 1, False, -1),
    ]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("topic", None, "no topic"),
        ("topic", "a/#", 'the topic "a/#", which cannot be published to'),
        ("topic", "", "which cannot be published to"),
        ("qos", 3, "qos = 3: here it lies between 1 and 2"),
        ("qos", 0, "only acknowledged messages can be made sure of"),
        ("level", 4, "level = 4: here it lies between 0 and 3"),
    ],
)
def test_rows_that_no_broker_takes(column: str, value: object, text: str) -> None:
    row: dict[str, object] = {"topic": "a", "payload": b"", "qos": 1, "level": 0, column: value}
    batch = pa.RecordBatch.from_pylist([row])
    with pytest.raises(BrokerError, match=text):
        list(messages(batch, least_qos=1))


def test_a_batch_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Message(0, "a", b"", 1, False, -1)] * 6
    monkeypatch.setattr(writers, "MOST_ROWS", 10)
    staged = stage(iter([table(rows)]), "query")
    assert len(unpack([staged])) == 6
    with pytest.raises(BrokerError, match="more than 10 rows"):
        unpack([staged, staged])
    with pytest.raises(BrokerError, match="more than 10 rows"):
        stage(iter([table(rows), table(rows)]), "query")


def schema(**columns: str) -> StructType:
    return StructType([StructField(name, _parse_datatype_json_value(kind)) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"payload": "string"}, "there is no column topic"),
        ({"topic": "string"}, "there is no column payload"),
        ({"topic": "string", "payload": "binary", "voltage": "double"}, 'does not know the column "voltage"'),
        ({"topic": "string", "payload": "double"}, "the column payload cannot be double"),
        ({"topic": "binary", "payload": "binary"}, "the column topic cannot be binary"),
        ({"topic": "string", "payload": "binary", "retain": "integer"}, "the column retain cannot be int"),
    ],
)
def test_columns_that_are_no_messages(columns: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        check_columns("tieline", schema(**columns))


def test_columns_that_are() -> None:
    check_columns(
        "tieline", schema(topic="string", payload="string", qos="byte", retain="boolean", level="long", order="integer")
    )
