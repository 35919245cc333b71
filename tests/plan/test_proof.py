from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import paper
from tieline.plan.greedy import greedy
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.models.solve import solve_model
from tieline.plan.plan import Plan, gap, parse, render
from tieline.plan.proof import Refuted, examine, proven
from tieline.plan.routes import Hop, Route, load, routes, trees, value
from tieline.plan.run import Run


def diamond() -> Instance:
    """p - a - {b, c} - d - {s, t}, where d subscribes as well."""
    return Instance(
        name="diamond",
        nodes=(
            Node(id="p", roles=("publisher",)),
            *(Node(id=name, roles=("broker",)) for name in "abc"),
            Node(id="d", roles=("broker", "subscriber"), max_connections=4),
            *(Node(id=name, roles=("subscriber",)) for name in "st"),
            Node(id="q", roles=("publisher", "subscriber")),
        ),
        links=tuple(
            Link(a=pair[0], b=pair[1], capacity=2.0, cost=1.0, latency=1.0)
            for pair in ("pa", "ab", "ac", "bc", "bd", "cd", "ds", "dt", "qd", "qa")
        ),
        topics=(
            Topic(id="k", source="p", rate=2.0, subscribers=("s", "t", "d"), max_latency=4.0),
            Topic(id="l", source="q", rate=1.0, subscribers=("s",)),
        ),
        unmet_cost=100.0,
        n_max=2,
    )


def hop(pair: str, *who: str) -> Hop:
    return Hop(tail=pair[0], head=pair[1], subscribers=who)


GOOD = Route(
    topic="k",
    source="p",
    links=(
        hop("pa", "s", "t", "d"),
        hop("ab", "s", "t", "d"),
        hop("bd", "s", "t", "d"),
        hop("ds", "s"),
        hop("dt", "t"),
    ),
)
NOTHING = Route(topic="l", source="q", unmet=("s",))


def test_a_true_route_is_weighed() -> None:
    finding = examine(diamond(), (GOOD, NOTHING))
    assert (finding.cost, finding.unmet, finding.objective) == (11.0, 1, 111.0)
    assert finding.load[:5] == (2.0, 2.0, 0.0, 0.0, 2.0)


def without(pair: str) -> tuple[Hop, ...]:
    return tuple(each for each in GOOD.links if (each.tail, each.head) != tuple(pair))


@pytest.mark.parametrize(
    ("links", "unmet", "sentence"),
    [
        ((*GOOD.links, hop("ad", "s")), (), "there is no link a - d"),
        ((*GOOD.links, hop("ac", "s"), hop("cd", "s")), (), "d is entered twice, from b and from c"),
        ((*without("ds"), hop("ds")), (), "d -> s: the link is used and serves nobody"),
        ((*without("ds"), hop("ds", "s", "s")), (), "a subscriber is served twice"),
        ((*without("ds"), hop("ds", "q")), (), "q is served and did not subscribe"),
        ((*without("ds"), hop("ds", "s", "t")), (), "d serves t over two links"),
        (without("ds"), (), "what is for s ends at d"),
        (without("pa"), (), "form a loop, or nothing joins them to the source"),
        ((hop("bc", "s"), hop("cd", "s"), hop("db", "s")), (), "form a loop"),
        ((*GOOD.links, hop("dq", "s")), (), "q is neither a broker nor a subscriber, and receives"),
        ((*GOOD.links, hop("qd", "s")), (), "q is neither a broker nor the source, and sends"),
        ((*GOOD.links, hop("ap", "s")), (), "the topic returns to its source"),
        (GOOD.links, ("s",), "states other unmet subscribers"),
        ((*GOOD.links, hop("ac", "t")), (), "a serves t over two links"),
        ((hop("pa", "s", "t"), *without("pa")), (), "a passes on to d, for whom nothing arrived"),
    ],
)
def test_a_false_route_is_refuted(links: tuple[Hop, ...], unmet: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(Refuted) as caught:
        examine(diamond(), (Route(topic="k", source="p", links=links, unmet=unmet), NOTHING))
    assert sentence in str(caught.value)


def changed(instance: Instance, change: Callable[[Instance], Instance], sentence: str, *found: Route) -> None:
    with pytest.raises(Refuted) as caught:
        examine(change(instance), found or (GOOD, NOTHING))
    assert sentence in str(caught.value)


def test_limits_are_limits() -> None:
    replace = msgspec.structs.replace
    other = Route(topic="l", source="q", links=(hop("qd", "s"), hop("ds", "s")))
    changed(diamond(), lambda it: it, "link d - s carries 3.0; its capacity is 2.0", GOOD, other)
    changed(diamond(), lambda it: replace(it, n_max=1), "broker d sends it over 2 links; n_max is 1")
    slow = (replace(diamond().topics[0], max_latency=3.0), diamond().topics[1])
    changed(diamond(), lambda it: replace(it, topics=slow), "is served after 4.0; max_latency is 3.0")
    few = tuple(replace(node, max_connections=2) if node.id == "d" else node for node in diamond().nodes)
    changed(diamond(), lambda it: replace(it, nodes=few), "broker d uses 3 links; its max_connections is 2")
    changed(diamond(), lambda it: it, 'topic "l" of "q" has no route', GOOD)
    changed(diamond(), lambda it: it, "has two routes", GOOD, GOOD)
    changed(diamond(), lambda it: it, 'there is no topic "z"', Route(topic="z", source="q"))


@pytest.fixture
def plan() -> Plan:
    return solve_model(arrays(diamond()), Run())


def test_figures_are_computed_again(plan: Plan) -> None:
    assert proven(diamond(), plan) is plan
    for change, sentence in (
        ({"cost": plan.cost + 1}, "states cost"),
        ({"objective": plan.objective - 1}, "states objective"),
        ({"unmet": 7}, "says that 7 requests are unmet"),
        ({"bound": plan.objective + 1}, "it bounds nothing"),
        ({"bound": float("nan")}, "it bounds nothing"),
        ({"bound": plan.objective - 1}, "is called optimal"),
        ({"instance": "other"}, 'for the instance "other"'),
        ({"unmet_price": 3.0}, "states unmet_price"),
    ):
        with pytest.raises(Refuted, match=sentence):
            proven(diamond(), msgspec.structs.replace(plan, **change))


def test_a_plan_is_a_document(plan: Plan) -> None:
    text = render(plan)
    assert parse(text) == plan
    raw = msgspec.json.decode(text)
    assert {"objective", "unmet", "bound", "gap", "seconds", "status", "routes"} <= raw.keys()
    assert {"from", "to", "subscribers"} == raw["routes"][0]["links"][0].keys()


def test_the_gap() -> None:
    assert gap(100.0, 100.0) == 0.0
    assert gap(100.0, 90.0) == pytest.approx(0.1)
    assert gap(100.0, float("-inf")) == 1.0
    assert gap(0.0, 0.0) == 0.0


def test_routes_and_trees_are_the_same_thing() -> None:
    for seed in range(30):
        found = arrays(small(seed))
        grown = greedy(found)
        there = routes(found, grown)
        back = trees(found, there)
        assert routes(found, back) == there
        finding = examine(found.instance, there)
        assert sum(value(found, back)) == pytest.approx(finding.objective)
        assert tuple(load(found, back.pruned(found))) == pytest.approx(finding.load)


def test_whole_costs_let_bounds_be_rounded_up() -> None:
    best = solve_model(arrays(paper("case3", seed=1, tightness=1.0)), Run())
    assert best.bound == best.objective
