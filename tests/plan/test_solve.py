from __future__ import annotations

import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.generate.testset import paper
from tieline.plan.proof import proven
from tieline.plan.run import Progress
from tieline.plan.solve import METHODS, solve


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_proven_plan(method: str) -> None:
    for seed in range(5):
        instance = small(seed)
        told: list[Progress] = []
        plan = solve(instance, method=method, seconds=5.0, iterations=200, watch=told.append)
        assert proven(instance, plan) is plan
        assert plan.objective >= optimum(instance) - 1e-9
        assert told[-1].objective == plan.objective


@pytest.mark.parametrize("name", ["tiny", "case2", "case3", "res0"])
@pytest.mark.parametrize("tightness", [2.0, 1.0])
def test_auto_proves_the_small_sizes(name: str, tightness: float) -> None:
    assert solve(paper(name, tightness=tightness)).status == "optimal"


def test_auto_goes_on_to_an_exact_solution_from_what_it_found() -> None:
    plan = solve(paper("res4", tightness=1.5), seconds=600.0)
    assert plan.status == "optimal"
    assert plan.objective == 770.0
    assert plan.notes["iterations"]


def test_unknown_names_are_named() -> None:
    with pytest.raises(ValueError, match='"magic" is no method; known: auto'):
        solve(small(0), method="magic")
    with pytest.raises(ValueError, match='the method "lns" has no model'):
        solve(small(0), method="lns", model="f1")


@pytest.mark.parametrize("method", ["lagrangian", "annealing", "distributed"])
@pytest.mark.parametrize("asked", [1, 40])
def test_whoever_stops_a_method_early_gets_a_proven_plan(method: str, asked: int) -> None:
    instance = paper("res5", tightness=1.0)
    left = iter(range(asked))
    plan = solve(instance, method=method, stop=lambda: next(left, None) is None)
    assert proven(instance, plan) is plan
    assert plan.status == "interrupted"


@pytest.mark.parametrize("method", METHODS)
def test_no_time_at_all_still_gives_a_plan(method: str) -> None:
    instance = paper("res4", tightness=1.0)
    plan = solve(instance, method=method, seconds=0.0)
    assert proven(instance, plan) is plan
