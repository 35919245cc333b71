"""What a row keeps of its record, and what ingest asks of a log server."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.decode.records import prop
from tieline.pipeline.decode import records
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.jobs.ingest_batch import Logs
from tieline.wire.properties import user_properties


def test_ingest_does_not_let_the_log_server_read_messages_that_it_reads_itself() -> None:
    assert "attributes" not in NEEDED and "payload" in NEEDED
    asked = Logs(["http://127.0.0.1:9884"]).source()["columns"].split(",")
    assert tuple(asked) == NEEDED


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
PROPERTIES = st.lists(
    st.builds(
        prop,
        st.sampled_from(["seq", "seq2", "se", "x", "\u0003seq"]),
        TEXTS | st.just("\x26\0\x03seq".replace("\0", "")),
    ),
    max_size=3,
).map(b"".join)


@given(st.lists(PROPERTIES, max_size=6))
def test_seq_is_what_the_broker_reads_as_a_user_property(blocks: Any) -> None:
    found = records.seq_texts(pa.array(blocks, pa.binary())).to_pylist()
    assert found == [dict(user_properties(block)).get("seq") for block in blocks]


def test_an_array_that_is_part_of_another_is_read_as_itself() -> None:
    whole = pa.array([prop("seq", "1"), prop("seq", "22"), b"", prop("a", "b") + prop("seq", "3")], pa.binary())
    assert records.seq_texts(whole.slice(1)).to_pylist() == ["22", None, "3"]
    assert records.seq_texts(whole.slice(2, 1)).to_pylist() == [None]


def test_a_portion_of_usual_size() -> None:
    found = records.seq_texts(pa.array([prop("seq", "7"), prop("a", "x" * 100)] * 40_000, pa.binary()))
    assert found.null_count == 40_000


def test_runs_and_numbers() -> None:
    said = [
        "12",
        "a/12",
        "a/b/3",
        "/4",
        "007",
        "0",
        "9223372036854775807",
        "9223372036854775808",
        "x",
        "a/",
        "-1",
        "1.5",
        "",
        None,
        "99999999999999999999",
        "0000000000000000000000001",
    ]
    run, number = records.seq_numbers(pa.array(said, pa.string()))
    assert list(zip(run.to_pylist(), number.to_pylist(), strict=True)) == [
        ("", 12), ("a", 12), ("a/b", 3), ("", 4), ("", 7), ("", 0), ("", 2**63 - 1), *[(None, None)] * 8, ("", 1)
    ]  # fmt: skip
