from __future__ import annotations

import numpy as np
import pytest

from tieline.plan.arrays import arrays
from tieline.plan.generate.clients import Population, populated
from tieline.plan.generate.network import geometric
from tieline.plan.generate.testset import SIZES, mesh, paper
from tieline.plan.greedy import greedy
from tieline.plan.models.solve import solve_model
from tieline.plan.run import Run


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_the_papers_dimensions(name: str, seed: int) -> None:
    size = SIZES[name]
    instance = paper(name, seed=seed)
    assert len(instance.nodes) == size.nodes
    assert instance.arc_count == size.arcs
    assert len(instance.topics) == size.topics
    assert len({who for topic in instance.topics for who in topic.subscribers}) == size.subscribers
    assert len({topic.source for topic in instance.topics}) == size.topics
    assert instance.request_count == 2 * size.topics if name != "tiny" else 2


def test_tiny_leaves_a_broker_out_as_in_figure_5() -> None:
    plan = solve_model(arrays(paper("tiny")), Run())
    assert plan.objective == 6.0
    assert not any("1" in (hop.tail, hop.head) for route in plan.routes for hop in route.links)


def test_a_seed_is_an_instance() -> None:
    assert paper("res4", seed=5) == paper("res4", seed=5)
    assert paper("res4", seed=5) != paper("res4", seed=6)
    assert mesh(60, topics=10, requests=30, seed=1) == mesh(60, topics=10, requests=30, seed=1)


def test_tightness_scales_what_brokers_share() -> None:
    room = [
        sum(link.capacity for link in paper("res7", seed=1, tightness=factor).links if link.a[0] == link.b[0] == "b")
        for factor in (1.0, 2.0)
    ]
    assert room[1] == pytest.approx(2 * room[0], rel=0.05)


@pytest.mark.parametrize(("nodes", "topics", "requests"), [(2, 1, 1), (7, 3, 5), (300, 200, 800), (3000, 100, 300)])
def test_meshes_of_any_size_are_connected(nodes: int, topics: int, requests: int) -> None:
    instance = mesh(nodes, topics=topics, requests=requests, tightness=50.0)
    assert len(instance.nodes) == max(3, nodes)
    assert instance.request_count == requests
    assert greedy(arrays(instance)).served.all()


def test_what_cannot_be_generated_is_said() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="3 links cannot join 6 brokers"):
        geometric(6, 3, rng, name="x")
    with pytest.raises(ValueError, match="50 requests"):
        mesh(10, topics=5, requests=50)
    with pytest.raises(ValueError, match="not in the test set"):
        paper("res9")
    population = Population(publishers=1, subscribers=1, topics=1, requests=1, client_links=9)
    with pytest.raises(ValueError, match="not so many pairs"):
        populated(geometric(3, 3, rng, name="x"), population, rng)
    with pytest.raises(ValueError, match="tightness is 0"):
        paper("res0", tightness=0)


def test_classes_are_drawn_when_asked_for() -> None:
    assert {topic.level for topic in mesh(60, topics=40, requests=60, classes=True).topics} == {0, 1, 2, 3}
