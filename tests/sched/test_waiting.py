from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.waiting import SHORT, SLACK, Flow, Key, Ranking, Waiting


def entry(order: int, level: int) -> Waiting[None]:
    return Waiting(None, order=order, level=level, since=0.0, size=1)


@given(
    reach=st.sampled_from((1, 2, 5, 300)),
    first=st.integers(0, 3),
    moves=st.lists(st.tuples(st.sampled_from(("append", "append", "pop", "back", "victim")), st.integers(0, 80))),
)
def test_a_flow_is_served_at_the_highest_level_within_reach(
    reach: int, first: int, moves: list[tuple[str, int]]
) -> None:
    model = [entry(1, first)]
    flow = Flow("key", model[0], reach)
    for order, (move, number) in enumerate(moves, start=2):
        if move == "append":
            model.append(entry(order, number % 4))
            flow.append(model[-1])
        elif len(model) > 1:
            gone = model.pop(number % len(model) if move == "victim" else 0)
            flow.remove(gone)
            if move == "back":
                model.insert(0, gone)
                flow.put_back(gone)
        assert list(flow.entries) == model
        assert flow.head is model[0]
        assert flow.level == max(waiting.level for waiting in model[:reach])


def test_a_long_flow_is_cheap_at_both_ends_and_a_short_one_small() -> None:
    flow = Flow("key", entry(0, 0), 257)
    kinds = []
    for order in range(1, SHORT):
        kinds.append(type(flow.entries))
        flow.append(entry(order, 0))
    assert set(kinds) == {list}
    assert isinstance(flow.entries, deque)
    assert repr(flow) == f"<Flow 'key' {SHORT} at level 0>"


def test_the_taxon_is_the_level_unless_rules_say_otherwise() -> None:
    assert Waiting("a", order=1, level=2, since=0.0, size=1).taxon == 2
    assert Waiting("a", order=1, level=2, since=0.0, size=1, taxon=0).taxon == 0
    assert repr(Waiting("a", order=7, level=2, since=0.0, size=90)) == "<Waiting #7 level 2 90 B>"


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
