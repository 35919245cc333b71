"""Parts of a plan: whoever follows them from broker to broker goes the way of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from tests.plan.worlds import small
from tieline.overlay.plans import LEAST_SHARE
from tieline.plan.flaws import Flawed
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.plan import Plan
from tieline.plan.proof import examine
from tieline.plan.routes import Hop, Route
from tieline.plan.tables import parts


def _followed(instance: Instance, plan: Plan) -> int:
    """Follow every topic from its origin to every broker of its tree; how many links that took."""
    found = parts(instance, plan, is_paced=False)
    brokers = set(found)
    towards = {(broker, *way[:3]): way[3] for broker, part in found.items() for way in part.ways}
    links = 0
    for route in plan.routes:
        hops = [(hop.tail, hop.head) for hop in route.links]
        tree = {pair for pair in hops if brokers.issuperset(pair)}
        heads = {head for _tail, head in tree}
        first = [head for tail, head in hops if tail == route.source and head in brokers]
        origin = route.source if route.source in brokers else (first or [""])[0]
        numbers = [
            number
            for number, name, publisher in (found[origin].topics if origin else ())
            if name == route.topic and publisher in (None, route.source)
        ]
        assert len(numbers) == bool(tree)
        gone = set()
        for destination in heads:
            at = origin
            while at != destination:
                before, at = at, towards[at, origin, numbers[0], destination]
                gone.add((before, at))
        assert gone == tree
        links += len(gone)
    assert links or not towards
    return links


def test_whoever_follows_the_parts_goes_by_the_plan() -> None:
    followed = 0
    for seed in range(200):
        instance = small(seed)
        followed += _followed(instance, _plan_of(instance, tuple(_at_random(instance, Random(seed)))))
    assert followed > 100


def _at_random(instance: Instance, random: Random) -> Iterator[Route]:
    """For every topic a tree by lot that begins at one broker of its source."""
    brokers = {node.id for node in instance.nodes if node.is_broker}
    pairs = [pair for link in instance.links for pair in ((link.a, link.b), (link.b, link.a))]
    for topic in instance.topics:
        random.shuffle(pairs)
        before: dict[str, str] = {}
        front = [topic.source]
        while front:
            tail = front.pop(random.randrange(len(front)))
            heads = [head for one, head in pairs if one == tail and head not in before and head != topic.source]
            if tail == topic.source and tail not in brokers:
                heads = [head for head in heads if head in brokers][:1]
            for head in heads:
                if head in brokers or head in topic.subscribers:
                    before[head] = tail
                    front += [head] if head in brokers else []
        served: dict[tuple[str, str], list[str]] = {}
        for subscriber in topic.subscribers:
            at = subscriber
            while at in before:
                served.setdefault((before[at], at), []).append(subscriber)
                at = before[at]
        hops = (Hop(tail=tail, head=head, subscribers=tuple(who)) for (tail, head), who in served.items())
        unmet = tuple(subscriber for subscriber in topic.subscribers if subscriber not in before)
        route = Route(topic=topic.id, source=topic.source, links=tuple(hops), unmet=unmet)
        yield route


def _plan_of(instance: Instance, routes: tuple[Route, ...]) -> Plan:
    examine(_without_limits(instance), routes)
    return Plan(
        instance=instance.name,
        method="hand",
        status="feasible",
        routes=routes,
        objective=0.0,
        cost=0.0,
        unmet=0,
        unmet_price=0.0,
        bound=0.0,
        seconds=0.0,
    )


def _without_limits(instance: Instance) -> Instance:
    """The same without limits."""
    wide = tuple(msgspec.structs.replace(link, capacity=1e9) for link in instance.links)
    topics = tuple(msgspec.structs.replace(topic, max_latency=None) for topic in instance.topics)
    nodes = tuple(msgspec.structs.replace(node, max_connections=None) for node in instance.nodes)
    return msgspec.structs.replace(instance, links=wide, topics=topics, nodes=nodes, n_max=None)


def _square(*sources: str, rate: float = 4.0) -> Instance:
    """Brokers a, b, c and d in a ring, where d subscribes, and clients of a publish."""
    return Instance(
        name="square",
        nodes=(
            *(Node(id=name, roles=("broker",)) for name in "abc"),
            Node(id="d", roles=("broker", "subscriber")),
            *(Node(id=name, roles=("publisher",)) for name in sources),
        ),
        links=(
            *(Link(a=one, b=other, capacity=10.0, cost=1.0) for one, other in ("ab", "bd", "ac", "cd")),
            *(Link(a=name, b="a", capacity=100.0, cost=0.0) for name in sources),
        ),
        topics=tuple(Topic(id="t", source=name, rate=rate, subscribers=("d",)) for name in sources),
    )


def _over(*ways: tuple[str, str]) -> Plan:
    """A plan in which each source is given a broker in the middle."""
    routes = tuple(
        Route(
            topic="t",
            source=source,
            links=tuple(
                Hop(tail=tail, head=head, subscribers=("d",)) for tail, head in ((source, "a"), ("a", by), (by, "d"))
            ),
        )
        for source, by in ways
    )
    return Plan(
        instance="square",
        method="hand",
        status="feasible",
        routes=routes,
        objective=0.0,
        cost=0.0,
        unmet=0,
        unmet_price=0.0,
        bound=0.0,
        seconds=0.0,
    )


def test_publishers_of_one_name_are_told_apart_only_where_their_ways_differ() -> None:
    same = parts(_square("p", "q@a"), _over(("p", "b"), ("q@a", "b")), is_paced=False)
    assert same["a"].topics == ((1, "t", None),)
    assert same["b"].ways == (("a", 1, "d", "d"),)
    differ = parts(_square("p", "q@a"), _over(("p", "b"), ("q@a", "c")), is_paced=False)
    assert differ["a"].topics == ((1, "t", "p"), (2, "t", "q"))
    assert ("a", 2, "d", "c") in differ["a"].ways
    assert differ["d"].ways == ()


def test_each_direction_is_given_what_is_not_planned_for_the_other() -> None:
    found = parts(_square("p", rate=4.0), _over(("p", "b")), is_paced=True)
    assert {peer: round(pace, 9) for peer, pace in found["a"].paces.items()} == {"b": 10.0, "c": 10.0}
    assert {peer: round(pace, 9) for peer, pace in found["b"].paces.items()} == {"a": 5.6, "d": 10.0}
    full = parts(_square("p", rate=10.0), _over(("p", "b")), is_paced=True)
    assert full["b"].paces["a"] == 10.0 * LEAST_SHARE


def test_a_source_publishes_at_one_broker() -> None:
    route = Route(
        topic="t",
        source="p",
        links=(Hop(tail="p", head="a", subscribers=("d",)), Hop(tail="p", head="b", subscribers=("e",))),
    )
    plan = msgspec.structs.replace(_over(), routes=(route,))
    with pytest.raises(Flawed, match="published at a and b: one is possible"):
        parts(_square("p"), plan, is_paced=False)


def test_pieces_are_short_and_add_up() -> None:
    part = parts(_square("p"), _over(("p", "b")), is_paced=True)["a"]
    many = msgspec.structs.replace(part, ways=tuple(("a", number, "d", "b") for number in range(1, 5_001)))
    pieces = many.pieces(7, "square")
    assert len(pieces) > 2
    assert [piece.more for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert [way for piece in pieces for way in piece.ways] == [*many.ways]
    assert all(len(msgspec.json.encode(piece)) < 30_000 for piece in pieces)
    assert [piece.paces for piece in pieces if piece.paces] == [part.paces]
