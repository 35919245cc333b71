"""The rows of records: what the broker reads is what the tables hold, and every record is in exactly one table."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.decode.records import prop, record, table
from tests.pipeline.lake.kit import READING, SWITCH, settings
from tieline.match.events import Events
from tieline.pipeline.decode import Decoder
from tieline.pipeline.decode.batch import MOST_DAYS
from tieline.pipeline.lake.document import new_document
from tieline.pipeline.lake.layout import QUARANTINE, Table, events

BAD = Table((QUARANTINE,))
DOCUMENT = new_document("parquet", "now").evolved(settings().event, "now")


def decoded(records: Any, document: Any = DOCUMENT) -> Any:
    return Decoder(document).decode(table(records)).rows


def reading(payload: bytes, **more: Any) -> Any:
    rows = decoded([record(0, payload=payload, **more)])
    assert len(rows) == 1
    ((where, found),) = rows.items()
    assert len(found) == 1
    return where, found.to_pylist()[0]


def test_a_reading() -> None:
    where, row = reading(
        b'{"time": "2026-02-22T23:59:59.25Z", "voltage": 231.5, "current": 4, "frequency": 50.01, "node": "n1"}',
        publisher="meter", qos=1, level=2, raw_properties=prop("seq", "r/5"), **{"class": "urgent"},
    )  # fmt: skip
    assert where == READING
    when = datetime(2026, 2, 22, 23, 59, 59, 250_000, UTC)
    assert row["_time"] == row["time"] == when and row["_received"] == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert (row["voltage"], row["current"], row["frequency"], row["node"]) == (231.5, 4.0, 50.01, "n1")
    assert (row["_publisher"], row["_qos"], row["_level"], row["_class"], row["_seq"]) == (
        "meter",
        1,
        2,
        "urgent",
        "r/5",
    )
    assert 0 <= row["_hilbert"] < 2**62


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "the payload is empty"),
        (b"nonsense", "the payload is not JSON"),
        (b'{"voltage": "high"}', "attribute voltage is not a number: high"),
        (b'{"voltage": true}', "attribute voltage is not a number: true"),
        (b'{"voltage": {"a": 1}}', 'attribute voltage is not a number: {"a":1}'),
        (b'{"voltage": [1]}', "attribute voltage is not a number: [1]"),
        (b'{"voltage": 9007199254740993}', "attribute voltage is an integer beyond 2^53"),
        (b'{"time": "yesterday"}', "attribute time is not a time: yesterday"),
        (b'{"time": 1772366400000}', "attribute time is no time between the years 1 and 9999"),
        (b'{"node": 7}', "attribute node is not a text: 7"),
        (b'{"voltage": 1e999}', "the payload has a number that is too large"),
        (b"1e999", "the payload has a number that is too large"),
        *(
            (payload, "the payload has none of the attributes: time, voltage, current, frequency, node")
            for payload in (b"1", b"[]", b'"x"', b"null", b"{}", b'{"VOLTAGE": 1}', b'{"something": 1}')
        ),
    ],
)
def test_reasons(payload: bytes, reason: str) -> None:
    where, row = reading(payload)
    assert where == BAD
    assert row["reason"].startswith(reason)
    assert (row["event"], row["payload"], row["offset"]) == ("reading", payload, 0)


@pytest.mark.parametrize("payload", [b'{"voltage": null, "time": null}', b'{"voltage": null}'])
def test_an_attribute_that_is_missing_is_null(payload: bytes) -> None:
    where, row = reading(payload)
    assert where == READING
    assert row["voltage"] is None and row["time"] is None and row["_time"] == row["_received"]


def test_a_user_property_stands_in_for_an_attribute_but_seq_says_nothing() -> None:
    where, row = reading(b'{"voltage": 1}', raw_properties=prop("current", "2.5"))
    assert where == READING and (row["voltage"], row["current"]) == (1.0, 2.5)
    assert reading(b'{"voltage": 1}', raw_properties=prop("current", "much"))[1]["reason"].startswith(
        "attribute current"
    )
    where, row = reading(b"\xff\xfe", raw_properties=prop("voltage", "230"))
    assert where == READING and row["voltage"] == 230.0
    assert reading(b"\xff\xfe", raw_properties=prop("seq", "230"))[0] == BAD


def test_integers_and_booleans() -> None:
    rows = decoded(
        [record(0, "grid/1/switch", b'{"closed": true, "count": 5.0}'), record(1, "grid/1/switch", b'{"count": 5.5}')]
    )
    assert rows[SWITCH].select(["closed", "count"]).to_pylist() == [{"closed": True, "count": 5}]
    assert rows[BAD]["reason"].to_pylist() == ["attribute count is not an integer: 5.5"]


def test_topics_of_no_type_keep_their_payload() -> None:
    rows = decoded([record(0, "elsewhere", b"\0\1")])
    assert rows[events("other")].select(["_topic", "_payload"]).to_pylist() == [
        {"_topic": "elsewhere", "_payload": b"\0\1"}
    ]


def test_an_attribute_of_the_past_stays_as_a_column() -> None:
    text = """
