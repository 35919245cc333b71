"""Rounds of negotiated congestion, and the plan they end in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.loops.negotiate import negotiate, settle
from tieline.plan.loops.values import Desk, Net, State
from tieline.plan.search.state import empty_state

#: Rounds at most, and rounds without fewer overloaded links after which nobody gives way any more.
_ROUNDS = 60
_PATIENCE = 12
#: The pressure of a full link on newcomers: at first, its growth per round, and at most; in costs of a unit of rate.
_FIRST_PRESSURE = 0.5
_GROWTH = 1.4
_LAST_PRESSURE = 1000.0
#: What an overloaded link's price rises by in a round, in the same unit.
_RISE = 0.5


def negotiated(
    arrays: Arrays, net: Net, desk: Desk, prices: Floats, scale: float, is_over: Callable[[], bool]
) -> State | None:
    """A plan that starts from prices per link and obeys every limit; None if the time was over before.

    ``scale`` turns a unit of rate into cost.
    """
    state = empty_state(arrays, net)
    # the heaviest topics choose first
    order = np.argsort(-arrays.rate, kind="stable").astype(np.int64)
    topics = np.ones(arrays.topics, np.bool_)
    price = prices.copy()
    pressure, fewest, idle = _FIRST_PRESSURE * scale, arrays.links + 1, 0
    for _ in range(_ROUNDS):
        overloaded = negotiate(net, state, desk, order, topics, price, pressure, _RISE * scale)
        if overloaded == 0 or idle > _PATIENCE:
            break
        if is_over():
            return None
        idle += 1
        if overloaded < fewest:
            fewest, idle = overloaded, 0
        pressure = min(pressure * _GROWTH, _LAST_PRESSURE * scale)
    settle(net, state, desk, prices)
    return state
