from __future__ import annotations

import numpy as np
import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import paper
from tieline.plan.greedy import Builder, greedy, repaired
from tieline.plan.methods.annealing import annealing
from tieline.plan.methods.lagrangian import lagrangian
from tieline.plan.proof import examine, proven
from tieline.plan.routes import load, no_trees, routes
from tieline.plan.run import Run


@pytest.mark.parametrize("seed", range(60))
def test_greedy_plans_keep_every_limit(seed: int) -> None:
    found = arrays(small(seed, limits=seed % 2 == 0))
    finding = examine(found.instance, routes(found, greedy(found)))
    assert finding.objective >= optimum(found.instance) - 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_dropping_everything_frees_everything(seed: int) -> None:
    found = arrays(small(seed))
    builder = Builder(found)
    for request in range(found.requests):
        builder.serve(request)
    for request in np.random.default_rng(seed).permutation(found.requests):
        if builder.trees.served[request]:
            builder.drop(int(request))
            examine(found.instance, routes(found, builder.trees))
    assert not any(builder.trees.entering)
    assert not builder.users.any()
    assert not load(found, builder.trees).any()


@pytest.mark.parametrize("seed", range(20))
def test_the_papers_methods_give_true_plans(seed: int) -> None:
    instance = small(seed)
    best = optimum(instance)
    for plan in (lagrangian(arrays(instance), Run(), steps=30), annealing(arrays(instance), Run(seed=seed), rounds=10)):
        assert proven(instance, plan).objective >= best - 1e-6
        assert plan.bound <= best + 1e-6


def test_the_papers_lagrangian_proves_the_smallest() -> None:
    plan = lagrangian(arrays(paper("tiny")), Run())
    assert plan.status == "optimal"
    assert plan.notes["paper_claims_optimal"] == 1.0


def test_annealing_repeats_itself_from_a_seed() -> None:
    found = arrays(paper("case3", seed=2))
    one, other = (annealing(found, Run(seed=7), rounds=10) for _ in range(2))
    assert one.routes == other.routes


def test_annealing_that_finds_nothing_feasible_serves_nobody() -> None:
    found = arrays(paper("res4", seed=1, tightness=0.3))
    plan = annealing(found, Run(), rounds=2)
    assert plan.notes["found_feasible"] == 0.0
    assert plan.unmet == found.requests


def test_repair_of_nothing_is_greedy_enough() -> None:
    found = arrays(paper("case2", seed=1))
    assert repaired(found, no_trees(found), np.zeros(found.links)).served.all()
