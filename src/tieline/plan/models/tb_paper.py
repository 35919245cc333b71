"""The split of F1 by nodes, T (8)-(13) and B (14)-(19), exactly as printed, kept for comparison.

Each node has variables of its own, and nothing joins those of one node to those of another: the paper says that "the
whole problem can thus be optimized in a fully distributed fashion, provided that routing decisions can be enforced
downpath", and no equation enforces them.  So every destination takes its cheapest last link that has room, every
broker's best answer is to let nothing in, and no source is asked for anything.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays
from tieline.plan.models.f1 import BIG_M
from tieline.plan.models.f1_paper import every_subscriber_receives, printed_pairs
from tieline.plan.models.formulation import Formulation, node_rows
from tieline.plan.models.highs import Program


def tb_paper(arrays: Arrays) -> Formulation:
    """All blocks side by side; the columns that say what enters a node are those of the formulation."""
    topic, arc = printed_pairs(arrays)
    program = Program()
    flow = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], integer=True)
    use = program.add_columns(len(arc), upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], integer=True)
    formulation = Formulation(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)
    every_subscriber_receives(formulation)
    brokers_conserve_for_themselves(formulation)
    entering_flow_needs_use(formulation)
    capacity_at_each_node(formulation)
    return formulation


def brokers_conserve_for_themselves(formulation: Formulation) -> None:
    """(15): Σ_j x_ji = Σ_j x_ij, where what leaves is the broker's own variable, which nobody else knows."""
    arrays = formulation.arrays
    wanted = np.isin(
        formulation.topic * arrays.nodes + formulation.head, arrays.request_topic * arrays.nodes + arrays.request_node
    )
    enters = np.flatnonzero(arrays.is_broker[formulation.head] & ~wanted)
    leaves = np.flatnonzero(arrays.is_broker[formulation.tail])
    own = formulation.program.add_columns(len(leaves))
    topics, _, place = node_rows(
        arrays,
        np.concatenate([formulation.topic[enters], formulation.topic[leaves]]),
        np.concatenate([formulation.head[enters], formulation.tail[leaves]]),
    )
    split = len(enters)
    formulation.program.add_rows(
        len(topics), (place[:split], formulation.flow[enters], 1.0), (place[split:], own, -1.0), lower=0.0, upper=0.0
    )


def entering_flow_needs_use(formulation: Formulation) -> None:
    """(10), (16): M ζ_ji >= x_ji with M = 1000."""
    rows = np.arange(len(formulation.arc), dtype=np.int64)
    formulation.program.add_rows(len(rows), (rows, formulation.use, BIG_M), (rows, formulation.flow, -1.0), lower=0.0)


def capacity_at_each_node(formulation: Formulation) -> None:
    """(11), (17): Σ_k a^k ζ_ji <= cap_ji on what enters a node; ζ_ij of (17) is the broker's own again, and zero."""
    capacity = np.repeat(formulation.arrays.capacity, 2)
    kept = np.flatnonzero(np.isfinite(capacity[formulation.arc]))
    arcs, place = np.unique(formulation.arc[kept], return_inverse=True)
    formulation.program.add_rows(
        len(arcs), (place.reshape(-1), formulation.use[kept], formulation.rate[kept]), upper=capacity[arcs]
    )
