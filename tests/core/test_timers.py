from __future__ import annotations

import gc
import weakref

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tieline.core.timers import Timer, Timers


class Clock(RuleBasedStateMachine):
    """Timers beside a plain list that is sorted whenever somebody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = Timers()
        self.now = 0.0
        #: What is set and neither fired nor cancelled: (when, order, timer).
        self.model: list[tuple[float, int, Timer]] = []
        self.fired: list[int] = []
        self.count = 0

    def _set(self, when: float, sets: float | None) -> None:
        self.count += 1
        order = self.count

        def action(now: float) -> None:
            assert now == self.now
            self.fired.append(order)
            if sets is not None:
                self._set(now + sets, None)

        self.model.append((when, order, self.timers.at(when, action)))

    @rule(delay=st.integers(-3, 10), sets=st.none() | st.integers(-12, 3))
    def at(self, delay: int, sets: int | None) -> None:
        self._set(self.now + delay, sets)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.model:
            entry = data.draw(st.sampled_from(self.model))
            self.timers.cancel(entry[2])
            self.timers.cancel(entry[2])
            self.model.remove(entry)

    @rule(seconds=st.integers(0, 8))
    def fire(self, seconds: int) -> None:
        self.now += seconds
        due = sorted(entry[:2] for entry in self.model if entry[0] <= self.now)
        self.model = [entry for entry in self.model if entry[0] > self.now]
        self.fired.clear()
        self.timers.fire(self.now)
        assert self.fired == [order for _, order in due], "all that was due, in order, and nothing set meanwhile"

    @invariant()
    def it_knows_what_comes_next(self) -> None:
        assert self.timers.next() == min((when for when, _, _ in self.model), default=None)
        assert len(self.timers) == len(self.model)


TestClock = Clock.TestCase


def test_cancelling_nothing_is_fine() -> None:
    timers = Timers()
    timers.cancel(None)
    timer = timers.at(1.0, lambda _: None)
    timers.fire(1.0)
    timers.cancel(timer)
    assert len(timers) == 0


def test_an_action_may_cancel_what_is_due_with_it() -> None:
    timers = Timers()
    fired: list[str] = []
    timers.at(1.0, lambda _: timers.cancel(second))
    second = timers.at(1.0, lambda _: fired.append("second"))
    timers.fire(1.0)
    assert fired == []


def test_a_cancelled_timer_lets_go_of_what_it_would_have_called() -> None:
    class Called:
        def __call__(self, now: float) -> None: ...

    timers = Timers()
    called = Called()
    gone = weakref.ref(called)
    timer = timers.at(1_000.0, called)
    timers.cancel(timer)
    del called
    gc.collect()
    assert gone() is None


def test_dead_timers_do_not_fill_the_heap() -> None:
    timers = Timers()
    alive = [timers.at(float(when), lambda _: None) for when in range(100)]
    for when in range(100_000):
        timers.cancel(timers.at(1_000.0 + when, lambda _: None))
    assert len(timers) == len(alive)
    assert len(timers._heap) < 5_000


def test_a_timer_says_what_it_is() -> None:
    timers = Timers()
    timer = timers.at(1.5, lambda _: None)
    assert repr(timer) == "<Timer at 1.500>"
    timers.cancel(timer)
    assert repr(timer) == "<Timer at 1.500 (done)>"


def test_an_action_may_cancel_what_another_has_just_set() -> None:
    timers = Timers()
    made: list[Timer] = []
    timers.at(1.0, lambda now: made.append(timers.at(now - 0.5, lambda _: None)))
    timers.at(1.0, lambda _: timers.cancel(made[0]))
    timers.fire(1.0)
    assert timers.next() is None
    assert len(timers) == 0
