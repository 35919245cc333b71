from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.adapt.changes import with_link, with_rate, with_subscription, without_broker, without_link
from tieline.plan.adapt.planner import Planner
from tieline.plan.adapt.replan import Replanned, compared, replan
from tieline.plan.flaws import Flawed
from tieline.plan.generate.testset import mesh, paper
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.proof import proven
from tieline.plan.solve import solve


def planned(instance: Instance, iterations: int = 300) -> Plan:
    return solve(instance, method="lns", iterations=iterations)


def check(instance: Instance, before: Plan, found: Replanned) -> None:
    """The plan is true of the network as it is, and the flows are counted right."""
    assert proven(instance, found.plan) is found.plan
    counted = {
        "flows_moved": found.flows_moved,
        "flows_kept": found.flows_kept,
        "flows_added": found.flows_added,
    }
    assert counted == compared(before, found.plan)


def test_failures_and_returns_one_after_the_other() -> None:
    rng = np.random.default_rng(3)
    for seed in range(30):
        whole = small(seed, limits=seed % 3 == 0, most_requests=5)
        planner = Planner(whole, planned(whole, 60), seed=seed)
        gone: list[int] = []
        for _ in range(6):
            if gone and rng.random() < 0.4:
                gone.pop()
            else:
                gone.append(int(rng.integers(len(whole.links))))
            links = tuple(link for at, link in enumerate(whole.links) if at not in gone)
            now = msgspec.structs.replace(whole, links=links)
            before = planner.plan
            found = planner.replan(now)
            check(now, before, found)
            assert planner.plan is found.plan
            assert planner.instance is now
            assert found.plan.objective >= optimum(now) - 1e-9
            assert found.plan.bound <= optimum(now) + 1e-6


def test_a_planner_that_stands_by_finds_what_one_that_reads_everything_finds() -> None:
    instance = mesh(80, topics=30, requests=120, tightness=2.0)
    before = planned(instance)
    used = {frozenset((hop.tail, hop.head)) for route in before.routes for hop in route.links}
    brokers = {node.id for node in instance.nodes if node.is_broker}
    for link in instance.links[:30]:
        if frozenset((link.a, link.b)) not in used or not {link.a, link.b} <= brokers:
            continue
        changed = without_link(instance, link.a, link.b)
        standing_by, reading = Planner(instance, before).replan(changed), replan(changed, before)
        check(changed, before, standing_by)
        assert standing_by.plan.unmet == reading.plan.unmet
        assert standing_by.plan.cost == pytest.approx(reading.plan.cost, rel=0.01)
        assert abs(standing_by.flows_moved - reading.flows_moved) <= 3


def test_every_other_change_is_read_from_scratch() -> None:
    instance = mesh(60, topics=20, requests=60, tightness=2.0)
    before = planned(instance)
    topic = instance.topics[3]
    outsider = next(
        node.id for node in instance.nodes if "subscriber" in node.roles and node.id not in topic.subscribers
    )
    link = instance.links[0]
    broker = next(node.id for node in instance.nodes if node.is_broker)
    planner = Planner(instance, before)
    for changed in (
        with_subscription(instance, topic.id, outsider),
        with_rate(instance, topic.id, topic.rate + 1.0),
        with_link(instance, link.a, link.b, cost=50.0),
        with_link(instance, link.a, link.b, capacity=link.capacity / 2),
        without_broker(instance, broker),
        msgspec.structs.replace(instance, unmet_cost=5.0),
        instance,
    ):
        last = planner.plan
        check(changed, last, planner.replan(changed))


def test_a_link_without_a_limit_may_get_one_and_lose_it_again() -> None:
    instance = paper("res5", tightness=2.0)
    link = max(instance.links, key=lambda each: each.capacity)
    free = with_link(instance, link.a, link.b, capacity=np.inf)
    planner = Planner(free, planned(free))
    for capacity in (1.0, np.inf, link.capacity):
        changed = with_link(instance, link.a, link.b, capacity=capacity)
        check(changed, planner.plan, planner.replan(changed))


def test_a_network_that_is_none_is_refused() -> None:
    instance = paper("tiny")
    planner = Planner(instance, solve(instance))
    twice = msgspec.structs.replace(instance, links=(*instance.links, instance.links[0]))
    negative = msgspec.structs.replace(
        instance, links=(msgspec.structs.replace(instance.links[0], capacity=-1.0), *instance.links[1:])
    )
    for broken in (twice, negative):
        with pytest.raises(Flawed):
            planner.replan(broken)
    assert planner.instance is instance
