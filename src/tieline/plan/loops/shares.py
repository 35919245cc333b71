"""A lower bound at network scale: capacity has prices, and every request of a topic pays its share of them.

Theory of operation
-------------------
At prices λ a topic pays λ a once for a link, however many of its subscribers are served through it.  Split that among
the subscribers in any way: each then has a shortest path of its own, and the sum of those, less Σ λ cap, is a lower
bound of the objective.  Shares that follow use bring it towards the relaxation of the disaggregated formulation.
Shares are kept per topic for the links that one of its requests ever used; on any other link they are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieline.core.compiling import compiled
from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.loops.heap import pop, push
from tieline.plan.loops.values import Desk, Net, Small

#: Links per topic whose shares are kept.
_SLOTS = 384


class Ledger(NamedTuple):
    """Who pays how much of which link."""

    #: Per topic: the links that have shares of their own, and their number.
    link: Small
    length: Ints
    #: Per request and place in its topic's list.
    share: Floats
    #: Per link: its place in the list of the topic at hand, valid if the stamp is that topic's.
    place: Ints
    stamp: Ints
    #: Per link: the run of the last topic whose ways used it.
    used: Ints
    run: Ints
    #: The ways of the topic at hand, one row per request, and their lengths.
    way: Small
    steps: Ints
    users: Ints


def ledger(arrays: Arrays) -> Ledger:
    """Equal shares for all."""
    slots = min(_SLOTS, max(1, arrays.links))
    widest = int(np.diff(arrays.request_start).max(initial=1))
    return Ledger(
        link=np.empty((arrays.topics, slots), np.int32),
        length=np.zeros(arrays.topics, np.int64),
        share=np.empty((arrays.requests, slots)),
        place=np.empty(arrays.links, np.int64),
        stamp=np.zeros(arrays.links, np.int64),
        used=np.zeros(arrays.links, np.int64),
        run=np.zeros(1, np.int64),
        way=np.empty((widest, int(arrays.is_broker.sum()) + 2), np.int32),
        steps=np.empty(widest, np.int64),
        users=np.zeros(slots, np.int64),
    )


@compiled
def evaluate(net: Net, desk: Desk, ledger: Ledger, price: Floats, pace: float, load: Floats, paid: Floats) -> float:
    """What all requests pay at least, without the -Σ λ cap.

    ``load`` becomes what topics load on links, each once, and ``paid`` what each request pays.  Afterwards shares move
    towards those who used a link, by ``pace``.
    """
    load.fill(0.0)
    total = 0.0
    for topic in range(len(net.source)):
        first = net.request_start[topic]
        wanted = net.request_start[topic + 1] - first
        if wanted == 0:
            continue
        ledger.run[0] += 1
        for place in range(ledger.length[topic]):
            link = ledger.link[topic, place]
            ledger.stamp[link] = ledger.run[0]
            ledger.place[link] = place
        for offset in range(wanted):
            request = first + offset
            least = _cheapest(net, desk, ledger, request, price, 1.0 / wanted)
            paid[request] = min(least, net.price[topic])
            ledger.steps[offset] = 0
            total += paid[request]
            if least > net.price[topic]:
                continue
            node = net.request_node[request]
            while node != net.source[topic]:
                arc = desk.arrival[node]
                link = arc >> 1
                ledger.way[offset, ledger.steps[offset]] = link
                ledger.steps[offset] += 1
                if ledger.used[link] != ledger.run[0]:
                    ledger.used[link] = ledger.run[0]
                    load[link] += net.rate[topic]
                node = net.tail[arc]
        if wanted > 1 and pace > 0:
            _follow_use(ledger, topic, first, wanted, price, pace)
    return total


@compiled
def _share(ledger: Ledger, request: int, link: int, equal: float) -> float:
    if ledger.stamp[link] == ledger.run[0]:
        return float(ledger.share[request, ledger.place[link]])
    return equal


@compiled
def _cheapest(net: Net, desk: Desk, ledger: Ledger, request: int, price: Floats, equal: float) -> float:
    """The cheapest way of one request, guided by the ways through the empty network; its arcs are on the desk."""
    topic = net.request_topic[request]
    target = net.request_node[request]
    source = net.source[topic]
    rate = net.rate[topic]
    guide = net.to_target[net.row[request]]
    desk.run[0] += 1
    run = desk.run[0]
    desk.seen[source] = run
    desk.distance[source] = 0.0
    size = push(desk.keys, desk.items, 0, guide[source], source)
    limit = net.price[topic]
    while size > 0:
        if desk.keys[0] > limit:
            # nobody pays more than it costs to stay unmet
            return np.inf
        node = pop(desk.keys, desk.items, size)
        size -= 1
        if node == target:
            return float(desk.distance[target])
        if desk.done[node] == run:
            continue
        desk.done[node] = run
        here = desk.distance[node]
        for position in range(net.out_start[node], net.out_start[node + 1]):
            arc = net.out_arc[position]
            there = net.head[arc]
            if desk.done[there] == run or not (net.is_broker[there] or there == target):
                continue
            link = arc >> 1
            if rate > net.capacity[link] or guide[there] == np.inf:
                continue
            reached = here + net.cost[link]
            if price[link] > 0:
                reached += rate * price[link] * _share(ledger, request, link, equal)
            if desk.seen[there] == run and reached >= desk.distance[there]:
                continue
            desk.seen[there] = run
            desk.distance[there] = reached
            desk.arrival[there] = arc
            size = push(desk.keys, desk.items, size, reached + guide[there], there)
    return np.inf


@compiled
def _follow_use(ledger: Ledger, topic: int, first: int, wanted: int, price: Floats, pace: float) -> None:
    """Let requests that used a link pay more of it and the others less; shares still add up to 1."""
    slots = ledger.link.shape[1]
    for offset in range(wanted):
        for step in range(ledger.steps[offset]):
            link = ledger.way[offset, step]
            if price[link] <= 0:
                continue
            if ledger.stamp[link] != ledger.run[0]:
                place = ledger.length[topic]
                if place == slots:
                    continue
                ledger.length[topic] = place + 1
                ledger.link[topic, place] = link
                ledger.stamp[link] = ledger.run[0]
                ledger.place[link] = place
                ledger.share[first : first + wanted, place] = 1.0 / wanted
            ledger.users[ledger.place[link]] += 1
    for place in range(ledger.length[topic]):
        if ledger.users[place] > 0:
            for offset in range(wanted):
                ledger.share[first + offset, place] *= 1.0 - pace
    for offset in range(wanted):
        for step in range(ledger.steps[offset]):
            link = ledger.way[offset, step]
            if price[link] > 0 and ledger.stamp[link] == ledger.run[0]:
                place = ledger.place[link]
                ledger.share[first + offset, place] += pace / ledger.users[place]
    ledger.users.fill(0)
