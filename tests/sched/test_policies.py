from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.check_policy import Link
from tests.kits.examples import examples
from tieline.sched.levels import DEFAULTS, Rules
from tieline.sched.policies import make
from tieline.sched.waiting import Waiting

#: What each policy sorts flows by: the head, and the level at which the flow is served.
ORDERS: Final[dict[str, Callable[[Waiting[int], int], tuple[float, ...]]]] = {
    "fifo": lambda head, _: (head.order,),
    "taxonomy": lambda head, _: (-head.taxon, head.order),
    "strict": lambda head, level: (-level, head.order),
    "heat": lambda head, level: (0 if level == 3 else 1, -head.heat, head.depth, head.order),
    "edf": lambda head, level: (head.since + DEFAULTS[level].deadline_s, head.order),
}


def expected(name: str, waiting: list[Waiting[int]]) -> list[int]:
    """The order in which everything leaves: again and again the head with the smallest key."""
    flows: dict[Hashable, list[Waiting[int]]] = {}
    for one in waiting:
        flows.setdefault(one.flow, []).append(one)
    entries = []
    while flows:
        chosen = min(flows.values(), key=lambda flow: ORDERS[name](flow[0], max(one.level for one in flow)))
        entries.append(chosen.pop(0).entry)
        flows = {key: flow for key, flow in flows.items() if flow}
    return entries


@pytest.mark.parametrize("name", ORDERS)
@examples(50)
@given(
    arrivals=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), st.floats(0.0, 2.0)),
        min_size=1,
        max_size=40,
    ),
    heard=st.integers(0, 10),
)
def test_everything_leaves_in_the_order_of_the_policy(
    name: str, arrivals: list[tuple[int, int, int, int, float]], heard: int
) -> None:
    link = Link(make(name))
    waiting = []
    for flow, level, heat, depth, pause_s in arrivals:
        link.now += pause_s
        waiting.append(link.push(level, flow=flow, heat=heat, depth=depth, taxon=flow % 4, is_assured=flow > 5))
    started = expected(name, waiting)[:heard]
    assert [link.send().entry for _ in started] == started
    assert link.send_all() == expected(name, [one for one in waiting if one.entry not in started])


def test_fifo_is_deaf_to_everything_but_arrival() -> None:
    link = Link(make("fifo"))
    link.push(0)
    link.push(3, heat=9)
    assert link.send_all() == [1, 2]


def test_taxonomy_goes_by_rules_and_not_by_what_a_publisher_says() -> None:
    link = Link(make("taxonomy"))
    link.push(3, taxon=0)
    link.push(0, taxon=2)
    assert link.send_all() == [2, 1]


def test_strict_starves_the_low_for_as_long_as_anything_higher_comes() -> None:
    link = Link(make("strict"))
    low = link.push(0)
    for _ in range(1_000):
        link.push(1)
        assert link.send().level == 1
    assert link.send() is low


def test_heat_puts_urgent_first_then_hot_then_shallow_then_old() -> None:
    link = Link(make("heat"))
    for level, heat, depth in ((1, 1, 3), (1, 1, 2), (1, 1, 2), (0, 5, 9), (3, 0, 9), (2, 1, 1)):
        link.push(level, heat=heat, depth=depth)
    assert link.send_all() == [5, 4, 6, 2, 3, 1]


def test_edf_lets_an_old_message_of_a_low_class_go_before_a_new_one_of_a_high_class() -> None:
    rules = Rules()
    link = Link(make("edf", rules))
    low = link.push(0)
    link.now = rules.classes[0].deadline_s - rules.classes[3].deadline_s - 0.001
    early = link.push(3)
    link.now += 0.002
    link.push(3)
    assert link.send_all() == [early.entry, low.entry, 3]
