from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.check_policy import Link, rules
from tests.kits.examples import examples
from tieline.sched.feedback import Feedback
from tieline.sched.levels import DEFAULTS, LEVELS, URGENT, Patience, Rules
from tieline.sched.policy import WindowState
from tieline.sched.waiting import Waiting

#: Long enough that no slot is ever due.
NEVER: Final = 1e9


def ruled(
    *,
    floor: float = 0.0,
    timeouts: tuple[float, ...] = (NEVER,) * LEVELS,
    weights: tuple[float, ...] = (1.0,) * LEVELS,
    period_s: float = 1.0,
    frequency: int = 1,
) -> Rules:
    low, normal, important, urgent = (
        replace(traffic, timeout_s=timeouts[traffic.level], weight=weights[traffic.level]) for traffic in DEFAULTS
    )
    patience = Patience(period_s=period_s, frequency=frequency)
    return Rules(classes=(low, normal, important, urgent), patience=patience, floor=floor)


class Flood(Link):
    """A link of 100 messages per second on which one level, hot, never runs dry."""

    def __init__(self, rules: Rules, level: int = URGENT) -> None:
        self.feedback: Feedback[int] = Feedback(rules)
        super().__init__(self.feedback, rate=100_000.0)
        self.level = level
        self.push(level, size=1_000, flow="flood", heat=9)
        self.push(level, size=1_000, flow="flood", heat=9)

    def send(self, window: WindowState = WindowState.OPEN) -> Waiting[int]:
        sent = super().send(window)
        if sent.flow == "flood":
            self.push(self.level, size=1_000, flow="flood", heat=9)
        return sent

    def others(self, until: float) -> list[tuple[float, Waiting[int]]]:
        """What is sent beside the flood, and when, until a time."""
        heard = []
        while self.now < until:
            sent = self.send()
            if sent.flow != "flood":
                heard.append((self.now, sent))
        return heard


# -- in turn


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 2)), max_size=40))
def test_without_floor_and_slots_it_goes_by_level_heat_depth_and_arrival(arrivals: list[tuple[int, int, int]]) -> None:
    link = Link(Feedback(ruled()))
    waiting = [link.push(level, heat=heat, depth=depth) for level, heat, depth in arrivals]
    waiting.sort(key=lambda one: (-one.level, -one.heat, one.depth, one.order))
    assert link.send_all() == [one.entry for one in waiting]


def test_when_the_higher_levels_are_empty_everything_low_is_flushed() -> None:
    link = Link(Feedback(Rules()))
    for level in (0, 0, 0, 1, 2):
        link.push(level)
    assert link.send_all() == [5, 4, 1, 2, 3]


# -- slots


@pytest.mark.parametrize("frequency", [1, 2, 5])
@pytest.mark.parametrize("period_s", [0.5, 1.0, 2.0])
def test_a_late_level_gets_its_frequency_of_slots_in_every_period(frequency: int, period_s: float) -> None:
    flood = Flood(ruled(timeouts=(5.0, NEVER, NEVER, NEVER), period_s=period_s, frequency=frequency))
    for _ in range(200):
        flood.push(0, flow="low")
    assert not flood.others(5.0 - period_s), "not before one period is left of the timeout"
    sent = [when for when, _ in flood.others(15.0)]
    assert sent[0] < 5.0 - period_s + 0.05
    assert len(sent) == pytest.approx((10.0 + period_s) / period_s * frequency, abs=frequency)
    # never more than the slots of two neighbouring periods in the length of one
    assert all(later - earlier >= period_s * 0.9 for earlier, later in zip(sent, sent[2 * frequency :], strict=False))
    assert flood.feedback.slots_served == pytest.approx(len(sent), abs=1)


@pytest.mark.parametrize("frequency", [1, 3, 7])
@pytest.mark.parametrize("level", [URGENT, 1], ids=["below", "inside a level"])
def test_the_frequency_counts_messages_however_many_wait_in_one_entry(frequency: int, level: int) -> None:
    flood = Flood(ruled(timeouts=(2.0, 2.0, NEVER, NEVER), frequency=frequency), level)
    low = 0 if level == URGENT else level
    flood.push(low, size=100 * 5, messages=5)
    flood.push(low, size=100 * 500, messages=500)
    flood.now = 2.0
    sent = [when for when, one in flood.others(12.0) for _ in range(one.messages)]
    assert len(sent) == 10 * frequency
    assert all(later - earlier >= 0.9 for earlier, later in zip(sent, sent[frequency:], strict=False))
    assert flood.feedback.slots_served == len(sent)


def test_the_slot_belongs_to_the_oldest_message_however_cold_its_topic() -> None:
    flood = Flood(ruled(timeouts=(5.0, NEVER, NEVER, NEVER)))
    cold = flood.push(0)
    flood.others(2.0)
    for _ in range(5):
        flood.push(0, heat=5)
    ((when, first),) = flood.others(5.0)
    assert first is cold
    assert when == pytest.approx(4.0, abs=0.05)


