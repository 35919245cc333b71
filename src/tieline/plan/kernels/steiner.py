"""The cheapest tree for a few requests of one topic, when a link costs something per request and something once.

Theory of operation
-------------------
This is the algorithm of Dreyfus and Wagner over sets of requests: what serves a set from a node either splits there
into two smaller sets, or moves on along one arc.  Searches run backwards, from the requests to the source, and are
guided by how far the source is at least (A*).  They end at the source.  Nodes beyond that are of no use for larger sets
either: whoever splits there does better to be served from the source apart.  So every set has a short list of nodes,
and all work is in these lists.  A set that costs more than leaving it unmet is given up.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tieline.compiling import compiled
from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.kernels.heap import pop, push
from tieline.plan.kernels.network import Net, Small

#: In the table of choices: nothing chosen; otherwise an arc, or a part of the set as -2 - part.
_NOTHING: Final = -1


class SteinerTables(NamedTuple):
    """Tables with a row per set and a column per node, never cleared: what a run wrote has its number in ``seen``."""

    cost: Floats
    choice: Small
    seen: Small
    done: Small
    #: Per set: the nodes it was settled at, and their number.
    node: Small
    settled: Ints
    run: Ints
    keys: Floats
    items: Ints
    #: Per link: what the topic at hand pays once for it.
    toll: Floats
    #: The tree last found, as sets that travel over arcs, and the number of those.
    arc: Ints
    bits: Ints
    #: Sets and nodes that are still to be followed.
    open_set: Ints
    open_node: Ints


def steiner_tables(arrays: Arrays, largest: int) -> SteinerTables:
    """Empty tables for sets of up to so many requests."""
    sets = 1 << largest
    longest = largest * (int(arrays.is_broker.sum()) + 2)
    return SteinerTables(
        cost=np.empty((sets, arrays.nodes)),
        choice=np.empty((sets, arrays.nodes), np.int32),
        seen=np.zeros((sets, arrays.nodes), np.int32),
        done=np.zeros((sets, arrays.nodes), np.int32),
        node=np.empty((sets, arrays.nodes), np.int32),
        settled=np.zeros(sets, np.int64),
        run=np.zeros(1, np.int64),
        keys=np.empty(arrays.arcs + sets * arrays.nodes + 1),
        items=np.empty(arrays.arcs + sets * arrays.nodes + 1, np.int64),
        toll=np.zeros(arrays.links),
        arc=np.empty(longest, np.int64),
        bits=np.empty(longest, np.int64),
        open_set=np.empty(2 * largest + 2, np.int64),
        open_node=np.empty(2 * largest + 2, np.int64),
    )


@compiled
def size_of(chosen: int) -> int:
    """How many are in a set."""
    count = 0
    while chosen:
        count += chosen & 1
        chosen >>= 1
    return count


@compiled
def cheapest_tree(net: Net, steiner: SteinerTables, topic: int, requests: Ints, ahead: Floats) -> tuple[float, int]:
    """The least cost of serving or leaving out some requests of a topic, and the set of those served, as bits.

    ``steiner.toll`` is what the topic pays once per link; ``ahead`` is how far each node is from its source.
    """
    steiner.run[0] += 1
    run = steiner.run[0]
    source = net.source[topic]
    price = net.price[topic]
    count = len(requests)
    best = price * count
    best_set = 0
    for chosen in range(1, 1 << count):
        members = size_of(chosen)
        size = _label_set(net, steiner, topic, requests, ahead, chosen, members)
        _move_set(net, steiner, topic, ahead, chosen, members, size)
        if steiner.done[chosen, source] == run:
            total = steiner.cost[chosen, source] + price * (count - members)
            # equal values: rather serve
            if total < best or (total == best and best_set == 0):
                best = total
                best_set = chosen
    return best, best_set


@compiled
def _label_set(
    net: Net, steiner: SteinerTables, topic: int, requests: Ints, ahead: Floats, chosen: int, members: int
) -> int:
    """Label the nodes at which a set may split, or the only request's own; the size of the heap."""
    run = steiner.run[0]
    size = 0
    steiner.settled[chosen] = 0
    if members == 1:
        place = 0
        while chosen >> place != 1:
            place += 1
        target = net.request_node[requests[place]]
        steiner.seen[chosen, target] = run
        steiner.cost[chosen, target] = 0.0
        steiner.choice[chosen, target] = _NOTHING
        return push(steiner.keys, steiner.items, 0, ahead[target], target)
    source = net.source[topic]
    part = (chosen - 1) & chosen
    while part > chosen ^ part:
        one = part
        other = chosen ^ part
        if steiner.settled[one] > steiner.settled[other]:
            one, other = other, one
        for place in range(steiner.settled[one]):
            node = steiner.node[one, place]
            if steiner.done[other, node] != run or not (net.is_broker[node] or node == source):
                continue
            together = steiner.cost[one, node] + steiner.cost[other, node]
            if steiner.seen[chosen, node] != run or together < steiner.cost[chosen, node]:
                steiner.seen[chosen, node] = run
                steiner.cost[chosen, node] = together
                steiner.choice[chosen, node] = -2 - part
                size = push(steiner.keys, steiner.items, size, together + members * ahead[node], node)
        part = (part - 1) & chosen
    return size


