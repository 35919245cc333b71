from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.adapt.changes import (
    with_link,
    with_rate,
    with_subscription,
    without_broker,
    without_link,
    without_subscription,
)
from tieline.plan.adapt.replan import compared, replan
from tieline.plan.flaws import Flawed
from tieline.plan.generate.testset import mesh, paper
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.proof import proven
from tieline.plan.solve import solve


def busiest(instance: Instance, plan: Plan) -> tuple[str, str]:
    """The link between brokers that most topics use."""
    brokers = {node.id for node in instance.nodes if node.is_broker}
    use = Counter(tuple(sorted((hop.tail, hop.head))) for route in plan.routes for hop in route.links)
    a, b = max((pair for pair in use if set(pair) <= brokers), key=lambda pair: (use[pair], pair))
    return a, b


def planned(instance: Instance, iterations: int = 800) -> Plan:
    return solve(instance, method="lns", iterations=iterations)


def test_no_change_moves_nothing() -> None:
    instance = paper("res5", tightness=1.5)
    plan = planned(instance)
    again = replan(instance, plan)
    assert again.flows_moved == 0
    assert again.plan.routes == plan.routes


@pytest.mark.parametrize("name", ["res4", "res5", "res7"])
def test_after_a_link_failure_only_its_flows_move_and_the_plan_is_good(name: str) -> None:
    instance = paper(name, tightness=2.0)
    plan = planned(instance)
    a, b = busiest(instance, plan)
    changed = without_link(instance, a, b)
    warm, cold = replan(changed, plan), planned(changed)
    assert proven(changed, warm.plan) is warm.plan
    assert warm.plan.unmet == cold.unmet == 0
    assert warm.plan.objective <= 1.05 * cold.objective
    broken = {
        (route.topic, route.source, who)
        for route in plan.routes
        for hop in route.links
        if {hop.tail, hop.head} == {a, b}
        for who in hop.subscribers
    }
    assert warm.flows_moved <= 1.2 * len(broken)
    before = {route.topic: route for route in plan.routes}
    touched = {topic for topic, _, _ in broken}
    same = [route for route in warm.plan.routes if route.topic not in touched and route == before[route.topic]]
    assert len(same) >= 0.95 * (len(instance.topics) - len(touched))


def test_a_tight_network_is_searched_before_anybody_is_given_up() -> None:
    instance = paper("res5", seed=1, tightness=1.0)
    plan = planned(instance, 2000)
    changed = without_link(instance, *busiest(instance, plan))
    warm, cold = replan(changed, plan), planned(changed, 2000)
    assert warm.plan.unmet <= cold.unmet + 1
    assert warm.flows_kept >= 0.4 * (instance.request_count - plan.unmet)


def test_every_kind_of_change() -> None:
    instance = mesh(60, topics=20, requests=60, tightness=2.0)
    plan = planned(instance)
    topic = instance.topics[3]
    outsider = next(
        node.id for node in instance.nodes if "subscriber" in node.roles and node.id not in topic.subscribers
    )
    broker = next(node.id for node in instance.nodes if node.is_broker)
    a, b = busiest(instance, plan)
    for changed, most_moved in (
        (with_subscription(instance, topic.id, outsider), 3),
        (without_subscription(instance, topic.id, topic.subscribers[0]), 1),
        (with_rate(instance, topic.id, topic.rate + 1.0), 12),
        (with_rate(instance, topic.id, topic.rate / 2), 0),
        (with_link(instance, a, b, capacity=1.0), 40),
        (with_link(instance, a, b, cost=50.0), 0),
        (without_broker(instance, broker), 60),
    ):
        again = replan(changed, plan)
        assert again.flows_moved <= most_moved
        assert again.flows_kept + again.flows_moved == instance.request_count - plan.unmet


def test_random_changes_of_small_worlds_stay_proven_and_never_beat_the_optimum() -> None:
    rng = np.random.default_rng(0)
    for seed in range(40):
        instance = small(seed, limits=seed % 3 == 0, most_requests=5)
        plan = planned(instance, 60)
        link = instance.links[int(rng.integers(len(instance.links)))]
        changed = without_link(instance, link.a, link.b)
        again = replan(changed, plan, seed=seed)
        assert again.plan.objective >= optimum(changed) - 1e-9
        assert again.flows_moved + again.flows_kept == instance.request_count - plan.unmet


def test_comparing_counts_flows() -> None:
    instance = paper("res0", tightness=2.0)
    plan = planned(instance, 50)
    nobody = msgspec.structs.replace(
        plan, routes=tuple(msgspec.structs.replace(route, links=()) for route in plan.routes)
    )
    assert compared(plan, nobody) == {"flows_moved": 10, "flows_kept": 0, "flows_added": 0}
    assert compared(nobody, plan) == {"flows_moved": 0, "flows_kept": 0, "flows_added": 10}


def test_only_what_a_link_alone_carried_is_lost_with_it() -> None:
    instance = paper("tiny")
    plan = solve(instance)
    fine = replan(without_link(instance, "0", "2"), plan).plan
    assert set(fine.unmet_requests()) <= set(plan.unmet_requests())
    assert fine.cost >= plan.cost
    lonely = without_link(without_link(instance, "4", "1"), "5", "1")
    before = solve(lonely)
    worse = replan(without_link(lonely, "4", "0"), before).plan
    assert set(worse.unmet_requests()) - set(before.unmet_requests()) == {("1", "3")}
    assert worse.unmet == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda i: without_link(i, "0", "5"), "there is no link 0 - 5"),
        (lambda i: with_link(i, "0", "5", cost=1.0), "link 0 - 5 is new"),
        (lambda i: without_broker(i, "x"), 'there is no node "x"'),
        (lambda i: without_broker(i, "3"), '"3" is not a broker'),
        (lambda i: with_subscription(i, "1", "3"), "written twice"),
        (lambda i: without_subscription(i, "1", "4"), '"4" is not its subscriber'),
        (lambda i: with_rate(i, "9", 1.0), 'there is no topic "9"'),
        (lambda i: with_rate(i, "1", -1.0), "rate"),
    ],
)
def test_changes_of_what_is_not_there_are_named(change: object, sentence: str) -> None:
    with pytest.raises(Flawed, match=sentence):
        change(paper("tiny"))  # type: ignore[operator]
