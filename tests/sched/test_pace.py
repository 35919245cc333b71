"""A link of known capacity is given what it carries, and one packet ahead at most."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.pace import Pacer


def test_what_was_given_leaves_at_the_rate_with_what_packets_add() -> None:
    pacer = Pacer(128_000)
    assert 1_400 <= pacer.room(0.0) <= 1_514
    pacer.gave(1_448, 0.0)
    assert pacer.room(0.0) <= 1
    # 1,514 bytes leave in 95 ms
    assert 0.04 < pacer.next_at() < 0.05
    assert 600 < pacer.room(pacer.next_at()) < 760
    assert pacer.room(10.0) == pacer.room(0.1)


@given(st.floats(1_000, 1e9), st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 3_000)), min_size=1, max_size=50))
def test_never_more_than_a_packet_and_one_piece_is_ahead(bits: float, asked: list[tuple[float, int]]) -> None:
    pacer, now, given_, began = Pacer(bits), 0.0, 0.0, 0.0
    longest = max(1_600.0, 0.005 * bits / 8 + 66)
    for wait_s, size in asked:
        now += wait_s
        room = pacer.room(now)
        if room <= 0:
            now = pacer.next_at() + 1e-9
            room = pacer.room(now)
            assert room > 0
        given_ = max(0.0, given_ - (now - began) * bits / 8)
        began = now
        some = min(size, max(room, 1_400))
        pacer.gave(some, now)
        given_ += some
        assert given_ <= longest + 1_400
