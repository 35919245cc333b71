from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.arrays import Arrays, arrays
from tieline.plan.bounds.ascent import polyak
from tieline.plan.bounds.bundle import bundle
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.certify import shortest_paths_bound
from tieline.plan.generate.testset import paper
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.methods.lagrangian import lagrangian, shortest_path_trees
from tieline.plan.models.solve import relaxed, solve_model
from tieline.plan.run import Run


def every_bound(found: Arrays) -> Iterator[tuple[str, float]]:
    yield "shortest", shortest_paths_bound(found)
    yield "A", polyak(Relaxation(found, largest=1, is_adaptive=False), Run(iterations=30)).value
    yield "S", polyak(Relaxation(found, largest=1), Run(iterations=30)).value
    yield "pairs", polyak(Relaxation(found, largest=2), Run(iterations=20)).value
    yield "trees", polyak(Relaxation(found), Run(iterations=30)).value
    yield "bundle", bundle(Relaxation(found), Run(iterations=40)).value
    yield "bundle of one", bundle(Relaxation(found, largest=1), Run(iterations=20)).value
    yield "relaxation", relaxed(found, Run())
    rng = np.random.default_rng(len(found.tail))
    prices = rng.uniform(0, 10, found.links) * np.isfinite(found.capacity)
    yield "any prices", Relaxation(found).evaluate(prices).value


def check_bounds(instance: Instance, best: float) -> None:
    for name, bound in every_bound(arrays(instance)):
        assert bound <= best + 1e-6 * max(1.0, best), f"{instance.name}: {name} says {bound}, the optimum is {best}"


@pytest.mark.parametrize("seed", range(60))
def test_no_bound_exceeds_the_optimum(seed: int) -> None:
    instance = small(seed + 1000, limits=seed % 3 == 0)
    check_bounds(instance, optimum(instance))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_bound_exceeds_the_optimum_of_a_thousand_instances() -> None:
    for seed in range(1000):
        instance = small(seed + 5000, limits=seed % 3 == 0)
        check_bounds(instance, optimum(instance))


def counterexample() -> Instance:
    """One topic, two subscribers, each reached alone for 1 or through u together: research notes, section 2.1.

    The priced links are s-a1, s-a2 (1 each) and s-u (1.5).
    """
    clients = ("a1", "a2", "u")
    return Instance(
        name="counterexample",
        nodes=(
            Node(id="s", roles=("publisher",)),
            *(Node(id=name, roles=("broker",)) for name in clients),
            *(Node(id=name, roles=("subscriber",)) for name in ("t1", "t2")),
        ),
        links=(
            *(Link(a="s", b=name, capacity=1.0, cost=0.0) for name in clients),
            *(
                Link(a=a, b=b, capacity=1.0, cost=0.0)
                for a, b in (("a1", "t1"), ("a2", "t2"), ("u", "t1"), ("u", "t2"))
            ),
        ),
        topics=(Topic(id="k", source="s", rate=1.0, subscribers=("t1", "t2")),),
        unmet_cost=10.0,
    )


def test_the_papers_bound_is_not_the_minimum_it_claims_to_be() -> None:
    found = arrays(counterexample())
    prices = np.zeros(found.links)
    prices[:3] = (1.0, 1.0, 1.5)
    paid = float(prices.sum())
    claimed, _, _ = shortest_path_trees(found, prices)
    assert claimed + paid == pytest.approx(2.0)
    assert Relaxation(found).evaluate(prices).value + paid == pytest.approx(1.5)


def test_the_papers_bound_exceeds_the_optimum_of_whole_instances() -> None:
    """The paper's method, run as it is, ends with a "bound" above the value of a plan, even of its own."""
    found = arrays(paper("case3", seed=1, tightness=1.0, unmet_cost=100.0))
    best = solve_model(found, Run(), model="f1d")
    assert best.status == "optimal"
    assert float(lagrangian(found, Run()).notes["paper_bound"]) > best.objective + 10
    own = lagrangian(arrays(paper("case3", seed=3, tightness=0.8, unmet_cost=100.0)), Run())
    assert float(own.notes["paper_bound"]) > own.objective + 1
    assert own.bound <= own.objective


def test_the_papers_bound_holds_for_single_subscribers() -> None:
    for seed in range(20):
        instance = small(seed + 700)
        if any(len(topic.subscribers) > 1 for topic in instance.topics):
            continue
        found = arrays(instance)
        prices = np.where(np.isfinite(found.capacity), 1.0, 0.0)
        assert shortest_path_trees(found, prices)[0] == pytest.approx(Relaxation(found).evaluate(prices).value)


def test_the_bundle_reaches_the_relaxation_and_beats_the_subgradient() -> None:
    found = arrays(paper("res4", seed=0, tightness=1.0))
    strongest = bundle(Relaxation(found), Run(iterations=100)).value
    assert strongest >= relaxed(found, Run()) - 1e-3
    assert strongest >= polyak(Relaxation(found), Run(iterations=60)).value - 1e-6
    assert polyak(Relaxation(found, largest=1), Run(iterations=60)).value > shortest_paths_bound(found)


def test_groups_must_be_small() -> None:
    with pytest.raises(ValueError, match="groups of 40"):
        Relaxation(arrays(small(0)), largest=40)
