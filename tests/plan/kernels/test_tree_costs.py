from __future__ import annotations

import numpy as np
import pytest

from tests.plan.worlds import small, topic_trees
from tieline.plan.arrays import arrays
from tieline.plan.kernels.network import net
from tieline.plan.kernels.shortest import distances, leaving, spread
from tieline.plan.kernels.steiner import cheapest_tree, follow_tree, steiner_tables
from tieline.plan.kernels.tree_costs import Delivery, deliver, through


@pytest.mark.parametrize("seed", range(40))
def test_the_cheapest_tree_is_found_and_so_is_the_cheapest_through_every_arc(seed: int) -> None:
    instance = small(seed, most_requests=5)
    found = arrays(instance)
    fee = float(seed % 4)
    number = {node.id: place for place, node in enumerate(instance.nodes)}
    arc_of = {(int(found.tail[arc]), int(found.head[arc])): arc for arc in range(found.arcs)}
    for k, topic in enumerate(instance.topics):
        unit = np.where(np.repeat(found.fits(k), 2), found.arc_cost(), np.inf)
        fixed = np.full(found.arcs, fee)
        size = 1 << len(topic.subscribers)
        table, outside = np.empty((size, found.nodes)), np.empty((size, found.nodes))
        targets, source = found.subscribers(k), int(found.source[k])
        network = net(found)
        group = Delivery(source=source, targets=targets, price=float(found.price[k]), unit=unit, fixed=fixed)
        value = deliver(network, group, table)
        best, best_with = np.inf, np.full(found.arcs, np.inf)
        for cost, hops in topic_trees(instance, topic):
            arcs = [arc_of[number[tail], number[head]] for tail, head in hops]
            if not np.isfinite(unit[arcs]).all():
                continue
            total = cost + fee * len(arcs)
            best = min(best, total)
            best_with[arcs] = np.minimum(best_with[arcs], total)
        assert value == pytest.approx(best)
        trees = steiner_tables(found, len(targets))
        trees.toll[:] = fee
        requests = np.arange(found.request_start[k], found.request_start[k + 1])
        value, served = cheapest_tree(network, trees, k, requests, distances(found, k, unit))
        assert value == pytest.approx(best)
        count = follow_tree(network, trees, k, served)
        arcs_found, travellers = trees.arc[:count], np.bitwise_count(trees.bits[:count])
        dropped = len(targets) - int(served).bit_count()
        paid = float(unit[arcs_found] @ travellers) + fee * count + dropped * float(found.price[k])
        assert paid == pytest.approx(best)
        least = np.empty(found.arcs)
        through(network, group, table, outside, least)
        # a bound where the tree would have to turn back on itself, and exact where an optimal tree goes
        assert (least <= best_with + 1e-9).all()
        assert least.min(initial=np.inf) >= best - 1e-9
        if served:
            assert least[arcs_found] == pytest.approx(best)


def test_fixed_nodes_keep_their_distance() -> None:
    found = arrays(small(3))
    distance = np.full(found.nodes, np.inf)
    distance[:2] = (0.0, 100.0)
    entering = np.full(found.nodes, -1, np.int64)
    is_fixed = np.zeros(found.nodes, np.bool_)
    is_fixed[1] = True
    relays = np.ones(found.nodes, np.bool_)
    spread(leaving(found), relays, found.arc_cost(), distance, entering, is_fixed, -1)
    assert distance[1] == 100.0
    assert np.isfinite(distance).all()