def test_a_cold_topic_gets_a_slot_among_the_hot_ones_of_its_own_level() -> None:
    flood = Flood(ruled(timeouts=(NEVER, 5.0, NEVER, NEVER)), level=1)
    cold = flood.push(1)
    ((when, first),) = flood.others(6.0)
    assert first is cold
    assert when == pytest.approx(4.0, abs=0.05)


def test_the_order_of_urgent_messages_is_kept_until_their_timeout_is_over() -> None:
    flood = Flood(ruled(timeouts=(NEVER, NEVER, NEVER, 1.0)))
    cold = flood.push(URGENT)
    ((when, first),) = flood.others(3.0)
    assert first is cold
    assert when == pytest.approx(1.0, abs=0.05)


def test_slots_inside_a_level_are_counted_too() -> None:
    flood = Flood(ruled(timeouts=(NEVER, 3.0, NEVER, NEVER)), level=1)
    for _ in range(50):
        flood.push(1)
    assert len(flood.others(12.0)) == 10
    assert flood.feedback.slots_served == 10


@pytest.mark.parametrize("timeouts", [(4.0, 4.0, NEVER, NEVER), (2.0, 5.0, NEVER, NEVER), (5.0, 2.0, NEVER, NEVER)])
def test_of_two_late_levels_the_one_goes_first_whose_timeout_is_next(timeouts: tuple[float, ...]) -> None:
    flood = Flood(ruled(timeouts=timeouts))
    flood.push(0)
    flood.now = 1.5
    flood.push(1)
    flood.now = 9.0
    in_time_order = [0, 1] if timeouts[0] < timeouts[1] + 1.5 else [1, 0]
    assert [sent.level for _, sent in flood.others(9.5)] == in_time_order


def test_a_subscribers_timeout_replaces_those_below_urgent() -> None:
    flood = Flood(Rules(patience=Patience(period_s=0.5, timeout_s=2.0), floor=0.0))
    low, important, urgent = flood.push(0), flood.push(2), flood.push(URGENT)
    sent = {waiting.entry: when for when, waiting in flood.others(4.0)}
    assert sent[low.entry] == pytest.approx(1.5, abs=0.05)
    assert sent[important.entry] == pytest.approx(1.5, abs=0.05)
    assert sent[urgent.entry] == pytest.approx(DEFAULTS[URGENT].timeout_s, abs=0.05)


def test_slots_are_counted_at_the_level_at_which_a_flow_is_served() -> None:
    flood = Flood(ruled(timeouts=(NEVER, NEVER, 3.0, NEVER)))
    for _ in range(50):
        flood.push(0, flow="mixed")
        flood.push(2, flow="mixed")
    assert len(flood.others(12.0)) == 10


# -- the floor


@examples(25)
@given(
    floor=st.floats(0.02, 0.5),
    weights=st.tuples(st.floats(0.2, 10), st.floats(0.2, 10), st.floats(0.2, 10)),
    sizes=st.lists(st.integers(20, 1_500), min_size=LEVELS, max_size=LEVELS),
)
def test_the_levels_below_share_the_floor_by_their_weights(
    floor: float, weights: tuple[float, float, float], sizes: list[int]
) -> None:
    policy: Feedback[int] = Feedback(ruled(floor=floor, weights=(*weights, 1.0)))
    link = Link(policy)
    for level, size in enumerate(sizes):
        link.push(level, size=size)
    for _ in range(1_500):
        sent = link.send()
        link.push(sent.level, size=sent.size)
    for level in range(URGENT):
        expected = floor * weights[level] / sum(weights)
        assert policy.share(level) == pytest.approx(expected)
        assert abs(link.sent[level] - expected * sum(link.sent)) <= 3 * max(sizes)


@pytest.mark.parametrize("level", range(URGENT))
def test_the_only_level_below_has_the_whole_floor(level: int) -> None:
    flood = Flood(ruled(floor=0.2))
    for _ in range(500):
        flood.push(level, size=1_000, flow="low")
    flood.others(20.0)
    assert flood.sent[level] / sum(flood.sent) == pytest.approx(0.2, abs=0.005)
    assert flood.feedback.floor_served == pytest.approx(flood.sent[level] / 1_000, abs=1)


def test_slots_do_not_eat_up_the_floor_of_another_level() -> None:
    rules = ruled(
        floor=0.5, weights=(0.1, 1.0, 1.0, 1.0), timeouts=(1.0, NEVER, NEVER, NEVER), period_s=0.1, frequency=100
    )
    flood = Flood(rules)
    for _ in range(2_000):
        flood.push(0, size=1_000, flow="late")
        flood.push(1, size=1_000, flow="paid")
    flood.others(10.0)
    assert flood.sent[0] > flood.feedback.share(0) * sum(flood.sent) * 2, "its slots give it much more"
    assert flood.sent[1] >= flood.feedback.share(1) * sum(flood.sent)


