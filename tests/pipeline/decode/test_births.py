"""Sparkplug along the log: every record is read with the births before it, whichever task or batch has them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.match.events.test_sparkplug import payload
from tests.pipeline.decode.records import record, table
from tests.pipeline.lake.kit import settings
from tieline.match.events import Events
from tieline.pipeline.decode import Decoder
from tieline.pipeline.decode.births import Birth, latest
from tieline.pipeline.lake.document import new_document
from tieline.pipeline.lake.layout import QUARANTINE, Table, events

SETTINGS = settings(
    """
[event.metric]
topic = "spBv1.0/+/+/+"
payload = "sparkplug"
attributes = [{name = "a"}, {name = "b"}]
"""
)
DOCUMENT = new_document("parquet", "now").evolved(SETTINGS.event, "now")


def born(edge: str, alias_of_a: int) -> tuple[str, bytes]:
    metrics = [
        {"name": name, "alias": alias_of_a + place, "datatype": 10, "double_value": -1.0}
        for place, name in enumerate("ab")
    ]
    return f"spBv1.0/g/NBIRTH/{edge}", payload(*metrics)


def said(edge: str, alias: int) -> tuple[str, bytes]:
    return f"spBv1.0/g/NDATA/{edge}", payload({"alias": alias, "double_value": float(alias)})


MESSAGES = st.lists(
    st.builds(born, st.sampled_from("xy"), st.integers(0, 3))
    | st.builds(said, st.sampled_from("xy"), st.integers(0, 4)),
    max_size=14,
)


@given(MESSAGES, st.integers(1, 5), st.integers(0, 14), st.randoms(use_true_random=False))
def test_parts_of_a_log_say_what_the_broker_read(messages: Any, size: int, before: int, random: Any) -> None:
    broker = Events(SETTINGS)
    expected = {}
    for offset, (topic, data) in enumerate(messages):
        reading = broker.of(topic).read(data, b"", topic)
        assert reading is not None
        expected[offset] = (reading.get("a"), reading.get("b"))
    births = [Birth("edge", offset, topic, data) for offset, (topic, data) in enumerate(messages) if "NBIRTH" in topic]
    # those of earlier batches are remembered one by sender, those of this batch are all known
    known = (
        *latest(birth for birth in births if birth.offset < before),
        *(birth for birth in births if birth.offset >= before),
    )
    decoder = Decoder(DOCUMENT, known)
    parts = [range(begin, min(begin + size, len(messages))) for begin in range(before, len(messages), size)]
    random.shuffle(parts)
    found: dict[int, tuple[float | None, float | None]] = {}
    for part in parts:
        rows = decoder.decode(table([record(offset, *messages[offset]) for offset in part])).rows[events("metric")]
        found |= {row["_offset"]: (row["a"], row["b"]) for row in rows.to_pylist()}
    assert found == {offset: expected[offset] for offset in range(before, len(messages))}


def test_other_brokers_births_do_not_count() -> None:
    topic, data = born("x", 0)
    decoder = Decoder(DOCUMENT, (Birth("south", 0, topic, data),))
    rows = decoder.decode(table([record(5, *said("x", 0)), record(5, *said("x", 0), shard="south")])).rows[
        events("metric")
    ]
    assert rows["a"].to_pylist() == [None, 0.0]


def test_what_is_no_sparkplug_is_refused() -> None:
    rows = Decoder(DOCUMENT).decode(table([record(0, "spBv1.0/g/NDATA/x", b"\xff")])).rows
    assert rows[Table((QUARANTINE,))]["reason"].to_pylist() == ["the payload is not Sparkplug B"]
