from __future__ import annotations

import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import mesh
from tieline.plan.instance import Instance, Link, Node, Topic, unmet_price
from tieline.plan.models.solve import solve_model
from tieline.plan.proof import examine
from tieline.plan.reduce.blocks import blocks
from tieline.plan.reduce.chains import without_chains
from tieline.plan.reduce.pendant import without_pendants
from tieline.plan.reduce.solving import reduced
from tieline.plan.run import Run


def check_exact(instance: Instance) -> int:
    """The optimum of the smaller instance, lifted, is the optimum; how many nodes were saved."""
    best = solve_model(arrays(instance), Run())
    assert best.status == "optimal"
    saved = 0
    for reduce in (without_pendants, without_chains, reduced):
        smaller = reduce(instance)
        plan = solve_model(arrays(smaller.instance), Run())
        lifted = examine(instance, smaller.lift(plan.routes))
        assert lifted.objective == pytest.approx(best.objective), (instance.name, reduce.__name__)
        assert smaller.lift_bound(plan.bound) == pytest.approx(best.objective)
        saved = len(instance.nodes) - len(smaller.instance.nodes)
    return saved


def test_reductions_keep_the_optimum() -> None:
    assert sum(check_exact(small(seed, sparse=True)) for seed in range(60)) > 10


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_reductions_keep_the_optimum_of_many() -> None:
    for seed in range(600):
        check_exact(small(seed + 2000, sparse=seed % 4 > 0, limits=seed % 5 == 0))


def test_limits_on_links_of_brokers_stay() -> None:
    for seed in range(30):
        check_exact(small(seed, sparse=True, limits=True))


def test_blocks_together_are_the_whole() -> None:
    helped = 0
    for seed in range(80):
        instance = small(seed, sparse=True)
        parts = blocks(instance)
        plans = [solve_model(arrays(part), Run()) for part in parts.parts] if parts else []
        found = parts.join(plans) if parts else None
        if found is None:
            continue
        routes, bound = found
        best = solve_model(arrays(instance), Run()).objective
        assert examine(instance, routes).objective == pytest.approx(best)
        assert bound == pytest.approx(best)
        helped += 1
    assert helped > 5


def test_bounds_that_prove_too_little_stay_bounds() -> None:
    for seed in range(40):
        instance = small(seed, sparse=True)
        smaller = reduced(instance)
        best = solve_model(arrays(instance), Run()).objective
        price = unmet_price(smaller.instance)
        for share in (0.0, 0.3, 0.9):
            weak = share * solve_model(arrays(smaller.instance), Run()).objective
            assert smaller.lift_bound(weak) <= best + 1e-6
            assert smaller.lift_bound(min(weak, price - 1)) <= best + 1e-6


def line() -> Instance:
    """p - b0 - b1 - b2 - b3 - s with a triangle at its end."""
    names = [f"b{number}" for number in range(4)]
    return Instance(
        name="line",
        nodes=(
            Node(id="p", roles=("publisher",)),
            Node(id="s", roles=("subscriber",)),
            *(Node(id=name, roles=("broker",)) for name in names),
        ),
        links=tuple(
            Link(a=a, b=b, capacity=2.0, cost=1.0)
            for a, b in (("p", "b0"), ("b0", "b1"), ("b1", "b2"), ("b2", "b3"), ("b3", "s"))
        ),
        topics=(Topic(id="k", source="p", rate=1.0, subscribers=("s",)),),
    )


def test_a_line_is_decided_without_a_solver() -> None:
    smaller = without_pendants(line())
    assert smaller.fixed_cost == 5.0
    assert smaller.instance.topics == ()
    assert examine(line(), smaller.lift(())).cost == 5.0


def test_a_line_is_one_link_when_chains_are_contracted() -> None:
    smaller = without_chains(line()).instance
    assert [node.id for node in smaller.nodes] == ["p", "s"]
    assert smaller.links[0].cost == 5.0


def test_a_link_that_is_too_small_stays() -> None:
    import msgspec

    instance = msgspec.structs.replace(line(), topics=(Topic(id="k", source="p", rate=3.0, subscribers=("s",)),))
    assert without_pendants(instance).instance.topics == instance.topics
    assert solve_model(arrays(instance), Run()).unmet == 1


def test_a_mesh_has_one_block_of_brokers() -> None:
    found = blocks(mesh(40, topics=4, requests=8, seed=1))
    assert found is None or max(len(part.nodes) for part in found.parts) > 10
