from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.congestion import BEGINS, ENDS, LEAST_S, MOST_S, Congestion, Path
from tieline.sched.levels import LEVELS


@given(st.floats(0, 10), st.floats(1, 1e9), st.integers(0, 10**6))
def test_the_delay_is_half_a_round_trip_and_the_time_on_the_link(rtt_s: float, rate: float, size: int) -> None:
    assert Path(rtt_s, rate).delay_s(size) == min(0.1, max(0.001, rtt_s / 2 + size / rate))


def test_what_is_not_known_of_a_path_takes_no_time() -> None:
    assert Path().delay_s(10**6) == LEAST_S
    assert Path(rtt_s=0.2).delay_s(10**6) == 0.1
    assert Path(rate=16_000).delay_s(1_000) == 0.0625
    assert Path(rate=1e-6).delay_s(1_000) == MOST_S, "a reader that has stopped"


def test_on_a_fast_path_microseconds_of_waiting_are_no_congestion() -> None:
    path = Path(rtt_s=20e-6, rate=1e9)
    assert not Congestion().observe(1, 0.0004, path.delay_s(100))


def test_congestion_begins_above_one_ratio_and_ends_below_another() -> None:
    congestion = Congestion()
    heard = [congestion.observe(1, waited, 1.0) for waited in (0.5, 0.51, 0.3, 0.25, 0.24, 0.4, 0.5, 0.6)]
    assert heard == [False, True, True, True, False, False, False, True]
    assert congestion.began[1] == 2
    assert congestion.ratio[1] == 0.6


@given(st.lists(st.tuples(st.integers(0, LEVELS - 1), st.floats(0, 2)), max_size=100))
def test_each_class_has_a_state_of_its_own(observations: list[tuple[int, float]]) -> None:
    congestion = Congestion()
    states = [False] * LEVELS
    for level, ratio in observations:
        states[level] = ratio >= ENDS if states[level] else ratio > BEGINS
        assert congestion.observe(level, ratio, 1.0) == states[level]
        assert congestion.states == states


def test_a_class_that_nobody_waits_for_is_calm() -> None:
    congestion = Congestion()
    congestion.observe(0, 9.0, 1.0)
    congestion.observe(2, 9.0, 1.0)
    congestion.calm(0)
    assert congestion.states == [False, False, True, False]
    congestion.clear()
    assert congestion.states == [False] * LEVELS
    assert congestion.ratio == [0.0] * LEVELS
    assert congestion.began == [1, 0, 1, 0], "what happened stays on the account"
