"""Room for requests that find none: they push others out, who push others out, until everybody is served.

Theory of operation
-------------------
Where requests just about fit, a search that never leaves one more unmet stands still with one unmet, though a plan for
all exists.  Guided ejection search (Nagata and Bräysy, for vehicle routing) goes through plans that leave more unmet.

An unmet request is served over the way on which the others that must leave for it have the least weight together, and
these are unmet then.  Every time a request finds no room, its weight grows, so that those which are hard to place come
to stand where they fit, and those which are easy to place move about.  Between any two steps a request takes another
way by chance, so that nothing goes in circles.  What counts is who is served; costs and the worth of capacity decide
between ways that are equal in this, and the search has to mend the rest later.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats, Ints
from tieline.plan.kernels.chance import Seed, below, uniform
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.random_trees import surcharge
from tieline.plan.kernels.state import State, erect, leave
from tieline.plan.kernels.ways import Scratch, find, join


class EjectionScratch(NamedTuple):
    """Scratch space for one ejection search: who weighs how much, and who is unmet."""

    #: Per request, how hard it is to place.
    weight: Floats
    #: Requests that are unmet, the first so many of them.
    unmet: Ints
    #: Per link and topic: the weight of the requests that the topic serves over the link.
    burden: Floats
    #: Per topic, those of one link.
    left: Floats
    #: Per link and unit of rate.
    price: Floats


@compiled
def eject(net: Net, state: State, scratch: Scratch, seed: Seed, steps: int, push: float, noise: float) -> bool:
    """Take up to so many steps from the plan that stands; whether fewer are unmet, by what they cost.

    The plan that stands at the end is the one with the fewest, or the old one.  ``push`` is what a unit of weight
    costs, ``noise`` the mean of what is added to links by chance.
    """
    requests, links, topics = len(state.served), len(net.cost), len(net.source)
    pushing = EjectionScratch(
        weight=np.ones(requests),
        unmet=np.empty(requests, np.int64),
        burden=np.zeros((links, topics)),
        left=np.zeros(topics),
        price=np.zeros(links),
    )
    count = 0
    owed = 0.0
    for request in range(requests):
        if not state.served[request]:
            pushing.unmet[count] = request
            count += 1
            owed += net.price[net.request_topic[request]]
    first = least = owed
    entering, served = state.entering.copy(), state.served.copy()
    for _ in range(steps):
        if count == 0:
            break
        count = _step(net, state, scratch, seed, pushing, count, push, noise)
        owed = 0.0
        for place in range(count):
            owed += net.price[net.request_topic[pushing.unmet[place]]]
        if owed < least - 1e-9 * abs(least):
            least = owed
            entering[:] = state.entering
            served[:] = state.served
        count = _stir(net, state, scratch, seed, pushing, count, noise)
    for request in range(requests):
        if state.served[request]:
            leave(net, state, request)
    erect(net, state, entering, served)
    return bool(least < first)


@compiled
def _step(  # numba passes arrays, not objects
    net: Net,
    state: State,
    scratch: Scratch,
    seed: Seed,
    pushing: EjectionScratch,
    count: int,
    push: float,
    noise: float,
) -> int:
    """Serve one of the unmet, over others if need be; how many are unmet then."""
    place = below(seed, count)
    request = pushing.unmet[place]
    topic = net.request_topic[request]
    pushing.price[:] = state.worth
    _, _, length = find(net, state, scratch, request, pushing.price, np.inf, -1)
    if length < 0:
        if net.rate[topic] <= 0:
            # it needs no room: there is no way at all
            return count
        pushing.weight[request] += 1.0
        _weigh(net, state, pushing)
        for link in range(len(net.cost)):
            weight = _push_out(net, state, pushing, topic, link, count, True)[1]
            pushing.price[link] += (push * weight - noise * math.log(1.0 - uniform(seed))) / net.rate[topic]
        weight, _, length = find(net, state, scratch, request, pushing.price, 0.0, -1)
        if length < 0 or weight == np.inf:
            return count
        for step in range(length):
            count = _push_out(net, state, pushing, topic, scratch.way[step] >> 1, count, False)[0]
    for step in range(length):
        if state.room[scratch.way[step] >> 1] < net.rate[topic]:
            return count
    join(net, state, scratch, request, length)
    pushing.unmet[place] = pushing.unmet[count - 1]
    return count - 1


@compiled
def _weigh(net: Net, state: State, pushing: EjectionScratch) -> None:
    """What it would weigh to close each link to each topic."""
    pushing.burden[:] = 0.0
    for request in range(len(state.served)):
        if state.served[request]:
            topic = net.request_topic[request]
            node = net.request_node[request]
            while node != net.source[topic]:
                arc = state.entering[node, topic]
                pushing.burden[arc >> 1, topic] += pushing.weight[request]
                node = net.tail[arc]


@compiled
def _push_out(
    net: Net, state: State, pushing: EjectionScratch, topic: int, link: int, count: int, asks: bool
) -> tuple[int, float]:
    """Let others leave a link until a topic finds room: how many are unmet then, and the weight of those who left.

    Whoever weighs least per unit of room leaves first.  If this only ``asks``, nobody leaves.
    """
    missing = net.rate[topic] - state.room[link]
    if missing <= 0:
        return count, 0.0
    total = 0.0
    for other in range(len(net.source)):
        # whoever takes no room makes none
        may_go = other != topic and net.rate[other] > 0
        pushing.left[other] = pushing.burden[link, other] if may_go else 0.0
    while missing > 0:
        lightest = -1
        least = np.inf
        for other in range(len(net.source)):
            if pushing.left[other] > 0:
                share = pushing.left[other] / min(net.rate[other], missing)
                if share < least:
                    least = share
                    lightest = other
        if lightest < 0:
            return count, np.inf
        total += pushing.left[lightest]
        pushing.left[lightest] = 0.0
        if asks:
            missing -= net.rate[lightest]
        else:
            count = _close(net, state, pushing, lightest, link, count)
            missing = net.rate[topic] - state.room[link]
    return count, total


@compiled
def _close(net: Net, state: State, pushing: EjectionScratch, topic: int, link: int, count: int) -> int:
    """Close a link to a topic; how many are unmet then."""
    for request in range(net.request_start[topic], net.request_start[topic + 1]):
        if not state.served[request]:
            continue
        node = net.request_node[request]
        while node != net.source[topic] and state.entering[node, topic] >> 1 != link:
            node = net.tail[state.entering[node, topic]]
        if node != net.source[topic]:
            leave(net, state, request)
            pushing.unmet[count] = request
            count += 1
    return count


@compiled
def _stir(
    net: Net, state: State, scratch: Scratch, seed: Seed, pushing: EjectionScratch, count: int, noise: float
) -> int:
    """Let a request take another way by chance; how many are unmet then."""
    request = below(seed, len(state.served))
    if not state.served[request]:
        return count
    leave(net, state, request)
    mean = noise * uniform(seed) / max(1e-9, net.rate[net.request_topic[request]])
    surcharge(seed, pushing.price, mean)
    _, _, length = find(net, state, scratch, request, pushing.price, np.inf, -1)
    if length < 0:
        # limits other than room may hide the way that it had
        pushing.unmet[count] = request
        return count + 1
    join(net, state, scratch, request, length)
    return count