@compiled
def _move_set(
    net: Net, steiner: SteinerTables, topic: int, ahead: Floats, chosen: int, members: int, size: int
) -> None:
    """Move a set from the labelled nodes towards the source."""
    run = steiner.run[0]
    source = net.source[topic]
    rate = net.rate[topic]
    limit = members * net.price[topic]
    while size > 0:
        if steiner.keys[0] > limit:
            return
        node = pop(steiner.keys, steiner.items, size)
        size -= 1
        if steiner.done[chosen, node] == run:
            continue
        steiner.done[chosen, node] = run
        steiner.node[chosen, steiner.settled[chosen]] = node
        steiner.settled[chosen] += 1
        if node == source:
            return
        here = steiner.cost[chosen, node]
        for position in range(net.out_start[node], net.out_start[node + 1]):
            # both directions of a link cost the same: the arc that enters this node is the other one
            arc = net.out_arc[position] ^ 1
            before = net.tail[arc]
            if steiner.done[chosen, before] == run or not (net.is_broker[before] or before == source):
                continue
            link = arc >> 1
            if rate > net.capacity[link]:
                continue
            reached = here + members * net.cost[link] + steiner.toll[link]
            if steiner.seen[chosen, before] == run and reached >= steiner.cost[chosen, before]:
                continue
            key = reached + members * ahead[before]
            if key > limit:
                continue
            steiner.seen[chosen, before] = run
            steiner.cost[chosen, before] = reached
            steiner.choice[chosen, before] = arc
            size = push(steiner.keys, steiner.items, size, key, before)


@compiled
def follow_tree(net: Net, steiner: SteinerTables, topic: int, served: int) -> int:
    """Follow the cheapest tree: which set travels over which arc, in ``steiner.arc`` and ``bits``; their number."""
    count = 0
    left = 0
    if served > 0:
        steiner.open_set[0] = served
        steiner.open_node[0] = net.source[topic]
        left = 1
    while left > 0:
        left -= 1
        chosen = steiner.open_set[left]
        node = steiner.open_node[left]
        pick = steiner.choice[chosen, node]
        while pick > _NOTHING:
            steiner.arc[count] = pick
            steiner.bits[count] = chosen
            count += 1
            node = net.head[pick]
            pick = steiner.choice[chosen, node]
        if pick < _NOTHING:
            part = -2 - pick
            steiner.open_set[left] = part
            steiner.open_node[left] = node
            steiner.open_set[left + 1] = chosen ^ part
            steiner.open_node[left + 1] = node
            left += 2
    return count
