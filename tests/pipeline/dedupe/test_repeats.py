"""Fewer keys, the same answer: what tasks leave out changes nothing in what is found to be a retry."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.decode.records import record, table
from tieline.pipeline.dedupe.repeats import keys
from tieline.pipeline.dedupe.retries import MOST_RECORDS, Retries, Sent

SENT = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.integers(1, 2), st.integers(1, 6), st.booleans(), st.sampled_from([b"1", b"2"])
    ),
    max_size=40,
)


def retries(records: pa.Table, memory: Retries) -> dict[int, int]:
    found = [Sent(*row) for row in zip(*records.select(Sent._fields).to_pydict().values(), strict=True)]
    return {sent.offset: first for sent, first in zip(found, memory.firsts(found), strict=True) if first is not None}


@given(SENT, st.integers(1, 4), st.integers(1, 10))
def test_retries_found_with_the_last_keys_are_those_found_with_all(records: Any, most: int, size: int) -> None:
    whole = table(
        [
            record(
                offset,
                publisher=who,
                epoch=epoch,
                packet_id=packet,
                dup=dup and offset > len(records) // 2,
                digest=digest,
                qos=1,
            )
            for offset, (who, epoch, packet, dup, digest) in enumerate(records)
        ]
    )
    all_of_them = Retries(most_records=most)
    reduced = Retries(most_records=most)
    for begin in range(0, len(records), size):
        part = whole.slice(begin, size)
        assert retries(keys(part, most).sent, reduced) == retries(part, all_of_them)
        assert sorted(reduced.table().to_pylist(), key=str) == sorted(all_of_them.table().to_pylist(), key=str)


def test_only_what_is_needed_goes_to_the_driver() -> None:
    many = table([record(offset, qos=1, packet_id=offset % 2_000 + 1) for offset in range(5_000)])
    assert len(keys(many).sent) == MOST_RECORDS
    assert len(keys(table([record(0)])).sent) == 0
