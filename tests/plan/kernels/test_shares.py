from __future__ import annotations

import numpy as np
import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import arrays
from tieline.plan.bounds.groups import Relaxation, groups
from tieline.plan.generate.testset import mesh, paper
from tieline.plan.instance import Instance
from tieline.plan.kernels.network import net
from tieline.plan.kernels.shares import equal_shares, evaluate
from tieline.plan.kernels.steiner import steiner_tables
from tieline.plan.kernels.tree_costs import Delivery, deliver
from tieline.plan.search.dual import Dual


def both(instance: Instance, seed: int, largest: int) -> tuple[float, float, float]:
    """What all groups pay at some prices: by the compiled loop, request by request, and by the plain algorithm."""
    numbers = arrays(instance)
    rng = np.random.default_rng(seed)
    prices = rng.uniform(0, 3, numbers.links) * (rng.random(numbers.links) < 0.6) * np.isfinite(numbers.capacity)
    parts = [(group.topic, group.requests) for group in groups(numbers, largest)]
    load, paid = np.zeros(numbers.links), np.zeros(numbers.requests)
    total = evaluate(
        net(numbers), steiner_tables(numbers, largest), equal_shares(numbers, parts), prices, 0.0, load, paid
    )
    limited = np.isfinite(numbers.capacity)
    slack = float(prices[limited] @ numbers.capacity[limited])
    relaxation = Relaxation(numbers, largest=largest)
    assert relaxation.evaluate(prices).value == pytest.approx(total - slack)
    shares = np.bincount([topic for topic, _ in parts], minlength=numbers.topics)
    plain = -slack
    for topic, requests in parts:
        unit = np.where(np.repeat(numbers.fits(topic), 2), numbers.arc_cost(), np.inf)
        fixed = np.repeat(prices * numbers.rate[topic] / shares[topic], 2)
        group = Delivery(
            source=int(numbers.source[topic]),
            targets=numbers.request_node[requests],
            price=float(numbers.price[topic]),
            unit=unit,
            fixed=fixed,
        )
        plain += deliver(net(numbers), group, np.empty((1 << largest, numbers.nodes)))
    return total - slack, float(paid.sum()) - slack, plain


@pytest.mark.parametrize("seed", range(60))
def test_trees_cost_what_the_plain_algorithm_says(seed: int) -> None:
    total, paid, other = both(small(seed + 700, most_requests=7), seed, 1 + seed % 4)
    assert total == pytest.approx(other)
    assert paid == pytest.approx(other)


@pytest.mark.parametrize("largest", [1, 3, 6])
def test_so_they_do_in_larger_networks(largest: int) -> None:
    for instance in (paper("res7", tightness=1.0), mesh(80, topics=10, requests=60, tightness=0.8)):
        total, paid, other = both(instance, 5, largest)
        assert total == pytest.approx(other)
        assert paid == pytest.approx(other)


def test_shares_that_follow_use_raise_the_bound_of_topics_in_several_groups() -> None:
    numbers = arrays(mesh(60, topics=6, requests=90, seed=2, tightness=0.9))
    assert len(groups(numbers, 6)) > numbers.topics
    dual = Dual(numbers, net(numbers))
    first = dual.insight().bound
    value = first * 1.1
    for _ in range(60):
        dual.step(value)
    assert dual.insight().bound > first
    assert dual.insight().paid.sum() - float(
        dual.insight().prices @ np.where(np.isfinite(numbers.capacity), numbers.capacity, 0.0)
    ) == pytest.approx(dual.insight().bound)
