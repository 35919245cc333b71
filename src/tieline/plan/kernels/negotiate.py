"""Negotiated congestion: links may be overloaded at first, and get dearer until nobody insists.

Theory of operation
-------------------
This is how PathFinder routes the wires of programmable chips.  In every round the topics that use an overloaded link
are taken off and routed again.  A link without room costs ``present`` per missing unit, which grows from round to
round, and a price that remembers how often the link was overloaded.  Topics with other good ways give way; those
without stay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.state import State, empty_state, leave, passes
from tieline.plan.kernels.ways import Scratch, find, join

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
    arrays: Arrays, net: Net, scratch: Scratch, prices: Floats, scale: float, is_over: Callable[[], bool]
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
        overloaded = negotiate(net, state, scratch, order, topics, price, pressure, _RISE * scale)
        if overloaded == 0 or idle > _PATIENCE:
            break
        if is_over():
            return None
        idle += 1
        if overloaded < fewest:
            fewest, idle = overloaded, 0
        pressure = min(pressure * _GROWTH, _LAST_PRESSURE * scale)
    settle(net, state, scratch, prices)
    return state


@compiled
def route_topic(net: Net, state: State, scratch: Scratch, topic: int, price: Floats, present: float) -> None:
    """Route a topic anew; its nearest subscribers first, so that others may join their ways."""
    first = net.request_start[topic]
    last = net.request_start[topic + 1]
    near = np.empty(last - first)
    for request in range(first, last):
        if state.served[request]:
            leave(net, state, request)
        near[request - first] = net.to_target[net.row[request], net.source[topic]]
    for place in np.argsort(near, kind="mergesort"):
        request = first + place
        weight, _, length = find(net, state, scratch, request, price, present, -1)
        if length >= 0 and weight <= net.price[topic]:
            join(net, state, scratch, request, length)


@compiled
def negotiate(  # numba passes arrays, not objects
    net: Net, state: State, scratch: Scratch, order: Ints, topics: Flags, price: Floats, present: float, rise: float
) -> int:
    """One round: route the marked topics in an order, mark those on overloaded links, and raise the prices of these.

    The number of overloaded links.
    """
    for topic in order:
        if topics[topic]:
            route_topic(net, state, scratch, topic, price, present)
    topics.fill(False)
    links = 0
    for link in range(len(state.room)):
        if state.room[link] >= 0:
            continue
        links += 1
        price[link] += rise * min(1.0, -state.room[link] / net.capacity[link] + 0.1)
        for arc in (2 * link, 2 * link + 1):
            head = net.head[arc]
            for topic in range(len(topics)):
                if state.entering[head, topic] == arc:
                    topics[topic] = True
    return links


@compiled
def settle(net: Net, state: State, scratch: Scratch, price: Floats) -> int:
    """Make overloaded links obey: requests leave where they free most for the least loss, and return where they can.

    The number of unmet requests.
    """
    count = len(net.request_node)
    for link in range(len(state.room)):
        while state.room[link] < 0:
            worst = -1
            least = np.inf
            for arc in (2 * link, 2 * link + 1):
                head = net.head[arc]
                for topic in range(len(net.source)):
                    if state.entering[head, topic] == arc:
                        loss = state.through[head, topic] * net.price[topic] / min(net.rate[topic], -state.room[link])
                        if loss < least:
                            least = loss
                            worst = topic
            _withdraw(net, state, worst, link)
    missed = np.empty(count)
    for request in range(count):
        topic = net.request_topic[request]
        missed[request] = net.rate[topic] / net.price[topic] if net.price[topic] > 0 else np.inf
    unmet = 0
    for request in np.argsort(missed, kind="mergesort"):
        if state.served[request]:
            continue
        _, cost, length = find(net, state, scratch, request, price, np.inf, -1)
        if length >= 0 and cost <= net.price[net.request_topic[request]]:
            join(net, state, scratch, request, length)
        else:
            unmet += 1
    return unmet


@compiled
def _withdraw(net: Net, state: State, topic: int, link: int) -> None:
    """Leave all requests of a topic unmet that are served through a link."""
    for request in range(net.request_start[topic], net.request_start[topic + 1]):
        if state.served[request] and passes(net, state, request, link):
            leave(net, state, request)
