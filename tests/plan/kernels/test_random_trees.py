from __future__ import annotations

import numpy as np
import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import paper
from tieline.plan.kernels.chance import seeded
from tieline.plan.kernels.network import net
from tieline.plan.kernels.random_trees import reroute_some
from tieline.plan.kernels.state import state_of, trees_of
from tieline.plan.kernels.ways import scratch
from tieline.plan.proof import examine
from tieline.plan.routes import routes
from tieline.plan.run import Run
from tieline.plan.search.neighbourhood import search


@pytest.mark.parametrize("limits", [False, True])
def test_the_others_stay_and_every_limit_is_kept(limits: bool) -> None:
    for seed in range(40):
        instance = small(seed + 500, limits=limits)
        numbers = arrays(instance)
        state = state_of(numbers, net(numbers), search(numbers, Run(iterations=5, seed=seed)).trees)
        before = state.entering.copy()
        size = 1 + seed % 3
        reroute_some(net(numbers), state, scratch(numbers), seeded(seed), size, 2.0)
        assert (state.entering != before).any(axis=0).sum() <= size
        # the checker raises where a limit is broken
        examine(instance, routes(numbers, trees_of(numbers, state)))
        anew = state_of(numbers, net(numbers), trees_of(numbers, state))
        np.testing.assert_array_equal(state.through, anew.through)
        np.testing.assert_allclose(state.room, anew.room)


def test_chance_shows_trees_that_a_plan_did_not_have() -> None:
    numbers = arrays(paper("res5", tightness=1.0))
    network, plan = net(numbers), search(numbers, Run(iterations=200)).trees
    seen = set()
    for seed in range(30):
        state = state_of(numbers, network, plan)
        reroute_some(network, state, scratch(numbers), seeded(seed), 6, 2.0)
        seen |= {(topic, state.entering[:, topic].tobytes()) for topic in range(numbers.topics)}
    assert len(seen) > 2 * numbers.topics
