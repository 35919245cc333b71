"""Formulation F2 (22)-(31), corrected: the cost of a link is paid once per topic, and flow counts bandwidth.

Corrected: (23) speaks of real links and says at most one, since with dummies and "exactly one" a topic with one unmet
request among several would be infeasible; (25), where n_max is given, is
:func:`tieline.plan.models.limits.limited_duplications`; (29) is shared by both directions, as in F1; an unmet request
has a variable u with a price. F2 minimises another objective than F1, so its value bounds no plan's objective.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.models.f1 import balance, shared_capacity
from tieline.plan.models.formulation import Formulation, node_rows, own_pairs
from tieline.plan.models.highs import Program


def f2(arrays: Arrays) -> Formulation:
    """F2 as it was meant: with the corrections that this module lists."""
    program = Program()
    topic, arc = own_pairs(arrays)
    flow = program.add_columns(len(arc))
    # (22): the cost is paid by ζ
    use = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    formulation = Formulation(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)
    source_sends_once(formulation)
    subscribers_are_entered_once(formulation)
    bandwidth_balance(formulation)
    flow_and_use_agree(formulation)
    shared_capacity(formulation)
    return formulation


def source_sends_once(formulation: Formulation) -> None:
    """(23): Σ_j ζ_sj <= 1 over real links."""
    leaving = formulation.tail == formulation.arrays.source[formulation.topic]
    topics, place = np.unique(formulation.topic[leaving], return_inverse=True)
    formulation.program.add_rows(len(topics), (place.reshape(-1), formulation.use[leaving], 1.0), upper=1.0)


def subscribers_are_entered_once(formulation: Formulation) -> None:
    """(24): Σ_j ζ_jt = 1 - u at a subscriber; at most 1 at a broker, which makes the routes trees."""
    arrays = formulation.arrays
    topics, nodes, place = node_rows(
        arrays,
        np.concatenate([formulation.topic, arrays.request_topic]),
        np.concatenate([formulation.head, arrays.request_node]),
    )
    first = len(formulation.arc)
    relays = arrays.is_broker[nodes]
    formulation.program.add_rows(
        len(topics),
        (place[:first], formulation.use, 1.0),
        # a broker may relay what it does not get itself, so its u says nothing about its entering links
        (place[first:], formulation.unmet, np.where(arrays.is_broker[arrays.request_node], 0.0, 1.0)),
        lower=np.where(relays, 0.0, 1.0),
        upper=1.0,
    )


def bandwidth_balance(formulation: Formulation) -> None:
    """(26) and (27): a^k arrives at a served subscriber, and every relay passes on what it gets."""
    balance(formulation, _bandwidth(formulation.arrays))


def flow_and_use_agree(formulation: Formulation) -> None:
    """(28): a^k ζ_ij <= x_ij <= a^k |T^k| ζ_ij."""
    rows = np.arange(len(formulation.arc), dtype=np.int64)
    unit = _bandwidth(formulation.arrays)[formulation.topic]
    formulation.program.add_rows(len(rows), (rows, formulation.use, unit), (rows, formulation.flow, -1.0), upper=0.0)
    most = unit * formulation.subscribers
    formulation.program.add_rows(len(rows), (rows, formulation.use, most), (rows, formulation.flow, -1.0), lower=0.0)


def _bandwidth(arrays: Arrays) -> Floats:
    """a^k; a silent topic still needs a unit to count with."""
    return np.where(arrays.rate > 0, arrays.rate, 1.0)
