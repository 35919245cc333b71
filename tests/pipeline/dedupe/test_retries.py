from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tieline.pipeline.dedupe.retries import Retries, Sent

SENT = st.builds(
    Sent,
    shard=st.sampled_from(["x", "y"]),
    publisher=st.sampled_from(["a", "b"]),
    epoch=st.integers(1, 2),
    packet_id=st.integers(1, 4),
    digest=st.sampled_from([b"1", b"2"]),
    offset=st.just(0),
    dup=st.booleans(),
)


def log(records: list[Sent]) -> list[Sent]:
    return [record._replace(offset=place) for place, record in enumerate(records)]


def expected(records: list[Sent]) -> list[int | None]:
    """The obvious way: look back for the last record of the packet id."""
    found: list[int | None] = []
    for place, record in enumerate(records):
        same = [each for each in range(place) if records[each][:4] == record[:4]]
        first = None
        if record.dup and same and records[same[-1]].digest == record.digest:
            first = same[-1] if found[same[-1]] is None else found[same[-1]]
        found.append(first)
    return found


@given(st.lists(SENT, max_size=40), st.integers(0, 40))
def test_a_retry_is_one_that_looks_like_the_last_record_of_its_packet_id(records: Any, restart: int) -> None:
    records = log(records)
    retries = Retries()
    found = retries.firsts(records[:restart])
    again = Retries()
    again.restore(retries.table())
    assert found + again.firsts(records[restart:]) == expected(records)


@given(st.lists(SENT, max_size=60), st.integers(1, 3), st.integers(1, 3))
def test_memory_is_bounded_and_only_forgets(records: Any, most_records: int, most_sessions: int) -> None:
    records = log(records)
    retries = Retries(most_records=most_records, most_sessions=most_sessions)
    for record, mine, exact in zip(records, retries.firsts(records), expected(records), strict=True):
        assert mine is None or record.dup
        assert exact is not None or mine is None
    assert len(retries) <= most_records * most_sessions
