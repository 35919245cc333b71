"""What the paper names as future work: rates in intervals, several sources, and clients that the plan attaches."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.plan.worlds import optimum, share_of_optima, small
from tieline.plan.arrays import arrays
from tieline.plan.flaws import Flawed, checked
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.models.solve import EXTENDED, solve_model
from tieline.plan.proof import Refuted, examine, proven
from tieline.plan.reading.document import parse, render
from tieline.plan.routes import Hop, Route
from tieline.plan.run import Run
from tieline.plan.solve import METHODS, solve
from tieline.plan.tables import parts


def uncertain(seed: int) -> Instance:
    """A small instance whose rates may rise, any number of them or a few at once."""
    rng = np.random.default_rng([seed, 5])
    instance = small(seed)
    topics = tuple(
        msgspec.structs.replace(topic, rate_max=topic.rate + float(rng.integers(0, 4)) if rng.random() < 0.8 else None)
        for topic in instance.topics
    )
    deviations = None if rng.random() < 0.3 else int(rng.integers(0, 3))
    return checked(msgspec.structs.replace(instance, topics=topics, deviations=deviations))


def replicated(seed: int) -> Instance:
    """A small instance with topics that may come from a second node."""
    rng = np.random.default_rng([seed, 6])
    instance = small(seed, limits=seed % 3 == 0)
    topics = []
    roles = {node.id: set(node.roles) for node in instance.nodes}
    for topic in instance.topics:
        others = [node.id for node in instance.nodes if node.id not in (topic.source, *topic.subscribers)]
        chosen = tuple(str(name) for name in rng.permutation(others)[: int(rng.integers(0, 3))])
        for name in chosen:
            roles[name].add("publisher")
        topics.append(msgspec.structs.replace(topic, more_sources=chosen))
    nodes = tuple(msgspec.structs.replace(node, roles=tuple(sorted(roles[node.id]))) for node in instance.nodes)
    return checked(msgspec.structs.replace(instance, nodes=nodes, topics=tuple(topics)))


def attached(seed: int) -> Instance:
    """A small instance each of whose clients may use one of its links."""
    instance = small(seed)
    nodes = tuple(
        node if node.is_broker else msgspec.structs.replace(node, max_connections=1) for node in instance.nodes
    )
    return checked(msgspec.structs.replace(instance, nodes=nodes))


@pytest.mark.parametrize("make", [uncertain, replicated, attached])
@pytest.mark.parametrize("model", EXTENDED)
def test_the_formulations_find_the_optimum(make: object, model: str) -> None:
    assert callable(make)
    for seed in range(30):
        instance = make(seed)
        plan = solve_model(arrays(instance), Run(), model=model)
        assert plan.objective == pytest.approx(optimum(instance)), seed
        assert plan.status == "optimal"


def test_the_door_chooses_a_model_that_understands() -> None:
    assert sum(uncertain(seed).is_extended for seed in range(20)) > 10
    assert sum(replicated(seed).is_extended for seed in range(20)) > 10
    for seed in range(8):
        for instance in (uncertain(seed), replicated(seed)):
            assert solve(instance).objective == pytest.approx(optimum(instance))


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("auto", "mip")])
def test_other_methods_say_what_they_do_not_know(method: str) -> None:
    with pytest.raises(ValueError, match=r"one source for each topic and fixed rates; .* auto and mip"):
        solve(next(one for one in map(uncertain, range(9)) if one.is_extended), method=method)
    with pytest.raises(ValueError, match='for others there are "f1" and "f1d"'):
        solve(next(one for one in map(replicated, range(9)) if one.is_extended), model="f2")


@pytest.mark.parametrize("method", ["auto", "lns", "mip", "distributed"])
def test_clients_attach_to_one_broker_with_every_method_of_ours(method: str) -> None:
    iterations = 40 if method in ("auto", "lns") else None
    plans = {seed: solve(attached(seed), method=method, iterations=iterations) for seed in range(12)}
    for seed, plan in plans.items():
        best = optimum(attached(seed))
        assert plan.objective >= best - 1e-9, seed
        assert plan.objective == pytest.approx(best) or method not in ("auto", "mip"), seed


def line() -> Instance:
    """Two publishers at the ends of three brokers, and a subscriber in the middle that two topics reach."""
    return checked(
        Instance(
            name="line",
            nodes=(
                *(Node(id=name, roles=("broker",)) for name in "abc"),
                *(Node(id=name, roles=("publisher",)) for name in "pq"),
                Node(id="s", roles=("subscriber",)),
            ),
            links=tuple(
                Link(a=pair[0], b=pair[1], capacity=5.0, cost=1.0) for pair in ("pa", "ab", "bc", "cq", "bs", "cs")
            ),
            topics=(
                Topic(id="k", source="p", rate=2.0, rate_max=4.0, subscribers=("s",)),
                Topic(id="l", source="q", rate=2.0, rate_max=3.0, subscribers=("s",)),
            ),
            deviations=1,
        )
    )


def over_b(topic: str, source: str) -> Route:
    ways = {"p": ("pa", "ab", "bs"), "q": ("qc", "cb", "bs")}[source]
    return Route(
        topic=topic, source=source, links=tuple(Hop(tail=way[0], head=way[1], subscribers=("s",)) for way in ways)
    )


def test_the_checker_lets_the_largest_rises_come_together() -> None:
    # both over b - s: 2 + 2, one of them may rise by 2: 6 of 5
    with pytest.raises(Refuted, match=r"link b - s carries 4.0 and up to 6.0 when rates rise; its capacity is 5.0"):
        examine(line(), (over_b("k", "p"), over_b("l", "q")))
    for deviations, most in ((0, 4.0), (1, 6.0), (2, 7.0), (None, 7.0)):
        instance = msgspec.structs.replace(line(), deviations=deviations)
        links = tuple(msgspec.structs.replace(link, capacity=most) for link in instance.links)
        examine(msgspec.structs.replace(instance, links=links), (over_b("k", "p"), over_b("l", "q")))
        with pytest.raises(Refuted, match="its capacity is"):
            less = tuple(msgspec.structs.replace(link, capacity=most - 0.5) for link in instance.links)
            examine(msgspec.structs.replace(instance, links=less), (over_b("k", "p"), over_b("l", "q")))


def test_the_checker_knows_several_sources() -> None:
    one = Topic(id="k", source="p", more_sources=("q",), rate=2.0, subscribers=("s",))
    instance = checked(msgspec.structs.replace(line(), topics=(one,)))
    hops = over_b("k", "q").links
    route = Route(topic="k", source="p", links=hops)
    assert examine(instance, (route,)).cost == 3.0
    with pytest.raises(Refuted, match="is neither a broker nor the source, and sends"):
        examine(msgspec.structs.replace(line(), topics=(msgspec.structs.replace(one, more_sources=()),)), (route,))
    back = (Hop(tail="a", head="p", subscribers=("s",)), *over_b("k", "p").links)
    with pytest.raises(Refuted, match="returns to its source"):
        examine(instance, (Route(topic="k", source="p", links=back),))
    plan = proven(instance, solve(instance))
    assert (plan.cost, plan.routes[0].links[0].tail) == (2.0, "q")
    with pytest.raises(Flawed, match="has several sources"):
        parts(instance, plan, is_paced=False)


def test_the_checker_counts_the_links_of_a_client() -> None:
    nodes = tuple(msgspec.structs.replace(node, max_connections=1) if node.id == "s" else node for node in line().nodes)
    topics = tuple(msgspec.structs.replace(topic, rate_max=None) for topic in line().topics)
    instance = checked(msgspec.structs.replace(line(), nodes=nodes, topics=topics))
    over_c = Route(
        topic="l", source="q", links=tuple(Hop(tail=w[0], head=w[1], subscribers=("s",)) for w in ("qc", "cs"))
    )
    with pytest.raises(Refuted, match="client s uses 2 links; its max_connections is 1"):
        examine(instance, (over_b("k", "p"), over_c))
    assert solve(instance).cost == 6.0  # both by way of b or both by way of c: one link more than the cheapest ways


def test_files_hold_them() -> None:
    for seed in range(10):
        for instance in (uncertain(seed), replicated(seed), attached(seed)):
            assert parse(render(instance)) == instance


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate_max": 1.0}, "rate_max is less than its rate"),
        ({"more_sources": ("a",)}, 'its source "a" does not have the role publisher'),
        ({"more_sources": ("nobody",)}, 'no node "nobody" to be one of its sources'),
        ({"more_sources": ("p",)}, "a source is written twice"),
    ],
)
def test_flaws_are_named(change: dict[str, object], said: str) -> None:
    topic = msgspec.structs.replace(line().topics[0], **change)
    with pytest.raises(Flawed, match=said):
        checked(msgspec.structs.replace(line(), topics=(topic,)))


def test_exact_methods_still_find_optima_of_plain_instances() -> None:
    assert share_of_optima(lambda instance: solve(instance, method="mip"), range(12), limits=True) == 1.0
