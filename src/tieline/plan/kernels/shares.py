"""A lower bound at network scale: capacity has prices, and groups of a topic's requests pay their shares of them.

Theory of operation
-------------------
At prices λ a topic pays λ a once for a link, however many of its subscribers are served through it.  Requests are in
small groups, most topics in one: the cheapest tree of a group is exact (:mod:`tieline.plan.kernels.steiner`).
Where a topic has several groups, they split λ a among them in any way: the sum of their trees, less Σ λ cap, is a lower
bound of the objective.  Shares that follow use raise it.  They are kept per topic for the links that one of its groups
ever used; on any other link they are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.kernels.network import Net, Small
from tieline.plan.kernels.shortest import cheapest_ways
from tieline.plan.kernels.steiner import SteinerTables, cheapest_tree, follow_tree, size_of

#: Links per topic whose shares are kept.
_SLOTS = 384


class Shares(NamedTuple):
    """Who pays how much of which link."""

    #: Groups of topic k: ``group_start[k]`` to ``group_start[k + 1]``; the requests of group g:
    #: ``request[request_start[g]:request_start[g + 1]]``.
    group_start: Ints
    request_start: Ints
    request: Ints
    #: How far every node is from each source through the empty network, and each topic's row of that.
    ahead: Floats
    row: Ints
    #: Per topic: the links that have shares of their own, and their number.
    link: Small
    length: Ints
    #: Per group and place in its topic's list.
    share: Floats
    #: Per link: its place in the list of the topic at hand, valid if the stamp is that topic's.
    place: Ints
    stamp: Ints
    #: Per link: the run of the last topic, and of the last group, whose tree used it.
    used: Ints
    used_by_group: Ints
    run: Ints
    #: The links of the topic at hand's trees, group after group, and where each group's begin.
    way: Small
    begin: Ints
    users: Ints


def equal_shares(arrays: Arrays, groups: Sequence[tuple[int, Ints]]) -> Shares:
    """Equal shares for all; groups are topics and requests, in the order of the topics."""
    slots = min(_SLOTS, max(1, arrays.links))
    per_topic = np.bincount([topic for topic, _ in groups], minlength=arrays.topics)
    sources, row = np.unique(arrays.source, return_inverse=True)
    ahead = np.empty((len(sources), arrays.nodes))
    # links have no direction: the way from a source is as long as the way to it
    cheapest_ways(arrays.in_start, arrays.in_arc, arrays.tail, arrays.cost, arrays.is_broker, sources, ahead)
    is_split = bool((per_topic > 1).any())
    widest = int(np.diff(arrays.request_start).max(initial=1))
    return Shares(
        group_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(per_topic)]),
        request_start=np.cumsum([0, *(len(requests) for _, requests in groups)]),
        request=np.concatenate([np.zeros(0, np.int64), *(requests for _, requests in groups)]),
        ahead=ahead,
        row=row.reshape(-1).astype(np.int64),
        link=np.empty((arrays.topics, slots if is_split else 1), np.int32),
        length=np.zeros(arrays.topics, np.int64),
        share=np.empty((len(groups), slots if is_split else 1)),
        place=np.empty(arrays.links, np.int64),
        stamp=np.zeros(arrays.links, np.int64),
        used=np.zeros(arrays.links, np.int64),
        used_by_group=np.zeros(arrays.links, np.int64),
        run=np.zeros(2, np.int64),
        way=np.empty(widest * (int(arrays.is_broker.sum()) + 2), np.int32),
        begin=np.zeros(int(per_topic.max(initial=0)) + 1, np.int64),
        users=np.zeros(slots, np.int64),
    )


@compiled
def evaluate(
    net: Net, steiner: SteinerTables, shares: Shares, price: Floats, pace: float, load: Floats, paid: Floats
) -> float:
    """What all groups pay at least, without the -Σ λ cap.

    ``load`` becomes what topics load on links, each once, and ``paid`` what each request pays.  Afterwards shares move
    towards those who used a link, by ``pace``.
    """
    load.fill(0.0)
    total = 0.0
    for topic in range(len(net.source)):
        first = shares.group_start[topic]
        groups = shares.group_start[topic + 1] - first
        shares.run[0] += 1
        for place in range(shares.length[topic]):
            link = shares.link[topic, place]
            shares.stamp[link] = shares.run[0]
            shares.place[link] = place
        filled = 0
        for offset in range(groups):
            group = first + offset
            requests = shares.request[shares.request_start[group] : shares.request_start[group + 1]]
            _set_tolls(net, steiner, shares, topic, group, price, 1.0 / groups)
            value, served = cheapest_tree(net, steiner, topic, requests, shares.ahead[shares.row[topic]])
            total += value
            shares.begin[offset] = filled
            filled = _book(net, steiner, shares, topic, requests, served, filled, load, paid)
        if groups > 1 and pace > 0:
            shares.begin[groups] = filled
            _follow_use(shares, topic, first, groups, price, pace)
    return total


@compiled
def _set_tolls(
    net: Net, steiner: SteinerTables, shares: Shares, topic: int, group: int, price: Floats, equal: float
) -> None:
    """What a group pays once for each link."""
    rate = net.rate[topic]
    for link in range(len(price)):
        steiner.toll[link] = rate * price[link] * equal
    for place in range(shares.length[topic]):
        link = shares.link[topic, place]
        steiner.toll[link] = rate * price[link] * shares.share[group, place]


@compiled
def _book(  # numba passes arrays, not objects
    net: Net,
    steiner: SteinerTables,
    shares: Shares,
    topic: int,
    requests: Ints,
    served: int,
    filled: int,
    load: Floats,
    paid: Floats,
) -> int:
    """Enter a group's tree: what it loads, what each request pays, and its links; where the list of those ends."""
    for place in range(len(requests)):
        paid[requests[place]] = 0.0 if served >> place & 1 else net.price[topic]
    shares.run[1] += 1
    for step in range(follow_tree(net, steiner, topic, served)):
        link = steiner.arc[step] >> 1
        bits = steiner.bits[step]
        part = net.cost[link] + steiner.toll[link] / size_of(bits)
        for place in range(len(requests)):
            if bits >> place & 1:
                paid[requests[place]] += part
        if shares.used_by_group[link] != shares.run[1]:
            shares.used_by_group[link] = shares.run[1]
            shares.way[filled] = link
            filled += 1
        if shares.used[link] != shares.run[0]:
            shares.used[link] = shares.run[0]
            load[link] += net.rate[topic]
    return filled


@compiled
def _follow_use(shares: Shares, topic: int, first: int, groups: int, price: Floats, pace: float) -> None:
    """Let groups that used a link pay more of it and the others less; shares still add up to 1."""
    slots = shares.link.shape[1]
    for step in range(shares.begin[groups]):
        link = shares.way[step]
        if price[link] <= 0:
            continue
        if shares.stamp[link] != shares.run[0]:
            place = shares.length[topic]
            if place == slots:
                continue
            shares.length[topic] = place + 1
            shares.link[topic, place] = link
            shares.stamp[link] = shares.run[0]
            shares.place[link] = place
            shares.share[first : first + groups, place] = 1.0 / groups
        shares.users[shares.place[link]] += 1
    for place in range(shares.length[topic]):
        if shares.users[place] > 0:
            for offset in range(groups):
                shares.share[first + offset, place] *= 1.0 - pace
    for offset in range(groups):
        for step in range(shares.begin[offset], shares.begin[offset + 1]):
            link = shares.way[step]
            if price[link] > 0 and shares.stamp[link] == shares.run[0]:
                place = shares.place[link]
                shares.share[first + offset, place] += pace / shares.users[place]
    shares.users.fill(0)