[event.switch]
topic = "grid/+/switch"
attributes = [{name = "count", kind = "integer"}, {name = "cause", kind = "category"}]
"""
    document = DOCUMENT.evolved(settings(text).event, "later")
    rows = decoded([record(0, "grid/1/switch", b'{"closed": true, "count": 1, "cause": "x"}')], document)
    assert rows[SWITCH].select(["closed", "count", "cause"]).to_pylist() == [{"closed": None, "count": 1, "cause": "x"}]


def test_more_days_than_a_portion_may_have_are_quarantined() -> None:
    payloads = [b'{"time": %d}' % (day * 86_400) for day in (*range(MOST_DAYS + 50), *range(MOST_DAYS))]
    rows = decoded([record(offset, payload=payload) for offset, payload in enumerate(payloads)])
    days = {each.date() for each in rows[READING]["_time"].to_pylist()}
    assert len(days) == MOST_DAYS and max(days) == date(1970, 1, 1).fromordinal(
        date(1970, 1, 1).toordinal() + MOST_DAYS - 1
    )
    assert len(rows[BAD]) == 50


NAMES = st.sampled_from(["time", "voltage", "current", "frequency", "node", "closed", "count", "x"])
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
GOOD = st.fixed_dictionaries(
    {
        "voltage": st.floats(0, 500),
        "current": st.just(1),
        "frequency": st.floats(45, 55),
        "time": st.just(0),
        "node": st.text(),
    }
)
PAYLOADS = st.binary(max_size=8) | (st.dictionaries(NAMES, VALUES) | GOOD).map(lambda found: json.dumps(found).encode())
RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["grid/1/reading", "grid/2/reading", "grid/1/switch", "elsewhere"]),
        PAYLOADS,
        st.sampled_from([b"", prop("seq", "1"), prop("voltage", "7"), prop("count", "x")]),
    ),
    max_size=25,
)


@given(RECORDS)
def test_every_record_is_in_one_table_and_says_what_the_broker_reads(found: Any) -> None:
    records = [
        record(offset, topic, payload, raw_properties=block) for offset, (topic, payload, block) in enumerate(found)
    ]
    rows = decoded(records)
    broker = Events(settings())
    offsets = []
    for where, here in rows.items():
        offsets += here["offset" if where == BAD else "_offset"].to_pylist()
        if where in (READING, SWITCH):
            names = [attribute.name for attribute in broker.types[where.parts[1]].attributes]
            for row in here.to_pylist():
                topic, payload, block = found[row["_offset"]]
                said = broker.of(topic).read(payload, block, topic)
                assert said is not None
                for name in names:
                    value = row[name]
                    value = value.timestamp() if isinstance(value, datetime) else value
                    expected = said.get(name)
                    assert value == (
                        pytest.approx(expected, abs=1e-6) if name == "time" and expected is not None else expected
                    )
    assert sorted(offsets) == list(range(len(found)))


def test_an_empty_batch_has_no_rows() -> None:
    assert decoded([]) == {}
    assert isinstance(table([]), pa.Table)
