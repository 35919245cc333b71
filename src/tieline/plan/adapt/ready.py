"""What re-planning compiles or loads, before anybody looks at the clock."""

from __future__ import annotations

from functools import cache

import numpy as np

from tieline.plan.adapt.repair import Repair
from tieline.plan.arrays import arrays
from tieline.plan.loops.adapt import close_link, load_on
from tieline.plan.loops.values import desk, net
from tieline.plan.routes import no_trees
from tieline.plan.search.state import state_of
from tieline.plan.search.warm import few_nodes, warm


@cache
def ready() -> None:
    """Repair the plan of a network of a few nodes, once per process."""
    warm()
    numbers = arrays(few_nodes())
    network = net(numbers)
    state = state_of(numbers, network, no_trees(numbers))
    for _ in range(2):
        repair = Repair(numbers, network, desk(numbers), state, seed=0, deadline=np.inf)
        repair.run(repair.unmet_price())
        # links 1 and 2 are the ways of the topic that is served: it moves to the other one
        close_link(network, state, 1)
        state.room[1] = load_on(network, state, 1)
