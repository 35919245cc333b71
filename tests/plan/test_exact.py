from __future__ import annotations

import numpy as np
import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.arrays import arrays
from tieline.plan.bounds.bundle import bundle
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.generate.testset import paper
from tieline.plan.models.exact import exact
from tieline.plan.models.solve import solve_model
from tieline.plan.routes import no_trees, trees
from tieline.plan.run import Progress, Run


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_method_finds_the_optimum(seed: int) -> None:
    instance = small(seed, limits=seed % 4 == 0, most_requests=5)
    found = arrays(instance)
    plan = exact(found, Run(), start=no_trees(found) if seed % 2 else None, largest=1 + seed % 4)
    assert plan.objective == pytest.approx(optimum(instance))
    assert plan.status == "optimal"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_exact_method_finds_the_optimum_of_many() -> None:
    for seed in range(600):
        instance = small(seed + 9000, limits=seed % 4 == 0, most_requests=5)
        assert exact(arrays(instance), Run(), largest=1 + seed % 4).objective == pytest.approx(optimum(instance)), seed


@pytest.mark.parametrize("seed", range(30))
def test_links_of_an_optimal_plan_are_never_priced_out(seed: int) -> None:
    """What it costs to use an arc is a bound of plans that use it, at any prices and in groups of any size."""
    found = arrays(small(seed + 100))
    best = solve_model(found, Run())
    used = trees(found, best.routes)
    rng = np.random.default_rng(seed)
    relaxation = Relaxation(found, largest=1 + seed % 3)
    some = rng.uniform(0, 4, found.links) * np.isfinite(found.capacity)
    for prices in (np.zeros(found.links), some, bundle(relaxation, Run(iterations=30)).prices):
        bounds = relaxation.use_bounds(prices)
        for topic, tree in enumerate(used.entering):
            for arc in tree.values():
                assert bounds[topic, arc] <= best.objective + 1e-6
        assert bounds.min(initial=np.inf) >= relaxation.evaluate(prices).value - 1e-6


@pytest.mark.parametrize("name", ["tiny", "case2", "case3", "res0", "res5", "res7"])
def test_the_papers_sizes_are_proven_where_requests_fit(name: str) -> None:
    plan = exact(arrays(paper(name, seed=1, tightness=2.0)), Run())
    assert plan.status == "optimal"
    assert plan.unmet == 0


def test_an_interrupted_search_still_tells_the_truth() -> None:
    found = arrays(paper("res4", seed=1, tightness=1.0))
    plan = exact(found, Run(seconds=0.2))
    assert plan.bound <= plan.objective
    assert plan.bound >= 833


@pytest.mark.parametrize("how", ["exact", "f1-naive"])
def test_whoever_stops_early_gets_a_proven_plan_and_a_valid_bound(how: str) -> None:
    found = arrays(paper("res7", seed=1, tightness=0.8))
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > 3

    plan = exact(found, Run(stop=stop)) if how == "exact" else solve_model(found, Run(stop=stop), model=how)
    assert plan.status == "interrupted"
    assert plan.bound <= plan.objective
    assert len(asked) > 3


def test_whoever_watches_hears_of_every_better_plan_and_of_true_bounds() -> None:
    instance = paper("res5", seed=0, tightness=1.0)
    words: list[Progress] = []
    plan = exact(arrays(instance), Run(listener=words.append))
    assert plan.status == "optimal"
    assert len(words) > 1
    assert words[-1].objective == plan.objective
    assert [word.objective for word in words] == sorted((word.objective for word in words), reverse=True)
    assert all(word.bound <= plan.objective for word in words)


def test_stages_tell_of_plans_too() -> None:
    found = arrays(paper("case3", seed=2, tightness=0.6))
    words: list[Progress] = []
    plan = solve_model(found, Run(listener=words.append), model="f1d")
    assert plan.objective == min(word.objective for word in words)
    assert words[-1].unmet == plan.unmet
