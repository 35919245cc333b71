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
from tieline.plan.loops.chance import below, uniform
from tieline.plan.loops.choose import around_link, around_node, around_topic, around_wronged, some_unmet
from tieline.plan.loops.values import Desk, Net, Search, State
from tieline.plan.loops.ways import find, join, leave, restore, way_cost, write_way

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
def anneal(
    net: Net, state: State, desk: Desk, search: Search, iterations: int, heat: float, regard: float, present: float
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
        if search.tries.sum() >= _PERIOD:
            _learn(search)
        choice = _draw(search)
        size = 2 + below(search.seed, len(search.chosen) // 2)
        if choice == 0:
            count = around_link(net, state, search, size)
        elif choice == 1:
            count = around_node(net, state, search, size)
        elif choice == 2:
            count = around_topic(net, state, search, size)
        elif choice == 3:
            count = around_wronged(net, state, desk, search, size, present)
        else:
            count = around_wronged(net, state, desk, search, min(size, 4), present)
        if unmet > 0:
            count = some_unmet(net, state, search, count, 1 + below(search.seed, 3))
        if count == 0:
            continue
        # ways are chosen at the full worth of capacity, at less or more of it, or at none
        strength = regard if below(search.seed, 2) else 2.0 * uniform(search.seed) * below(search.seed, 2)
        for link in range(len(guided)):
            guided[link] = strength * state.worth[link]
        rent = state.rent[0]
        before = take_off(net, state, search, count)
        # simulated annealing draws first what it would accept: whoever is beyond that need not be put back at all
        accepted = 1e-9 - heat * math.log(1.0 - uniform(search.seed)) if heat > 0 else 1e-9
        after = _put_back(net, state, desk, search, count, guided, before + accepted, regard, rent)
        change = after - before
        loss = change + regard * (state.rent[0] - rent)
        search.tries[choice] += 1
        if loss > accepted:
            undo(net, state, search, count)
            continue
        search.value[0] += change
        for place in range(count):
            request = search.chosen[place]
            unmet += int(not state.served[request]) - int(search.old_length[place] < 0)
            if not search.is_dirty[request]:
                search.is_dirty[request] = True
                search.dirty[search.dirty_count[0]] = request
                search.dirty_count[0] += 1
        if loss < -1e-9:
            search.merit[choice] += 2.0
        elif loss > 1e-9:
            search.merit[choice] += 0.2
        if search.value[0] < search.value[1] - 1e-9:
            search.merit[choice] += 8.0
            remember(net, state, search)


@compiled
def remember(net: Net, state: State, search: Search) -> None:
    """The plan that stands is the best: write down the ways that may differ."""
    search.value[1] = search.value[0]
    for place in range(search.dirty_count[0]):
        request = search.dirty[place]
        search.is_dirty[request] = False
        search.best_length[request] = write_way(net, state, request, search.best_way[request])
    search.dirty_count[0] = 0


@compiled
def recall(net: Net, state: State, search: Search) -> None:
    """Let the best plan stand again."""
    for place in range(search.dirty_count[0]):
        request = search.dirty[place]
        if state.served[request]:
            leave(net, state, request)
    for place in range(search.dirty_count[0]):
        request = search.dirty[place]
        search.is_dirty[request] = False
        if search.best_length[request] >= 0:
            restore(net, state, request, search.best_way[request], search.best_length[request])
    search.dirty_count[0] = 0
    search.value[0] = search.value[1]


@compiled
def take_off(net: Net, state: State, search: Search, count: int) -> float:
    """The chosen requests leave; what they and the unmet among them contributed to the objective."""
    total = 0.0
    for place in range(count):
        request = search.chosen[place]
        search.old_length[place] = write_way(net, state, request, search.old_way[place])
    for place in range(count):
        request = search.chosen[place]
        if state.served[request]:
            total += leave(net, state, request)
        else:
            total += net.price[net.request_topic[request]]
    return total


@compiled
def _put_back(
    net: Net,
    state: State,
    desk: Desk,
    search: Search,
    count: int,
    price: Floats,
    most: float,
    regard: float,
    rent: float,
) -> float:
    """The chosen requests return in some order; what they contribute then, or infinity as soon as it exceeds ``most``.

    What they pay for the worth of capacity counts as ``regard`` says, beyond what was paid before.
    """
    if count <= _REGRET and below(search.seed, 10) == 0:
        return _by_regret(net, state, desk, search, count, price)
    _arrange(net, search, count)
    least = 0.0
    for place in range(count):
        least += _least(net, search.chosen[place])
    total = 0.0
    for place in range(count):
        request = search.chosen[search.order[place]]
        least -= _least(net, request)
        total += _return(net, state, desk, request, price)
        if total + least + regard * (state.rent[0] - rent) > most:
            return np.inf
    return total


@compiled
def _least(net: Net, request: int) -> float:
    """What a request contributes at least."""
    topic = net.request_topic[request]
    return float(min(net.price[topic], net.to_target[net.row[request], net.source[topic]]))


@compiled
def _return(net: Net, state: State, desk: Desk, request: int, price: Floats) -> float:
    """Serve a request over the cheapest way that is free, if that is worth it; what it contributes."""
    unmet = net.price[net.request_topic[request]]
    _, cost, length = find(net, state, desk, request, price, np.inf, -1)
    if length < 0 or cost > unmet:
        return float(unmet)
    join(net, state, desk, request, length)
    return cost


@compiled
def _arrange(net: Net, search: Search, count: int) -> None:
    """The order in which the chosen return: by chance, as chosen, or the dearest and heaviest first."""
    mode = below(search.seed, 3)
    for place in range(count):
        search.order[place] = place
    if mode == 0:
        for place in range(count - 1, 0, -1):
            other = below(search.seed, place + 1)
            search.order[place], search.order[other] = search.order[other], search.order[place]
    elif mode == 1:
        for place in range(1, count):
            mover = search.order[place]
            topic = net.request_topic[search.chosen[mover]]
            hole = place
            while hole > 0:
                other = net.request_topic[search.chosen[search.order[hole - 1]]]
                if net.price[other] * net.rate[other] >= net.price[topic] * net.rate[topic]:
                    break
                search.order[hole] = search.order[hole - 1]
                hole -= 1
            search.order[hole] = mover


@compiled
def _by_regret(net: Net, state: State, desk: Desk, search: Search, count: int, price: Floats) -> float:
    """Whoever would lose most if the scarcest link of its way were gone returns first, again and again."""
    total = 0.0
    for place in range(count):
        search.order[place] = place
    left = count
    while left > 0:
        pick = 0
        most = -np.inf
        for place in range(left):
            request = search.chosen[search.order[place]]
            unmet = net.price[net.request_topic[request]]
            weight, _, length = find(net, state, desk, request, price, np.inf, -1)
            if length < 0:
                continue
            regret = 0.0
            if length > 0:
                scarce = -1
                least = np.inf
                for step in range(length):
                    link = desk.way[step] >> 1
                    if state.room[link] < least:
                        least = state.room[link]
                        scarce = link
                other, _, second = find(net, state, desk, request, price, np.inf, scarce)
                regret = (other if second >= 0 else unmet) - weight
            if regret > most:
                most = regret
                pick = place
        chosen = search.order[pick]
        left -= 1
        search.order[pick] = search.order[left]
        total += _return(net, state, desk, search.chosen[chosen], price)
    return total


@compiled
def undo(net: Net, state: State, search: Search, count: int) -> None:
    """Put the old ways back."""
    for place in range(count):
        if state.served[search.chosen[place]]:
            leave(net, state, search.chosen[place])
    for place in range(count):
        if search.old_length[place] >= 0:
            restore(net, state, search.chosen[place], search.old_way[place], search.old_length[place])


@compiled
def _draw(search: Search) -> int:
    """A way of choosing, drawn by favour."""
    total = 0.0
    for choice in range(CHOICES):
        total += search.favour[choice]
    mark = uniform(search.seed) * total
    for choice in range(CHOICES - 1):
        mark -= search.favour[choice]
        if mark < 0:
            return choice
    return CHOICES - 1


@compiled
def _learn(search: Search) -> None:
    """Let favour follow merit per try; nobody falls out of favour altogether."""
    for choice in range(CHOICES):
        if search.tries[choice] > 0:
            earned = search.merit[choice] / search.tries[choice]
            search.favour[choice] = max(0.05, 0.7 * search.favour[choice] + 0.3 * earned)
        search.merit[choice] = 0.0
        search.tries[choice] = 0
