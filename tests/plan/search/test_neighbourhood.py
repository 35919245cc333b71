from __future__ import annotations

import numpy as np
import pytest

from tests.plan.worlds import optimum, share_of_optima, small
from tieline.plan.arrays import arrays
from tieline.plan.certify import certified
from tieline.plan.generate.testset import mesh, paper
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.run import Progress, Run
from tieline.plan.search.neighbourhood import search


def found(instance: Instance, *, iterations: int = 300, seed: int = 0) -> Plan:
    """The plan of a search; ``certified`` proves it."""
    numbers = arrays(instance)
    result = search(numbers, Run(iterations=iterations, seed=seed))
    return certified(numbers, result.trees, method="lns", bound=result.bound, seconds=0.0)


@pytest.mark.parametrize("limits", [False, True])
def test_never_better_than_the_optimum_and_mostly_equal(limits: bool) -> None:
    first = 500 if limits else 0
    assert share_of_optima(found, range(first, first + 60), limits=limits) >= (0.9 if limits else 0.95)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_bound_of_a_search_is_above_the_optimum() -> None:
    for seed in range(1000):
        instance = small(seed + 20_000, limits=seed % 3 == 0, most_requests=5)
        plan, best = found(instance, iterations=60), optimum(instance)
        assert plan.bound <= best + 1e-6 * max(1.0, best), seed
        assert plan.objective >= best - 1e-9, seed


@pytest.mark.parametrize(
    ("name", "tightness", "best"), [("res5", 1.5, 1211.0), ("res7", 2.0, 821.0), ("res4", 2.0, 753.0)]
)
def test_finds_the_optimum_of_the_paper_sizes(name: str, tightness: float, best: float) -> None:
    assert found(paper(name, tightness=tightness), iterations=3000).objective == best


def test_the_bound_alone_proves_some_plans() -> None:
    plan = found(paper("res7", tightness=2.0), iterations=3000)
    assert plan.status == "optimal"


def test_a_search_of_a_mesh_comes_close() -> None:
    plan = found(mesh(120, topics=60, requests=240, tightness=2.0), iterations=4000)
    assert plan.unmet == 0
    assert plan.gap < 0.02


def test_the_same_seed_and_iterations_give_the_same_plan() -> None:
    instance = paper("res4", tightness=1.0)
    first, again, other = (found(instance, iterations=700, seed=seed) for seed in (3, 3, 4))
    assert first.routes == again.routes
    assert first.bound == again.bound
    assert other.routes != first.routes


def test_it_ends_when_the_time_is_over_with_what_it_has() -> None:
    numbers = arrays(paper("res4", tightness=1.0))
    told: list[Progress] = []
    result = search(numbers, Run(seconds=0.0, listener=told.append))
    assert result.iterations == 0
    assert result.trees.served.any()
    assert told[0].doing == "begin"
    assert told[0].bound <= told[0].objective


def test_no_iterations_are_no_search_but_a_plan() -> None:
    result = search(arrays(paper("res4", tightness=1.0)), Run(iterations=0))
    assert result.iterations == 0
    assert result.trees.served.any()


def test_it_stops_when_told_to() -> None:
    numbers = arrays(paper("res4", tightness=1.0))
    calls = iter(range(100_000))
    result = search(numbers, Run(seconds=60.0, stop=lambda: next(calls) > 300))
    assert 0 < result.iterations < 10_000


def test_progress_only_gets_better() -> None:
    told: list[Progress] = []
    search(arrays(paper("res7", tightness=1.0)), Run(iterations=1000, listener=told.append))
    values = [each.objective for each in told]
    bounds = [each.bound for each in told]
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert told[-1].gap < 0.05


def test_a_start_is_never_made_worse() -> None:
    numbers = arrays(paper("res5", tightness=1.0))
    start = search(numbers, Run(iterations=2000))
    again = search(numbers, Run(iterations=20, seed=9), start=start.trees, prices=start.prices)
    before = certified(numbers, start.trees, method="lns", bound=start.bound, seconds=0.0)
    after = certified(numbers, again.trees, method="lns", bound=again.bound, seconds=0.0)
    assert after.objective <= before.objective


def test_nothing_to_plan_is_planned() -> None:
    instance = small(1)
    for empty in (
        Instance(name="no links", nodes=instance.nodes, links=(), topics=instance.topics),
        Instance(name="no topics", nodes=instance.nodes, links=instance.links, topics=()),
    ):
        plan = found(empty)
        assert plan.cost == 0.0
        assert plan.status == "optimal"


def test_a_search_needs_an_end() -> None:
    with pytest.raises(ValueError, match="seconds or iterations"):
        search(arrays(small(1)), Run())


def test_rates_that_are_no_whole_numbers_do_not_wear_capacity_out() -> None:
    import msgspec

    instance = paper("res4", tightness=1.0)
    factor = 1 / 3 + np.pi / 100
    topics = tuple(msgspec.structs.replace(topic, rate=topic.rate * factor) for topic in instance.topics)
    links = tuple(msgspec.structs.replace(link, capacity=link.capacity * factor) for link in instance.links)
    scaled = msgspec.structs.replace(instance, topics=topics, links=links)
    assert found(scaled, iterations=3000).unmet == found(instance, iterations=3000).unmet
