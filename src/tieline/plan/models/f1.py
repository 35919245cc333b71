"""Formulation F1 (1)-(7), corrected, and the naive variant with a big M that speeds are compared with.

What the print leaves open, and what is done here: a topic leaves its own source only, and clients relay nothing,
because other pairs have no variables; flow is conserved at every relay; M is |T^k|, and 1 where an arc ends at a
client; x is continuous, for given ζ it is a network flow; (5) is written once per link; a topic whose rate exceeds a
link's capacity has no variable there; an unmet request has a variable u with a price instead of a dummy arc.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.models.frame import Frame, node_rows, own_pairs, request_of
from tieline.plan.models.program import Program

#: The M of the naive variant.
BIG_M = 1000.0


def f1(arrays: Arrays) -> Frame:
    """F1 corrected."""
    frame = columns(arrays, integer=False)
    flow_balance(frame)
    tight = np.where(frame.ends_at_client(), 1.0, frame.subscribers)
    flow_needs_use(frame, tight)
    shared_capacity(frame)
    return frame


def f1_naive(arrays: Arrays) -> Frame:
    """F1 with M = 1000 and integer x, on the own arcs of each topic: the same optimum as :func:`f1`, found slower."""
    frame = columns(arrays, integer=True)
    flow_balance(frame)
    flow_needs_use(frame, np.full(len(frame.arc), BIG_M))
    shared_capacity(frame)
    return frame


def columns(arrays: Arrays, *, integer: bool) -> Frame:
    """The variables and the objective (1): x at the cost of its link (6), ζ binary and free (7), u at its price."""
    program = Program()
    topic, arc = own_pairs(arrays)
    flow = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], integer=integer)
    use = program.add_columns(len(arc), upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    return Frame(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)


def flow_balance(frame: Frame) -> None:
    """(2) and (3): what enters a node leaves it, except one unit at a subscriber that is served.

    Σ_j x_ji - Σ_j x_ij (+ u = 1 at a subscriber, = 0 at any other node but the source).
    """
    arrays = frame.arrays
    inner = frame.tail != arrays.source[frame.topic]
    topics, nodes, place = node_rows(
        arrays,
        np.concatenate([frame.topic, frame.topic[inner], arrays.request_topic]),
        np.concatenate([frame.head, frame.tail[inner], arrays.request_node]),
    )
    count = len(topics)
    entering, leaving = len(frame.arc), int(inner.sum())
    wanted = request_of(arrays)
    demand = np.array([(int(k), int(v)) in wanted for k, v in zip(topics, nodes, strict=True)], np.float64)
    frame.program.add_rows(
        count,
        (place[:entering], frame.flow, 1.0),
        (place[entering : entering + leaving], frame.flow[inner], -1.0),
        (place[entering + leaving :], frame.unmet, 1.0),
        lower=demand,
        upper=demand,
    )


def flow_needs_use(frame: Frame, big: Floats) -> None:
    """(4): M ζ_ij >= x_ij."""
    rows = np.arange(len(frame.arc), dtype=np.int64)
    frame.program.add_rows(len(rows), (rows, frame.use, big), (rows, frame.flow, -1.0), lower=0.0)


def shared_capacity(frame: Frame) -> None:
    """(5): Σ_k a^k (ζ_ij + ζ_ji) <= cap_ij, once per link that has a limit."""
    limited = np.isfinite(frame.arrays.capacity)
    kept = limited[frame.link]
    links, place = np.unique(frame.link[kept], return_inverse=True)
    frame.program.add_rows(
        len(links), (place.reshape(-1), frame.use[kept], frame.rate[kept]), upper=frame.arrays.capacity[links]
    )
