from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from tieline.sched.waiting import SHORT, Flow, Waiting


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
