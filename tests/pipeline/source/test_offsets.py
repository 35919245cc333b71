"""Places in several logs, and how a limit is shared among them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tieline.pipeline.source.offsets import LogPlace, decode, encode, shards, spread
from tieline.pipeline.source.ranges import cut

NAMES = st.text("abcde-", min_size=1, max_size=4)
PLACES = st.dictionaries(NAMES, st.builds(LogPlace, st.integers(0, 2**63 - 1), st.floats(0, 2e9)))


@given(places=PLACES)
def test_a_place_comes_back_from_a_checkpoint_and_is_written_in_one_way(places: dict[str, LogPlace]) -> None:
    text = json.dumps(encode(places))
    assert decode(json.loads(text)) == places
    backwards = dict(reversed(places.items()))
    assert json.dumps(encode(backwards)) == text
    assert json.dumps(encode(decode(json.loads(text)))) == text
    assert shards(text) == shards(json.loads(text)) == {name: place.offset for name, place in places.items()}


def test_no_offset_is_no_shards() -> None:
    assert shards(None) == {}


@given(waiting=st.dictionaries(NAMES, st.integers(0, 50), max_size=6), limit=st.integers(0, 120))
def test_a_limit_is_shared_as_one_at_a_time_would(waiting: dict[str, int], limit: int) -> None:
    shares = spread(waiting, limit)
    assert shares.keys() == waiting.keys()
    assert sum(shares.values()) == min(limit, sum(waiting.values()))
    # the oracle: always to whoever has got least so far and still has something
    given_: dict[str, int] = dict.fromkeys(waiting, 0)
    for _ in range(limit):
        hungry = [name for name in waiting if given_[name] < waiting[name]]
        if hungry:
            given_[min(hungry, key=lambda name: given_[name])] += 1
    # which of several equals gets the odd one is a matter of taste
    assert sorted(shares.values()) == sorted(given_.values())
    assert all(shares[name] <= waiting[name] for name in waiting)


def test_a_tiny_limit_starves_nobody() -> None:
    waiting = {"a": 5, "b": 5, "c": 5}
    for _ in range(15):
        for name, share in spread(waiting, 1).items():
            waiting[name] -= share
        assert max(waiting.values()) - min(waiting.values()) <= 1
    assert sum(waiting.values()) == 0


@given(start=st.integers(0, 1_000), count=st.integers(0, 500), rows=st.integers(1, 120))
def test_pieces_make_up_the_range(start: int, count: int, rows: int) -> None:
    parts = cut("edge", "http://x", start, start + count, rows=rows)
    assert [n for part in parts for n in range(part.start, part.end)] == list(range(start, start + count))
    sizes = [part.end - part.start for part in parts]
    assert all(0 < size <= rows for size in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(parts) == -(-count // rows)
