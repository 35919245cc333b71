"""The next plan keeps what stands, moves few flows for gain, and is never worse than the ways as they are."""

from __future__ import annotations

import msgspec
import pytest

from tests.plan.worlds import small
from tieline.plan.adapt.deviation import shortfall
from tieline.plan.adapt.next_plan import Proposal, next_plan
from tieline.plan.adapt.replan import compared
from tieline.plan.certify import certified_routes
from tieline.plan.generate.testset import paper
from tieline.plan.in_force import InForce, homes
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.proof import Refuted, examine, proven
from tieline.plan.solve import solve
from tieline.plan.tables import parts


def _attached_once(instance: Instance) -> Instance:
    """The same with one link for each client, as brokers that run have it."""
    at = homes(instance)
    brokers = {node.id for node in instance.nodes if node.is_broker}
    links = tuple(
        link
        for link in instance.links
        if {link.a, link.b} <= brokers or at.get(link.a) == link.b or at.get(link.b) == link.a
    )
    return msgspec.structs.replace(instance, links=links)


def _next(instance: Instance, now: InForce | None = None, most: int = 20) -> Proposal:
    at = homes(instance)
    if now is None:
        now = InForce(instance, at, {})
    return next_plan(instance, now, at, most_moves=most, paced=instance)


def test_no_plan_is_worse_than_the_ways_as_they_are_and_each_is_proven() -> None:
    relieved = 0
    for seed in range(80):
        instance = _attached_once(small(seed))
        now = InForce(instance, homes(instance), {})
        found = _next(instance, now)
        assert proven(instance, found.plan) is found.plan
        assert found.shortfall_before == shortfall(now)
        try:
            before = examine(instance, now.routes()).objective
        except Refuted:
            before = None
        assert found.objective_before == before
        if before is not None:
            assert found.plan.objective <= before + 1e-9
            assert found.objection is None
        relieved += found.shortfall_after < found.shortfall_before
        if found.shortfall_after > found.shortfall_before:
            assert found.objection is not None
    assert relieved >= 4


def test_what_stands_and_fits_does_not_move() -> None:
    instance = _attached_once(paper("res5", tightness=3.0))
    plan = solve(instance, method="lns", iterations=500)
    at = homes(instance, plan.routes)
    now = InForce(instance, at, parts(instance, plan, is_paced=False))
    found = next_plan(instance, now, at, most_moves=0, paced=instance)
    assert found.moved == 0
    assert found.after.ways == now.ways


def test_what_a_plan_leaves_free_is_there_to_be_used() -> None:
    """A plan that is full to its limit needs the room that it was told to leave: rates are never exact."""
    instance = _attached_once(paper("res5", tightness=3.0))
    whole = msgspec.structs.replace(
        instance, links=tuple(msgspec.structs.replace(link, capacity=2 * link.capacity) for link in instance.links)
    )
    at = homes(instance)
    now = InForce(instance, at, {})
    few, all_ = (next_plan(instance, now, at, most_moves=0, paced=paced).parts for paced in (instance, whole))
    assert sum(len(part.paces) for part in few.values()) > 4
    for broker, part in few.items():
        for peer, pace in part.paces.items():
            assert all_[broker].paces[peer] > 1.5 * pace
    assert not any(part.paces for part in next_plan(instance, now, at, most_moves=0, paced=None).parts.values())


@pytest.mark.parametrize("most", [1, 3, 8])
def test_for_gain_alone_few_flows_move_at_a_time_until_nothing_is_left(most: int) -> None:
    instance = _attached_once(paper("res5", tightness=3.0))
    # every link costs as much as it did not when the ways were chosen
    dear = tuple(
        msgspec.structs.replace(link, cost=1.0 + 10.0 * (number % 3)) for number, link in enumerate(instance.links)
    )
    changed = msgspec.structs.replace(instance, links=dear)
    plan = solve(instance, method="lns", iterations=500)
    at = homes(changed, plan.routes)
    now = InForce(changed, at, parts(instance, plan, is_paced=False))
    most_of_one = max(len(topic.subscribers) for topic in instance.topics)
    objective, left, steps = float("inf"), 1, 0
    while left and steps < 60:
        found = next_plan(changed, now, at, most_moves=most, paced=None)
        assert found.moved <= max(most, most_of_one)
        assert found.objection is None
        assert found.plan.objective < objective or not found.moved
        assert compared(_standing(changed, now), found.plan)["flows_moved"] <= max(most, most_of_one)
        objective, left, steps = found.plan.objective, found.left, steps + 1
        now = found.after
    assert steps > 1
    everything = next_plan(changed, now, at, most_moves=10_000, paced=None)
    assert objective <= everything.plan.objective * 1.2


def _standing(instance: Instance, now: InForce) -> Plan:
    """The ways of a network as a plan, by the checker's figures."""
    return certified_routes(instance, now.routes(), method="hand", bound=0.0, seconds=0.0)
