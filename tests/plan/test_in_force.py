"""Where messages go now: by the parts of a plan as the plan says, otherwise by the shortest way."""

from __future__ import annotations

from itertools import pairwise, permutations

import msgspec

from tests.plan.worlds import small
from tieline.plan.in_force import InForce, TopicToBroker, homes, moves
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.proof import examine
from tieline.plan.solve import solve
from tieline.plan.tables import Part, joined, parts


def _attached_once(instance: Instance) -> Instance:
    """The same without all links of a client but its first one to a broker."""
    at = homes(instance)
    brokers = {node.id for node in instance.nodes if node.is_broker}
    links = tuple(
        link
        for link in instance.links
        if {link.a, link.b} <= brokers or at.get(link.a) == link.b or at.get(link.b) == link.a
    )
    return msgspec.structs.replace(instance, links=links)


def test_what_follows_the_parts_of_a_plan_is_what_the_plan_says() -> None:
    followed = 0
    for seed in range(120):
        instance = _attached_once(small(seed))
        plan = solve(instance, method="lagrangian")
        now = InForce(instance, homes(instance, plan.routes), parts(instance, plan, is_paced=False))
        brokers = {node.id for node in instance.nodes if node.is_broker}
        planned = {
            (route.topic, route.source, hop.tail, hop.head)
            for route in plan.routes
            for hop in route.links
            if {hop.tail, hop.head} <= brokers
        }
        gone = {
            (flow.topic, flow.source, tail, head)
            for flow, way in now.ways.items()
            if flow not in now.uncovered
            for tail, head in pairwise(way)
        }
        assert gone <= planned
        if not plan.unmet:
            assert gone == planned
            assert not now.uncovered
            load = examine(instance, plan.routes).load
            between = [{link.a, link.b} <= brokers for link in instance.links]
            assert now.loads == [each if inner else 0.0 for each, inner in zip(load, between, strict=True)]
            assert examine(instance, now.routes()).objective == plan.objective
            followed += bool(planned)
    assert followed > 5


def test_without_a_plan_everything_takes_a_shortest_way() -> None:
    ways = 0
    for seed in range(60):
        drawn = small(seed)
        # no link between brokers costs nothing
        links = tuple(msgspec.structs.replace(link, cost=link.cost + 1) for link in drawn.links)
        instance = msgspec.structs.replace(drawn, links=links)
        costs = {pair: link.cost for link in instance.links for pair in ((link.a, link.b), (link.b, link.a))}
        now = InForce(instance, homes(instance), {})
        brokers = [node.id for node in instance.nodes if node.is_broker]
        for flow, way in now.ways.items():
            found = [
                sum(costs[pair] for pair in pairwise(each))
                for count in range(len(brokers) + 1)
                for each in permutations(brokers, count)
                if each[:1] == way[:1] and each[-1:] == (flow.broker,)
                if all(pair in costs for pair in pairwise(each))
            ]
            assert flow in now.uncovered
            assert sum(costs[pair] for pair in pairwise(way)) == min(found)
            ways += 1
    assert ways > 30


def _square() -> Instance:
    """Brokers a, b, c and d in a ring, of which a is where p publishes t, and d where s wants it."""
    return Instance(
        name="square",
        nodes=(
            *(Node(id=name, roles=("broker",)) for name in "abcd"),
            Node(id="p", roles=("publisher",)),
            Node(id="s", roles=("subscriber",)),
        ),
        links=(
            *(Link(a=a, b=b, capacity=9.0, cost=cost) for (a, b), cost in (("ab", 1), ("bd", 1), ("ac", 2), ("cd", 2))),
            Link(a="p", b="a", capacity=9.0, cost=0.0),
            Link(a="s", b="d", capacity=9.0, cost=0.0),
        ),
        topics=(Topic(id="t", source="p", rate=2.0, subscribers=("s",)),),
    )


FLOW = TopicToBroker("t", "p", "d")


def _by(*ways: tuple[str, str]) -> dict[str, Part]:
    return {
        at: Part(ways=(("a", 1, "d", to),), topics=((1, "t", None),) if at == "a" else (), paces={}) for at, to in ways
    }


def test_what_a_plan_does_not_say_or_cannot_have_goes_the_shortest_way() -> None:
    square, at = _square(), homes(_square())
    nothing = InForce(square, at, {})
    assert nothing.ways == {FLOW: ("a", "b", "d")}
    planned = InForce(square, at, _by(("a", "c"), ("c", "d")))
    assert planned.ways == {FLOW: ("a", "c", "d")}
    assert not planned.uncovered
    assert planned.loads == [0.0, 0.0, 2.0, 2.0, 0.0, 0.0]
    assert [(move.before, move.after) for move in moves(nothing, planned)] == [(("a", "b", "d"), ("a", "c", "d"))]
    assert moves(planned, planned) == []
    halfway = InForce(square, at, _by(("a", "c")))
    assert halfway.ways == {FLOW: ("a", "c", "d")}
    assert halfway.uncovered == {FLOW}
    back = InForce(square, at, _by(("a", "c"), ("c", "a")))
    assert back.ways == {FLOW: ("a", "c", "d")}
    dead = msgspec.structs.replace(square, links=tuple(link for link in square.links if {link.a, link.b} != {"a", "c"}))
    without = InForce(dead, at, _by(("a", "c"), ("c", "d")))
    assert without.ways == {FLOW: ("a", "b", "d")}
    assert without.uncovered == {FLOW}
    apart = msgspec.structs.replace(square, links=square.links[2:3])
    nowhere = InForce(apart, at, {})
    assert nowhere.ways == {FLOW: ()}
    assert nowhere.routes()[0].unmet == ("s",)


def test_pieces_are_put_together_again() -> None:
    part = _by(("a", "c"))["a"]
    many = msgspec.structs.replace(
        part, ways=tuple(("a", number, "d", "c") for number in range(1, 5_001)), paces={"c": 7.0}
    )
    assert joined(many.pieces(7, "square")) == many
