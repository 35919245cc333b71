from __future__ import annotations

import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.generate.testset import paper
from tieline.plan.proof import proven
from tieline.plan.search.progress import Progress
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
    plan = solve(paper("res4", tightness=1.5), seconds=60.0)
    assert plan.status == "optimal"
    assert plan.objective == 770.0
    assert plan.notes["iterations"]


def test_unknown_names_are_named() -> None:
    with pytest.raises(ValueError, match='"magic" is no method; known: auto'):
        solve(small(0), method="magic")
    with pytest.raises(ValueError, match='the method "lns" has no model'):
        solve(small(0), method="lns", model="f1")
