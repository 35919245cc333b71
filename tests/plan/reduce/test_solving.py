from __future__ import annotations

import math

import pytest

from tests.plan.worlds import islands, small
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import paper
from tieline.plan.instance import Instance
from tieline.plan.models.solve import solve_model as optimal
from tieline.plan.proof import proven
from tieline.plan.reduce.solving import reduced
from tieline.plan.run import Progress, Run
from tieline.plan.solve import solve


def check(instance: Instance, method: str) -> set[str]:
    """Plan, bound and every word on the way are true of the instance as it was given; what the plan notes."""
    best = optimal(arrays(instance), Run())
    assert best.status == "optimal"
    told: list[Progress] = []
    plan = solve(instance, method=method, iterations=150, watch=told.append)
    assert proven(instance, plan) is plan
    slack = 1e-6 * max(1.0, best.objective)
    assert plan.objective >= best.objective - slack
    assert plan.bound <= best.objective + slack
    if method != "lns":
        assert plan.objective == pytest.approx(best.objective)
        assert plan.status == "optimal"
    for word in told:
        assert word.objective >= best.objective - slack
        assert word.bound <= best.objective + slack
        assert word.unmet >= 0
    assert told[-1].objective == pytest.approx(plan.objective)
    assert told[-1].unmet == plan.unmet
    return set(plan.notes)


@pytest.mark.parametrize("method", ["auto", "mip", "lns"])
def test_what_is_found_by_reductions_is_true_of_the_whole(method: str) -> None:
    notes = [check(small(seed + 300, sparse=True, limits=seed % 5 == 0), method) for seed in range(25)]
    notes += [check(islands(seed), method) for seed in range(25)]
    assert sum("reduced_nodes" in each for each in notes) > 20
    assert sum("parts" in each for each in notes) > 8
    assert sum("parts" not in each for each in notes) > 8


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_found_by_reductions_is_true_of_many() -> None:
    for seed in range(400):
        check(islands(seed + 1000, count=2 + seed % 3, room=4 + seed % 5), ("auto", "mip", "lns")[seed % 3])


def test_a_mesh_without_trees_is_planned_as_it_is() -> None:
    instance = paper("res5", tightness=1.5)
    assert "reduced_nodes" not in solve(instance, method="lns", iterations=20).notes
    assert not reduced(instance).is_smaller


def test_before_every_part_has_a_plan_nobody_is_told_of_one() -> None:
    told: list[Progress] = []
    for seed in range(40):
        told.clear()
        plan = solve(islands(seed), method="mip", watch=told.append)
        parts = int(plan.notes.get("parts", 0))
        if parts > 1:
            assert [word.objective for word in told[: parts - 1]] == [math.inf] * (parts - 1)
            assert all(word.objective == plan.objective for word in told[parts - 1 :])
            return
    raise AssertionError("no instance was planned in parts")


def test_where_nothing_is_left_nothing_is_solved() -> None:
    decided = 0
    for seed in range(200):
        instance = islands(seed, count=1)
        decided += not reduced(instance).instance.topics
        check(instance, "auto")
    assert decided
