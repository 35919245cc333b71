"""The large neighbourhood search: some requests leave, return one by one, and stay if that was good.

Theory of operation
-------------------
Requests that leave free their links.  They return in some order; each takes the cheapest way that is free at that
moment.  The order is by chance, as chosen, the heaviest first, or by regret: whoever loses most by waiting goes
first.  A worse plan is accepted with the probability of simulated annealing, otherwise the old ways are put back.
Which way of choosing is used is drawn by its merits.  An unmet request costs its price, so that what counts first,
counts first here too.

At first capacity has its worth, the price that the lower bound puts on it: a topic that leaves a full link gains,
though its own way gets dearer, because others need the link more.  Later only the objective counts.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Floats
from tieline.plan.kernels.chance import below, uniform
from tieline.plan.kernels.memory import SearchMemory, remember, take_off, undo
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.state import State, way_cost
from tieline.plan.kernels.victims import around_link, around_node, around_topic, around_wronged, some_unmet
from tieline.plan.kernels.ways import Scratch, find, join

#: Ways of choosing: link, node, topic, wronged, and wronged with a small number.
CHOICES: Final = 5
#: Iterations after which favour follows merit.
_PERIOD: Final = 200
#: Regret looks at two ways for everybody: only for few.
_REGRET: Final = 6


@compiled
def value_of(net: Net, state: State) -> float:
    """The objective of the plan that stands."""
    total = 0.0
    for request in range(len(net.request_node)):
        topic = net.request_topic[request]
        total += way_cost(net, state, request) if state.served[request] else net.price[topic]
    return total


@compiled
def anneal(  # numba passes arrays, not objects
    net: Net,
    state: State,
    scratch: Scratch,
    memory: SearchMemory,
    iterations: int,
    heat: float,
    regard: float,
    present: float,
) -> None:
    """Search for some iterations at one temperature.

    ``regard`` from 0 to 1 is how much the worth of capacity counts in accepting a plan; ``present`` guides the choice
    of victims.
    """
    guided = np.zeros(len(net.cost))
    unmet = 0
    for request in range(len(state.served)):
        if not state.served[request]:
            unmet += 1
    for _ in range(iterations):
        if memory.tries.sum() >= _PERIOD:
            _learn(memory)
        choice = _draw(memory)
        size = 2 + below(memory.seed, len(memory.chosen) // 2)
        if choice == 0:
            count = around_link(net, state, memory, size)
        elif choice == 1:
            count = around_node(net, state, memory, size)
        elif choice == 2:
            count = around_topic(net, state, memory, size)
        elif choice == 3:
            count = around_wronged(net, state, scratch, memory, size, present)
        else:
            count = around_wronged(net, state, scratch, memory, min(size, 4), present)
        if unmet > 0:
            count = some_unmet(net, state, memory, count, 1 + below(memory.seed, 3))
        if count == 0:
            continue
        # ways are chosen at the full worth of capacity, at less or more of it, or at none
        strength = regard if below(memory.seed, 2) else 2.0 * uniform(memory.seed) * below(memory.seed, 2)
        for link in range(len(guided)):
            guided[link] = strength * state.worth[link]
        rent = state.rent[0]
        before = take_off(net, state, memory, count)
        # simulated annealing draws first what it would accept: whoever is beyond that need not be put back at all
        accepted = 1e-9 - heat * math.log(1.0 - uniform(memory.seed)) if heat > 0 else 1e-9
        after = _put_back(net, state, scratch, memory, count, guided, before + accepted, regard, rent)
        change = after - before
        loss = change + regard * (state.rent[0] - rent)
        memory.tries[choice] += 1
        if loss > accepted:
            undo(net, state, memory, count)
            continue
        memory.value[0] += change
        for place in range(count):
            request = memory.chosen[place]
            unmet += int(not state.served[request]) - int(memory.old_length[place] < 0)
            if not memory.is_dirty[request]:
                memory.is_dirty[request] = True
                memory.dirty[memory.dirty_count[0]] = request
                memory.dirty_count[0] += 1
        if loss < -1e-9:
            memory.merit[choice] += 2.0
        elif loss > 1e-9:
            memory.merit[choice] += 0.2
        if memory.value[0] < memory.value[1] - 1e-9:
            memory.merit[choice] += 8.0
            remember(net, state, memory)


@compiled
def _put_back(  # numba passes arrays, not objects
    net: Net,
    state: State,
    scratch: Scratch,
    memory: SearchMemory,
    count: int,
    price: Floats,
    most: float,
    regard: float,
    rent: float,
) -> float:
    """The chosen requests return in some order; what they contribute then, or infinity as soon as it exceeds ``most``.

    What they pay for the worth of capacity counts as ``regard`` says, beyond what was paid before.
    """
    if count <= _REGRET and below(memory.seed, 10) == 0:
        return _by_regret(net, state, scratch, memory, count, price)
    _arrange(net, memory, count)
    least = 0.0
    for place in range(count):
        least += _least(net, memory.chosen[place])
    total = 0.0
    for place in range(count):
        request = memory.chosen[memory.order[place]]
        least -= _least(net, request)
        total += _return(net, state, scratch, request, price)
        if total + least + regard * (state.rent[0] - rent) > most:
            return np.inf
    return total


@compiled
def _least(net: Net, request: int) -> float:
    """What a request contributes at least."""
    topic = net.request_topic[request]
    return float(min(net.price[topic], net.to_target[net.row[request], net.source[topic]]))


@compiled
def _return(net: Net, state: State, scratch: Scratch, request: int, price: Floats) -> float:
    """Serve a request over the cheapest way that is free, if that is worth it; what it contributes."""
    unmet = net.price[net.request_topic[request]]
    _, cost, length = find(net, state, scratch, request, price, np.inf, -1)
    if length < 0 or cost > unmet:
        return float(unmet)
    join(net, state, scratch, request, length)
    return cost


@compiled
def _arrange(net: Net, memory: SearchMemory, count: int) -> None:
    """The order in which the chosen return: by chance, as chosen, or the dearest and heaviest first."""
    mode = below(memory.seed, 3)
    for place in range(count):
        memory.order[place] = place
    if mode == 0:
        for place in range(count - 1, 0, -1):
            other = below(memory.seed, place + 1)
            memory.order[place], memory.order[other] = memory.order[other], memory.order[place]
    elif mode == 1:
        for place in range(1, count):
            mover = memory.order[place]
            topic = net.request_topic[memory.chosen[mover]]
            hole = place
            while hole > 0:
                other = net.request_topic[memory.chosen[memory.order[hole - 1]]]
                if net.price[other] * net.rate[other] >= net.price[topic] * net.rate[topic]:
                    break
                memory.order[hole] = memory.order[hole - 1]
                hole -= 1
            memory.order[hole] = mover


@compiled
def _by_regret(net: Net, state: State, scratch: Scratch, memory: SearchMemory, count: int, price: Floats) -> float:
    """Whoever would lose most if the scarcest link of its way were gone returns first, again and again."""
    total = 0.0
    for place in range(count):
        memory.order[place] = place
    left = count
    while left > 0:
        pick = 0
        most = -np.inf
        for place in range(left):
            request = memory.chosen[memory.order[place]]
            unmet = net.price[net.request_topic[request]]
            weight, _, length = find(net, state, scratch, request, price, np.inf, -1)
            if length < 0:
                continue
            regret = 0.0
            if length > 0:
                scarce = -1
                least = np.inf
                for step in range(length):
                    link = scratch.way[step] >> 1
                    if state.room[link] < least:
                        least = state.room[link]
                        scarce = link
                other, _, second = find(net, state, scratch, request, price, np.inf, scarce)
                regret = (other if second >= 0 else unmet) - weight
            if regret > most:
                most = regret
                pick = place
        chosen = memory.order[pick]
        left -= 1
        memory.order[pick] = memory.order[left]
        total += _return(net, state, scratch, memory.chosen[chosen], price)
    return total


@compiled
def _draw(memory: SearchMemory) -> int:
    """A way of choosing, drawn by favour."""
    total = 0.0
    for choice in range(CHOICES):
        total += memory.favour[choice]
    mark = uniform(memory.seed) * total
    for choice in range(CHOICES - 1):
        mark -= memory.favour[choice]
        if mark < 0:
            return choice
    return CHOICES - 1


@compiled
def _learn(memory: SearchMemory) -> None:
    """Let favour follow merit per try; nobody falls out of favour altogether."""
    for choice in range(CHOICES):
        if memory.tries[choice] > 0:
            earned = memory.merit[choice] / memory.tries[choice]
            memory.favour[choice] = max(0.05, 0.7 * memory.favour[choice] + 0.3 * earned)
        memory.merit[choice] = 0.0
        memory.tries[choice] = 0
