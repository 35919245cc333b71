"""What the loops work on: the network as it is, the trees as they stand, and a desk to work at.

All of them are tuples of arrays, which numba passes as they are.  The trees are dense: a row per node and a column
per topic, so that all topics that enter a node lie side by side.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tieline.compiling import compiled
from tieline.plan.arrays import TOLERANCE, Arrays, Flags, Floats, Ints
from tieline.plan.loops.chance import Seed, seeded
from tieline.plan.loops.heap import pop, push

Small = npt.NDArray[np.int32]

#: More connections than any broker has.
BOUNDLESS: Final = 1 << 40


class Net(NamedTuple):
    """The instance; nothing in it changes."""

    #: Arcs that leave node v: ``out_arc[out_start[v]:out_start[v + 1]]``.
    out_start: Ints
    out_arc: Ints
    tail: Ints
    head: Ints
    #: Per link: cost per subscriber, capacity with its tolerance, latency.
    cost: Floats
    capacity: Floats
    latency: Floats
    #: Per node.
    is_broker: Flags
    max_connections: Ints
    #: Per topic.
    source: Ints
    rate: Floats
    price: Floats
    max_latency: Floats
    request_start: Ints
    #: Per request.
    request_node: Ints
    request_topic: Ints
    #: Per request, the row of ``to_target`` that belongs to its node.
    row: Ints
    #: The cost of the cheapest way from each node to each wanted node, through the empty network.
    to_target: Floats
    #: A broker sends a topic on over at most so many links.
    n_max: int
    #: Whether any broker limits its connections.
    counts_connections: bool


class State(NamedTuple):
    """Trees as they stand."""

    #: Per node and topic: the arc by which the topic enters the node, or -1.
    entering: Small
    #: Per node and topic: how many served requests lie at or behind the node.
    through: Small
    #: Per request.
    served: Flags
    #: Per link: capacity that is left; negative where it is exceeded.
    room: Floats
    #: Per link: how many topics use it.
    users: Ints
    #: Per node: how many of its links are used.
    connections: Ints
    #: Per link: what a unit of its capacity is worth to others; and, as one number, what all topics pay at these
    #: prices.
    worth: Floats
    rent: Floats


class Desk(NamedTuple):
    """Room to work in, never cleared: what a run wrote has its number in ``seen``."""

    distance: Floats
    delay: Floats
    arrival: Ints
    #: Per node: the run that labelled it, and the run that expanded it.
    seen: Ints
    done: Ints
    #: Per node: over how many links the topic at hand leaves it.
    fanout: Ints
    #: The number of the run.
    run: Ints
    keys: Floats
    items: Ints
    #: The way last found, target first: arcs that the tree does not have yet.
    way: Ints


class Search(NamedTuple):
    """What the neighbourhood search remembers."""

    seed: Seed
    #: Requests taken off together, the ways they had (target first), and the length of those; -1 where there was none.
    chosen: Ints
    old_way: Small
    old_length: Ints
    #: The order in which they return.
    order: Ints
    #: Per request: its way in the best plan so far.
    best_way: Small
    best_length: Ints
    #: Per request: whether its way may differ from the best plan's; and a list of those, with its length.
    is_dirty: Flags
    dirty: Ints
    dirty_count: Ints
    #: The objective of the plan that stands, and of the best.
    value: Floats
    #: Per request: what it pays at least at the worth of capacity; more is what it is wronged by.
    due: Floats
    #: Per way of choosing: how often it is used, and its recent merits.
    favour: Floats
    merit: Floats
    tries: Ints


def net(arrays: Arrays) -> Net:
    """The network of an instance, with the cheapest ways to all that is wanted."""
    wanted, row = np.unique(arrays.request_node, return_inverse=True)
    to_target = np.empty((len(wanted), arrays.nodes))
    cheapest_ways(arrays.in_start, arrays.in_arc, arrays.tail, arrays.cost, arrays.is_broker, wanted, to_target)
    return Net(
        out_start=arrays.out_start,
        out_arc=arrays.out_arc,
        tail=arrays.tail,
        head=arrays.head,
        cost=arrays.cost,
        capacity=arrays.capacity * (1 + TOLERANCE),
        latency=arrays.latency,
        is_broker=arrays.is_broker,
        max_connections=np.where(arrays.max_connections < 0, BOUNDLESS, arrays.max_connections),
        source=arrays.source,
        rate=arrays.rate,
        price=arrays.price,
        max_latency=arrays.max_latency * (1 + TOLERANCE),
        request_start=arrays.request_start,
        request_node=arrays.request_node,
        request_topic=arrays.request_topic,
        row=row.reshape(-1).astype(np.int64),
        to_target=to_target,
        n_max=BOUNDLESS if arrays.instance.n_max is None else arrays.instance.n_max,
        counts_connections=bool((arrays.max_connections >= 0).any()),
    )


def desk(arrays: Arrays) -> Desk:
    """An empty desk for an instance."""
    nodes = arrays.nodes
    return Desk(
        distance=np.empty(nodes),
        delay=np.empty(nodes),
        arrival=np.empty(nodes, np.int64),
        seen=np.zeros(nodes, np.int64),
        done=np.zeros(nodes, np.int64),
        fanout=np.zeros(nodes, np.int64),
        run=np.zeros(1, np.int64),
        keys=np.empty(arrays.arcs + nodes + 1),
        items=np.empty(arrays.arcs + nodes + 1, np.int64),
        way=np.empty(nodes + 1, np.int64),
    )


def search(arrays: Arrays, *, seed: int, largest: int, choices: int) -> Search:
    """A memory in which nothing is known; up to ``largest`` requests are taken off together."""
    longest = int(arrays.is_broker.sum()) + 2
    return Search(
        seed=seeded(seed),
        chosen=np.empty(largest, np.int64),
        old_way=np.empty((largest, longest), np.int32),
        old_length=np.empty(largest, np.int64),
        order=np.empty(largest, np.int64),
        best_way=np.empty((arrays.requests, longest), np.int32),
        best_length=np.full(arrays.requests, -1, np.int64),
        is_dirty=np.ones(arrays.requests, np.bool_),
        dirty=np.arange(arrays.requests, dtype=np.int64),
        dirty_count=np.array([arrays.requests], np.int64),
        value=np.full(2, np.inf),
        due=np.zeros(arrays.requests),
        favour=np.ones(choices),
        merit=np.zeros(choices),
        tries=np.zeros(choices, np.int64),
    )


@compiled
def cheapest_ways(
    in_start: Ints, in_arc: Ints, tail: Ints, cost: Floats, is_broker: Flags, wanted: Ints, to_target: Floats
) -> None:
    """Dijkstra's algorithm backwards from every wanted node; only brokers pass anything on."""
    nodes = len(is_broker)
    keys = np.empty(len(tail) + nodes + 1)
    items = np.empty(len(tail) + nodes + 1, np.int64)
    for row in range(len(wanted)):
        distance = to_target[row]
        distance.fill(np.inf)
        target = wanted[row]
        distance[target] = 0.0
        size = push(keys, items, 0, 0.0, target)
        while size > 0:
            key = keys[0]
            node = pop(keys, items, size)
            size -= 1
            if key > distance[node] or not (is_broker[node] or node == target):
                continue
            for position in range(in_start[node], in_start[node + 1]):
                arc = in_arc[position]
                before = tail[arc]
                reached = key + cost[arc >> 1]
                if reached < distance[before]:
                    distance[before] = reached
                    size = push(keys, items, size, reached, before)
