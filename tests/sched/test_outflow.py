"""What is given: a thin link gets little and stays busy, a fast one is not held up, a stalled one gets none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.congestion import UNKNOWN
from tieline.sched.outflow import FAST, LATER_S, LEAST, MARGIN, SOON_S, Outflow, Pacer

#: Bytes of one message.
PACKET = 1_000


class Kernel:
    """A socket buffer in front of a link: what is written leaves at a rate, and is gone half a round trip later."""

    def __init__(self, rate: float, rtt_s: float = 0.0, first: int = LEAST) -> None:
        self.rate = rate
        self.rtt_s = rtt_s
        self.now = 1_000.0
        #: Bytes not acknowledged, and when each portion that has left will be.
        self.unsent = 0.0
        self.in_flight: list[tuple[float, float]] = []
        self.most = 0.0
        self.delivered = 0.0
        self.looks = 0
        self.outflow = Outflow(self, first)

    def count_held(self) -> int:
        self.looks += 1
        return round(self.held)

    def round_trip_s(self) -> float:
        return self.rtt_s

    @property
    def held(self) -> float:
        return self.unsent + sum(size for _, size in self.in_flight)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        leaving = min(self.unsent, self.rate * seconds)
        self.unsent -= leaving
        if leaving:
            self.in_flight.append((self.now + self.rtt_s, leaving))
        while self.in_flight and self.in_flight[0][0] <= self.now:
            self.delivered += self.in_flight.pop(0)[1]

    def offer(self, size: float) -> float:
        """What a link does with so many waiting bytes: writes packets while there is room; how many were written."""
        written = 0.0
        while written < size and (not self.outflow.is_due or self.outflow.look(self.now) > 0):
            for _ in range(max(1, -(-self.outflow.room // PACKET))):
                self.outflow.written += PACKET
                self.unsent += PACKET
                written += PACKET
                if written >= size:
                    break
            if self.outflow.is_due:
                self.outflow.probe()
        self.most = max(self.most, self.held)
        return written

    def run(self, seconds: float, step: float = 0.001, offered_per_s: float = float("inf")) -> float:
        """Offer bytes for a while; how many were delivered."""
        before, waiting = self.delivered, 0.0
        for _ in range(round(seconds / step)):
            self.pass_time(step)
            waiting = min(1e9, waiting + offered_per_s * step)
            if waiting >= PACKET:
                waiting -= self.offer(min(waiting, 65_536))
        return self.delivered - before


def test_a_thin_link_gets_little_from_the_beginning_and_stays_busy() -> None:
    thin = Kernel(16_000, 0.02)
    delivered = thin.run(10)
    assert delivered > 0.98 * 160_000, "the link was hardly ever idle"
    assert thin.most <= 2 * LEAST + PACKET, "not even before it was known to be slow"
    thin.most = 0.0
    thin.run(10)
    assert thin.most <= LEAST + PACKET
    assert thin.outflow.is_slow
    assert thin.outflow.path.rate == pytest.approx(16_000, rel=0.1)
    assert thin.outflow.path.rtt_s == pytest.approx(0.02, rel=0.01)


@pytest.mark.parametrize("rate", [0, 16_000])
def test_a_receiver_of_which_nothing_is_known_gets_a_bounded_share(rate: float) -> None:
    new = Kernel(rate, 0.02, FAST)
    new.run(10)
    assert new.most <= FAST + PACKET
    new.run(10)
    assert new.outflow.allowance <= 2 * LEAST, "by now it is known"
    assert new.outflow.is_slow


def test_a_fast_receiver_is_seldom_looked_at() -> None:
    fast = Kernel(500_000_000, first=FAST)
    delivered = fast.run(1, offered_per_s=20_000_000)
    assert delivered > 0.95 * 20_000_000
    assert fast.looks <= 2 * delivered / FAST


def test_a_long_link_gets_what_is_on_the_way() -> None:
    long = Kernel(1_000_000, 0.1)
    long.run(5)
    long.most = 0.0
    delivered = long.run(5)
    assert delivered > 0.85 * 5_000_000
    assert long.most <= 2 * MARGIN * 1_000_000 * 0.1 + PACKET


def test_a_fast_receiver_is_not_held_up() -> None:
    fast = Kernel(500_000_000)
    delivered = fast.run(0.5, offered_per_s=20_000_000)
    assert delivered > 0.95 * 10_000_000
    assert not fast.outflow.is_slow
    assert fast.outflow.allowance >= FAST


@pytest.mark.parametrize("per_s", [1_000, 10_000, 100_000])
def test_a_receiver_that_is_sent_little_is_not_slow(per_s: float) -> None:
    quiet = Kernel(10_000_000, 0.0005)
    quiet.run(3, offered_per_s=per_s)
    quiet.pass_time(0.001)
    quiet.pass_time(0.001)
    assert quiet.outflow.look(quiet.now) > 0
    assert not quiet.outflow.is_slow
    assert quiet.outflow.path is UNKNOWN or quiet.outflow.path.rate > 1_000_000, (
        "how much was sent is no rate of the link"
    )


def test_bursts_to_a_healthy_receiver_are_no_measure_of_it() -> None:
    """Right after a write the kernel always holds something; what counts is whether it held it all the time."""
    healthy = Kernel(10_000_000, 0.0005)
    for _ in range(30):
        healthy.offer(20_000)
        healthy.outflow.look(healthy.now)
        for _ in range(100):
            healthy.pass_time(0.001)
    assert healthy.outflow.path is UNKNOWN


def test_a_thin_link_that_is_sent_little_stays_thin() -> None:
    """An urgent message now and then finds the link empty: that is no reason to open it for the next flood."""
    thin = Kernel(16_000, 0.02)
    thin.run(5)
    thin.run(10, offered_per_s=1_000)
    assert thin.outflow.allowance <= 2 * LEAST
    thin.most = 0.0
    thin.run(2)
    assert thin.most <= 2 * LEAST + PACKET


def test_a_receiver_that_stops_reading_gets_no_more() -> None:
    stalled = Kernel(16_000)
    stalled.run(2)
    stalled.rate = 0.0
    stalled.run(1)
    before = stalled.held
    assert before <= LEAST + PACKET
    stalled.run(5)
    assert stalled.held == before
    assert stalled.outflow.is_slow
    assert stalled.outflow.path.rate < 100


def test_a_receiver_that_was_slow_may_become_fast_again() -> None:
    again = Kernel(16_000)
    again.run(3)
    assert again.outflow.is_slow
    again.rate = 100_000_000
    delivered = again.run(2)
    assert again.outflow.allowance >= FAST
    assert delivered > 10_000_000


def test_a_receiver_that_was_fast_may_become_slow() -> None:
    tired = Kernel(10_000_000)
    tired.run(1)
    tired.rate = 16_000
    tired.run(30)
    tired.most = 0.0
    tired.run(5)
    assert tired.most <= LEAST + PACKET


def test_when_to_look_again() -> None:
    thin = Kernel(16_000)
    assert thin.outflow.drained_in() == SOON_S
    thin.run(3)
    assert SOON_S <= thin.outflow.drained_in() <= LATER_S
    thin.rate = 0.0
    thin.run(3)
    assert thin.outflow.drained_in() == LATER_S, "many that have stopped reading must not keep the broker busy"


def test_a_reader_that_has_never_read_is_looked_at_seldom() -> None:
    stopped = Kernel(0)
    stopped.run(3)
    assert stopped.outflow.path.rate == 0
    assert stopped.outflow.drained_in() == LATER_S


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