def test_a_slot_takes_what_credit_there_is() -> None:
    flood = Flood(ruled(floor=0.1, timeouts=(2.0, NEVER, NEVER, NEVER)))
    flood.push(0, size=1_000)
    flood.push(0, size=1_000)
    assert [flood.send().level for _ in range(5)] == [URGENT] * 5
    flood.now = 1.0
    assert flood.send().level == 0
    assert [flood.send().level for _ in range(9)] == [URGENT] * 9


def test_a_message_larger_than_any_quantum_is_saved_up_for() -> None:
    flood = Flood(ruled(floor=0.1))
    flood.push(0, size=50_000)
    ((when, _),) = flood.others(10.0)
    assert when == pytest.approx(5.0, abs=0.1), "after 450 messages of 1 kB, and then half a second on the link"


def test_a_level_that_the_window_stops_earns_nothing() -> None:
    flood = Flood(ruled(floor=0.1))
    for _ in range(50):
        flood.push(1, size=1_000, flow="bulk", is_assured=True)
    for _ in range(200):
        assert flood.send(WindowState.CLOSED).level == URGENT
    assert [flood.send().level for _ in range(9)] == [URGENT] * 9


def test_credit_does_not_outlast_those_who_wait() -> None:
    flood = Flood(ruled(floor=0.1))
    flood.push(0, size=50_000)
    flood.others(4.0)
    assert flood.policy.evict() is not None
    flood.send()
    for _ in range(50):
        flood.push(0, size=1_000, flow="low")
    assert [flood.send().level for _ in range(9)] == [URGENT] * 9


# -- the bound


@examples(100)
@given(
    rules=rules(),
    rounds=st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2_000)), max_size=3),
            st.sampled_from((0.0, 0.01, 1.0)),
        ),
        min_size=20,
        max_size=80,
    ),
)
def test_before_the_highest_goes_at_most_one_floor_quantum_and_one_message(
    rules: Rules, rounds: list[tuple[list[tuple[int, int]], float]]
) -> None:
    link = Link(Feedback(rules))
    quantum = overtaken = 0.0
    for arrivals, pause_s in rounds:
        for level, size in arrivals:
            link.push(level, size=size)
        link.now += pause_s
        if not len(link.policy):
            continue
        highest = max(level for level in range(LEVELS) if link.policy.waits(level))
        sent = link.send()
        if sent.level == highest:
            quantum, overtaken = rules.floor / (1 - rules.floor) * sent.size, 0.0
        else:
            assert overtaken <= quantum, "the overtakers before the last"
            overtaken += sent.size


def test_an_urgent_message_waits_for_one_message_even_if_all_levels_are_due() -> None:
    flood = Flood(ruled(floor=0.1, timeouts=(3.0, 3.0, 3.0, 1.0), frequency=10), level=2)
    for _ in range(20):
        flood.push(0, size=1_000)
        flood.push(1, size=1_000)
    flood.now = 3.0
    for _ in range(50):
        urgent = flood.push(URGENT, size=1_000)
        assert urgent in (flood.send(), flood.send())
        if not flood.policy.waits(URGENT):
            flood.send()


# -- what could not be sent


def test_what_is_put_back_whole_has_cost_nothing() -> None:
    flood = Flood(ruled(timeouts=(2.0, NEVER, NEVER, NEVER)))
    low = flood.push(0)
    flood.now = 2.0
    for _ in range(5):
        assert flood.policy.pop(flood.now) is low
        flood.policy.put_back(low)
    assert flood.send() is low
    flood.send()
    assert flood.feedback.slots_served == 1


def test_what_is_put_back_too_late_has_its_place_and_has_been_paid() -> None:
    flood = Flood(ruled(timeouts=(2.0, NEVER, NEVER, NEVER)))
    low = flood.push(0, flow="low")
    flood.push(0, flow="low")
    flood.now = 2.0
    assert flood.send() is low
    flood.send()
    flood.policy.put_back(low)
    assert flood.feedback.slots_served == 1
    assert [sent.entry for _, sent in flood.others(5.0)] == [low.entry, low.entry + 1]


def test_of_several_messages_in_one_only_those_sent_are_paid() -> None:
    flood = Flood(ruled(floor=0.2))
    rest = flood.push(0, size=100 * 10_000, messages=10_000)
    while flood.now < 20.0:
        sent = flood.send()
        if sent is rest:
            # one message goes, the others come back
            flood.sent[0] += 100 - rest.size
            flood.now -= (rest.size - 100) / flood.rate
            rest.messages -= 1
            rest.size -= 100
            flood.policy.put_back(rest)
    assert flood.sent[0] / sum(flood.sent) == pytest.approx(0.2, abs=0.005)


def test_who_sends_more_than_it_can_pay_pays_later() -> None:
    flood = Flood(ruled(floor=0.2))
    for _ in range(60):
        flood.push(0, size=10_000, messages=100)
    flood.others(25.0)
    assert flood.sent[0] / sum(flood.sent) == pytest.approx(0.2, abs=0.01)
