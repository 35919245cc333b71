"""What has left its plan is said in sentences, and what has not is left alone."""

from __future__ import annotations

import msgspec
import pytest

from tieline.plan.adapt.changes import with_link, with_rate, without_link
from tieline.plan.adapt.deviation import departures, expected, shortfall
from tieline.plan.in_force import InForce, homes
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.tables import Part


def _line(rate: float = 40.0, capacity: float = 100.0) -> Instance:
    """Three brokers around a ring, a publisher at one end and a subscriber at the other."""
    nodes = [Node(id=name, roles=("broker",)) for name in ("hill", "mill", "dam")]
    nodes += [Node(id="p", roles=("publisher",)), Node(id="s", roles=("subscriber",))]
    pairs = (("hill", "mill"), ("mill", "dam"), ("dam", "hill"))
    links = [Link(a=a, b=b, capacity=capacity, cost=1.0) for a, b in pairs]
    links += [Link(a="p", b="hill", capacity=float("inf"), cost=0.0), Link(a="s", b="dam", capacity=1e9, cost=0.0)]
    topic = Topic(id="pv/7", source="p", rate=rate, subscribers=("s",))
    return Instance(name="line", nodes=tuple(nodes), links=tuple(links), topics=(topic,))


def _in_force(instance: Instance, *, is_covered: bool = True) -> InForce:
    part = Part(ways=(("hill", 1, "dam", "dam"),), topics=((1, "pv/7", None),), paces={})
    return InForce(instance, homes(instance), {"hill": part} if is_covered else {})


def test_what_is_as_planned_is_no_reason() -> None:
    instance = _line()
    assert departures(expected(_in_force(instance)), _in_force(instance), margin=0.2) == []
    louder = with_rate(instance, "pv/7", 55.0)
    assert departures(expected(_in_force(instance)), _in_force(louder), margin=0.2) == []


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (with_rate(_line(), "pv/7", 61.0), "link dam - hill carries 61, and was planned for 40"),
        (with_rate(_line(), "pv/7", 130.0), "link dam - hill would carry 130 of 100"),
        (with_link(_line(), "hill", "dam", capacity=90.0), "link dam - hill can carry 90, and could 100"),
        (without_link(_line(), "hill", "mill"), "link hill - mill is gone"),
    ],
)
def test_each_departure_is_one_sentence(now: Instance, reason: str) -> None:
    assert departures(expected(_in_force(_line())), _in_force(now), margin=0.2) == [reason]


def test_a_new_link_and_what_the_plan_does_not_know_are_reasons() -> None:
    before = expected(_in_force(without_link(_line(), "hill", "mill")))
    assert departures(before, _in_force(_line()), margin=0.2) == ["link hill - mill is new"]
    other = msgspec.structs.replace(_line().topics[0], id="pv/8")
    instance = msgspec.structs.replace(_line(rate=1.0), topics=(*_line(rate=1.0).topics, other))
    assert "the plan does not lead pv/8 of p to dam" in departures(before, _in_force(instance), margin=1.0)


def test_without_a_plan_only_what_is_too_much_is_said() -> None:
    assert departures(None, _in_force(_line(), is_covered=False), margin=0.2) == []
    crowded = _in_force(_line(rate=250.0), is_covered=False)
    assert round(shortfall(crowded), 6) == 150.0
    assert departures(None, crowded, margin=0.2) == ["link dam - hill would carry 250 of 100"]
