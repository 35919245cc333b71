from __future__ import annotations

import pytest

from tests.plan.worlds import optimum, small
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import paper
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.models.solve import MODELS, PRINTED, solve_model
from tieline.plan.proof import proven
from tieline.plan.run import Run

EXACT = ("f1", "f1-naive", "f1d", "tb")


@pytest.mark.parametrize("model", EXACT)
@pytest.mark.parametrize("seed", range(12))
def test_exact_models_find_the_optimum(model: str, seed: int) -> None:
    instance = small(seed)
    plan = solve_model(arrays(instance), Run(), model=model, naive=seed % 2 == 0)
    assert plan.objective == pytest.approx(optimum(instance))
    assert plan.status == "optimal"


@pytest.mark.parametrize("seed", range(40))
def test_limits_are_kept_and_cost_no_more_than_they_must(seed: int) -> None:
    instance = small(seed, limits=True)
    plan = solve_model(arrays(instance), Run(), model=("f1", "f1d", "tb")[seed % 3])
    assert plan.objective == pytest.approx(optimum(instance))


@pytest.mark.parametrize("seed", range(12))
def test_other_models_give_plans_that_are_true(seed: int) -> None:
    instance = small(seed)
    best = optimum(instance)
    for model in ("f1-paper", "f2"):
        plan = proven(instance, solve_model(arrays(instance), Run(), model=model))
        assert plan.bound <= best + 1e-6
        assert plan.objective >= best - 1e-6


def test_f1_as_printed_claims_less_than_any_plan_costs() -> None:
    """A publisher near the subscriber emits the other's topic: (3) does not forbid it."""
    found = paper("case2", seed=2, tightness=1.0, unmet_cost=1000.0)
    as_printed = solve_model(arrays(found), Run(seconds=300), model="f1-paper")
    corrected = solve_model(arrays(found), Run(seconds=300), model="f1")
    assert corrected.status == "optimal"
    assert float(as_printed.notes["model_value"]) < corrected.objective


@pytest.mark.parametrize("seed", range(12))
def test_printed_models_give_plans_that_are_true(seed: int) -> None:
    """Whatever a printed model takes for its answer, the plan that is read from it is what it says it is."""
    instance = small(seed)
    for model in PRINTED:
        plan = proven(instance, solve_model(arrays(instance), Run(), model=model))
        assert plan.bound <= optimum(instance) + 1e-6


def two_of_one_topic(room: float) -> Instance:
    """One topic, two subscribers at two brokers; the way to the second has room or not."""
    return Instance(
        name="two",
        nodes=(
            Node(id="p", roles=("publisher",)),
            *(Node(id=name, roles=("broker",)) for name in "ab"),
            *(Node(id=name, roles=("subscriber",)) for name in "st"),
        ),
        links=tuple(
            Link(a=pair[0], b=pair[1], capacity=room if pair == "ab" else 5.0, cost=1.0)
            for pair in ("pa", "ab", "as", "bt")
        ),
        topics=(Topic(id="k", source="p", rate=1.0, subscribers=("s", "t")),),
        unmet_cost=50.0,
    )


def test_f2_as_printed_has_no_solution_where_one_of_two_requests_must_stay_unmet() -> None:
    wide, narrow = arrays(two_of_one_topic(1.0)), arrays(two_of_one_topic(0.5))
    # four links, each paid once
    assert solve_model(wide, Run(), model="f2-paper").notes["model_value"] == pytest.approx(4.0)
    found = solve_model(narrow, Run(), model="f2-paper")
    # (23): neither the real arc and the dummy of the other, nor two dummies
    assert found.notes["infeasible"] == 1.0 and found.unmet == 2
    corrected = solve_model(narrow, Run(), model="f2")
    assert (corrected.unmet, corrected.cost) == (1, 2.0)


def test_the_split_as_printed_asks_no_source_for_anything() -> None:
    instance = two_of_one_topic(1.0)
    found = solve_model(arrays(instance), Run(), model="tb-paper")
    # the two last links, and nothing that leads there
    assert found.notes["model_value"] == pytest.approx(2.0)
    assert found.unmet == 2 and found.cost == 0.0
    assert solve_model(arrays(instance), Run(), model="tb").cost == 5.0


def test_strict_classes_are_served_first() -> None:
    """One urgent request against nine of class 0 that share its link: weights prefer the nine, strict order the one."""
    many = tuple(f"s{number}" for number in range(9))
    instance = Instance(
        name="narrow",
        nodes=(
            *(Node(id=name, roles=("publisher",)) for name in ("p", "q")),
            *(Node(id=name, roles=("broker",)) for name in ("a", "b")),
            *(Node(id=name, roles=("subscriber",)) for name in (*many, "u")),
        ),
        links=tuple(
            Link(a=one, b=other, capacity=1.0, cost=1.0)
            for one, other in (("p", "a"), ("q", "a"), ("a", "b"), ("b", "u"), *(("b", name) for name in many))
        ),
        topics=(
            Topic(id="bulk", source="p", rate=1.0, subscribers=many),
            Topic(id="alarm", source="q", rate=1.0, subscribers=("u",), level=3),
        ),
    )
    by_weight, by_class = solve_model(arrays(instance), Run()), solve_model(arrays(instance), Run(), strict=True)
    assert [len(route.unmet) for route in by_weight.routes] == [0, 1]
    assert [len(route.unmet) for route in by_class.routes] == [9, 0]
    assert by_class.bound <= by_weight.objective < by_class.objective


@pytest.mark.parametrize("seed", range(30))
def test_strict_plans_are_true_and_so_are_their_bounds(seed: int) -> None:
    instance = small(seed)
    plan = solve_model(arrays(instance), Run(), strict=True)
    assert plan.bound <= optimum(instance) + 1e-6


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(ValueError, match=r"f3.*known: f1"):
        solve_model(arrays(small(0)), Run(), model="f3")


def test_time_is_kept() -> None:
    plan = solve_model(arrays(paper("res5", seed=1, tightness=0.8)), Run(seconds=0.5))
    assert plan.bound <= plan.objective
    assert set(MODELS) >= {"f1", "f1-paper", "f1d", "f2", "tb"}
