"""F1 disaggregated: the flow to every subscriber has variables of its own, so that x <= ζ needs no M at all.

The strongest relaxation of the formulations here, and the largest.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Ints
from tieline.plan.models.f1 import shared_capacity
from tieline.plan.models.frame import Frame, node_rows, own_pairs
from tieline.plan.models.program import Program


def f1d(arrays: Arrays, keep: Flags | None = None) -> Frame:
    """F1 with flows per request, on all pairs of topics and arcs or on those to keep."""
    program = Program()
    topic, arc = own_pairs(arrays, keep)
    use = program.add_columns(len(arc), upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    request, pair = _parts(arrays, topic, arc)
    flow = program.add_columns(len(pair), cost=arrays.cost[arc[pair] >> 1], upper=1.0)
    frame = Frame(arrays, program, topic, arc, flow, pair, use, unmet)
    unit_flow_arrives(frame, request)
    flow_needs_use(frame)
    shared_capacity(frame)
    return frame


def _parts(arrays: Arrays, topic: Ints, arc: Ints) -> tuple[Ints, Ints]:
    """Request and pair of every split flow: not into other subscribers' clients, and not out of the own subscriber."""
    pair_start = np.searchsorted(topic, np.arange(arrays.topics + 1))
    requests, pairs = [], []
    for request in range(arrays.requests):
        of_topic = arrays.request_topic[request]
        mine = np.arange(pair_start[of_topic], pair_start[of_topic + 1], dtype=np.int64)
        target = arrays.request_node[request]
        head, tail = arrays.head[arc[mine]], arrays.tail[arc[mine]]
        mine = mine[(arrays.is_broker[head] | (head == target)) & (tail != target)]
        requests.append(np.full(len(mine), request, np.int64))
        pairs.append(mine)
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *requests]), np.concatenate([empty, *pairs])


def unit_flow_arrives(frame: Frame, request: Ints) -> None:
    """(2), (3) per subscriber: Σ_j f_jt + u = 1, and every node on the way passes on what it gets."""
    arrays = frame.arrays
    head, tail = frame.head[frame.flow_pair], frame.tail[frame.flow_pair]
    inner = tail != arrays.source[arrays.request_topic[request]]
    every = np.arange(arrays.requests, dtype=np.int64)
    requests, nodes, place = node_rows(
        arrays,
        np.concatenate([request, request[inner], every]),
        np.concatenate([head, tail[inner], arrays.request_node]),
    )
    first, last = len(request), len(request) + int(inner.sum())
    demand = (nodes == arrays.request_node[requests]).astype(np.float64)
    frame.program.add_rows(
        len(nodes),
        (place[:first], frame.flow, 1.0),
        (place[first:last], frame.flow[inner], -1.0),
        (place[last:], frame.unmet, 1.0),
        lower=demand,
        upper=demand,
    )


def flow_needs_use(frame: Frame) -> None:
    """(4) without M: ζ_ij >= f^t_ij."""
    rows = np.arange(len(frame.flow), dtype=np.int64)
    frame.program.add_rows(len(rows), (rows, frame.use[frame.flow_pair], 1.0), (rows, frame.flow, -1.0), lower=0.0)
