"""Formulation F1 (1)-(7) exactly as printed, kept for comparison.

Its looseness is the paper's: any publisher may emit any topic, since (3) speaks of brokers only; M is 1000; x is
integer; (5) is written for both directions of an edge; unmet requests travel on dummy arcs from the source to the
subscriber.  Its value may therefore lie far below what any plan achieves.  It is a relaxation all the same: its bound
is a bound.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Ints
from tieline.plan.models.f1 import BIG_M
from tieline.plan.models.formulation import Formulation, node_rows
from tieline.plan.models.highs import Program


def f1_paper(arrays: Arrays) -> Formulation:
    """F1 as the paper prints it, equation by equation."""
    formulation = columns(arrays)
    every_subscriber_receives(formulation)
    brokers_conserve(formulation)
    flow_needs_use(formulation)
    capacity_in_both_directions(formulation)
    return formulation


def columns(arrays: Arrays) -> Formulation:
    """(1), (6), (7): every topic on every arc from a publisher or broker to a broker or subscriber; dummies at a price.

    The dummy arc of a request is its ``unmet`` column; that it has no ζ changes nothing, as it has no capacity.
    """
    topic, arc = printed_pairs(arrays)
    program = Program()
    flow = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], integer=True)
    use = program.add_columns(len(arc), upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], integer=True)
    return Formulation(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)


def printed_pairs(arrays: Arrays) -> tuple[Ints, Ints]:
    """Every topic on every arc from a publisher or broker to a broker or subscriber, whosever topic it is."""
    nodes = arrays.instance.nodes
    emits = np.array([node.is_broker or "publisher" in node.roles for node in nodes], np.bool_)
    takes = np.array([node.is_broker or "subscriber" in node.roles for node in nodes], np.bool_)
    usable = np.flatnonzero(emits[arrays.tail] & takes[arrays.head])
    topic = np.repeat(np.arange(arrays.topics, dtype=np.int64), len(usable))
    return topic, np.tile(usable, arrays.topics)


def every_subscriber_receives(formulation: Formulation) -> None:
    """(2): Σ_j x_jt = 1, the dummy arc included."""
    arrays = formulation.arrays
    wanted = np.isin(
        formulation.topic * arrays.nodes + formulation.head, arrays.request_topic * arrays.nodes + arrays.request_node
    )
    topics, _, place = node_rows(
        arrays,
        np.concatenate([formulation.topic[wanted], arrays.request_topic]),
        np.concatenate([formulation.head[wanted], arrays.request_node]),
    )
    real = int(wanted.sum())
    formulation.program.add_rows(
        len(topics),
        (place[:real], formulation.flow[wanted], 1.0),
        (place[real:], formulation.unmet, 1.0),
        lower=1.0,
        upper=1.0,
    )


def brokers_conserve(formulation: Formulation) -> None:
    """(3): Σ_j x_ji = Σ_j x_ij at every broker; the paper's sources and sinks are no brokers for their own topics."""
    arrays = formulation.arrays
    sinks = arrays.request_topic * arrays.nodes + arrays.request_node
    parts = []
    for node, sign in ((formulation.head, 1.0), (formulation.tail, -1.0)):
        is_end = np.isin(formulation.topic * arrays.nodes + node, sinks) | (node == arrays.source[formulation.topic])
        relays = arrays.is_broker[node] & ~is_end
        parts.append((formulation.topic[relays], node[relays], formulation.flow[relays], sign))
    topics, _, place = node_rows(
        arrays, np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    )
    split = len(parts[0][0])
    formulation.program.add_rows(
        len(topics),
        (place[:split], parts[0][2], parts[0][3]),
        (place[split:], parts[1][2], parts[1][3]),
        lower=0.0,
        upper=0.0,
    )


def flow_needs_use(formulation: Formulation) -> None:
    """(4): M ζ_ij >= x_ij with M = 1000."""
    rows = np.arange(len(formulation.arc), dtype=np.int64)
    formulation.program.add_rows(len(rows), (rows, formulation.use, BIG_M), (rows, formulation.flow, -1.0), lower=0.0)


def capacity_in_both_directions(formulation: Formulation) -> None:
    """(5): Σ_k a^k (ζ_ij + ζ_ji) <= cap_ij for (i, j) and again for (j, i)."""
    capacity = np.repeat(formulation.arrays.capacity, 2)
    arcs, place = np.unique(formulation.arc, return_inverse=True)
    place = place.reshape(-1)
    row_of = np.full(formulation.arrays.arcs, -1, np.int64)
    row_of[arcs] = np.arange(len(arcs))
    reverse = row_of[formulation.arc ^ 1]
    both = reverse >= 0
    limits = capacity[arcs]
    formulation.program.add_rows(
        len(arcs),
        (place, formulation.use, formulation.rate),
        (reverse[both], formulation.use[both], formulation.rate[both]),
        upper=limits,
    )
