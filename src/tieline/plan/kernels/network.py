"""The network that the kernels search: a tuple of arrays, which numba passes as it is, and nothing in it changes."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tieline.plan.arrays import TOLERANCE, Arrays, Flags, Floats, Ints
from tieline.plan.kernels.shortest import cheapest_ways

#: More connections than any broker has.
BOUNDLESS: Final = 1 << 40


Small = npt.NDArray[np.int32]


class Net(NamedTuple):
    """An instance as the kernels read it; none of them changes anything in it."""

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
