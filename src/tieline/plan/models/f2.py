"""Formulation F2 (22)-(31), corrected: the cost of a link is paid once per topic, and flow counts bandwidth.

Corrected: (23) speaks of real links and says at most one, since with dummies and "exactly one" a topic with one unmet
request among several would be infeasible; (25), where n_max is given, is
:func:`tieline.plan.models.limits.limited_duplications`; (29) is shared by both directions, as in F1; an unmet request
has a variable u with a price. F2 minimises another objective than F1, so its value bounds no plan's objective.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.models.f1 import shared_capacity
from tieline.plan.models.frame import Frame, node_rows, own_pairs
from tieline.plan.models.program import Program


def f2(arrays: Arrays) -> Frame:
    """F2 corrected."""
    program = Program()
    topic, arc = own_pairs(arrays)
    flow = program.add_columns(len(arc))
    # (22): the cost is paid by ζ
    use = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    frame = Frame(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)
    source_sends_once(frame)
    subscribers_are_entered_once(frame)
    bandwidth_balance(frame)
    flow_and_use_agree(frame)
    shared_capacity(frame)
    return frame


def source_sends_once(frame: Frame) -> None:
    """(23): Σ_j ζ_sj <= 1 over real links."""
    leaving = frame.tail == frame.arrays.source[frame.topic]
    topics, place = np.unique(frame.topic[leaving], return_inverse=True)
    frame.program.add_rows(len(topics), (place.reshape(-1), frame.use[leaving], 1.0), upper=1.0)


def subscribers_are_entered_once(frame: Frame) -> None:
    """(24): Σ_j ζ_jt = 1 - u at a subscriber; at most 1 at a broker, which makes the routes trees."""
    arrays = frame.arrays
    topics, nodes, place = node_rows(
        arrays,
        np.concatenate([frame.topic, arrays.request_topic]),
        np.concatenate([frame.head, arrays.request_node]),
    )
    first = len(frame.arc)
    relays = arrays.is_broker[nodes]
    frame.program.add_rows(
        len(topics),
        (place[:first], frame.use, 1.0),
        # a broker may relay what it does not get itself, so its u says nothing about its entering links
        (place[first:], frame.unmet, np.where(arrays.is_broker[arrays.request_node], 0.0, 1.0)),
        lower=np.where(relays, 0.0, 1.0),
        upper=1.0,
    )


def bandwidth_balance(frame: Frame) -> None:
    """(26) and (27): a^k arrives at a served subscriber, and every relay passes on what it gets."""
    arrays = frame.arrays
    inner = frame.tail != arrays.source[frame.topic]
    topics, nodes, place = node_rows(
        arrays,
        np.concatenate([frame.topic, frame.topic[inner], arrays.request_topic]),
        np.concatenate([frame.head, frame.tail[inner], arrays.request_node]),
    )
    first, last = len(frame.arc), len(frame.arc) + int(inner.sum())
    unit = _bandwidth(arrays)
    wanted = np.isin(topics * arrays.nodes + nodes, arrays.request_topic * arrays.nodes + arrays.request_node)
    demand = np.where(wanted, unit[topics], 0.0)
    frame.program.add_rows(
        len(topics),
        (place[:first], frame.flow, 1.0),
        (place[first:last], frame.flow[inner], -1.0),
        (place[last:], frame.unmet, unit[arrays.request_topic]),
        lower=demand,
        upper=demand,
    )


def flow_and_use_agree(frame: Frame) -> None:
    """(28): a^k ζ_ij <= x_ij <= a^k |T^k| ζ_ij."""
    rows = np.arange(len(frame.arc), dtype=np.int64)
    unit = _bandwidth(frame.arrays)[frame.topic]
    frame.program.add_rows(len(rows), (rows, frame.use, unit), (rows, frame.flow, -1.0), upper=0.0)
    most = unit * frame.subscribers
    frame.program.add_rows(len(rows), (rows, frame.use, most), (rows, frame.flow, -1.0), lower=0.0)


def _bandwidth(arrays: Arrays) -> Floats:
    """a^k; a silent topic still needs a unit to count with."""
    return np.where(arrays.rate > 0, arrays.rate, 1.0)
