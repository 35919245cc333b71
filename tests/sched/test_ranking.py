from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.ranking import SLACK, Key, Ranking


@dataclass(eq=False)
class Thing:
    name: int
    key: Key = ()
    stamp: int = 0


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 5)), max_size=200))
def test_the_top_is_the_smallest_of_those_that_stand(moves: list[tuple[int, int | None]]) -> None:
    ranking: Ranking[Thing] = Ranking()
    things = [Thing(name) for name in range(10)]
    for number, (name, key) in enumerate(moves, start=1):
        thing = things[name]
        if thing.stamp:
            thing.stamp = 0
            ranking.void()
        if key is not None:
            thing.stamp, thing.key = number, (key, name)
            ranking.place(thing, thing.key)
        standing = [thing for thing in things if thing.stamp]
        assert ranking.valid == len(standing)
        top = ranking.top()
        assert (top and top[2]) is min(standing, key=lambda thing: thing.key, default=None)


def test_places_that_became_void_are_swept_out() -> None:
    ranking: Ranking[Thing] = Ranking()
    cold = Thing(0, stamp=1)
    ranking.place(cold, (0,))
    hot = Thing(1)
    for stamp in range(2, 10_000):
        hot.stamp = stamp
        ranking.place(hot, (1,))  # behind the cold one, where no top() finds what it leaves behind
        assert ranking.top() == ((0,), 1, cold)
        hot.stamp = 0
        ranking.void()
        assert len(ranking._heap) <= 2 * ranking.valid + SLACK


def test_after_a_crowd_has_left_nothing_of_it_is_kept() -> None:
    ranking: Ranking[Thing] = Ranking()
    crowd = [Thing(number, stamp=number + 1) for number in range(5_000)]
    for thing in crowd:
        ranking.place(thing, (thing.name,))
    for thing in reversed(crowd):
        thing.stamp = 0
        ranking.void()
    assert repr(ranking).startswith("<Ranking of 0 in ")
    assert len(ranking._heap) <= SLACK


def test_a_sweep_keeps_the_order_of_those_that_stay() -> None:
    ranking: Ranking[Thing] = Ranking()
    things = [Thing(number * 37 % 500, stamp=number + 1) for number in range(500)]
    for thing in things:
        ranking.place(thing, (thing.name,))
    for thing in things:
        if thing.name % 5:
            thing.stamp = 0
            ranking.void()
    for name in range(0, 500, 5):
        top = ranking.top()
        assert top is not None and top[2].name == name
        top[2].stamp = 0
        ranking.void()
    assert ranking.top() is None
