"""Formulation F2 (22)-(31) exactly as printed, kept for comparison.

Each request has a dummy arc from its source to its subscriber, with a ζ and an x of its own, and (23) counts them among
the arcs that leave the source, of which there is exactly one.  So where one of several subscribers of a topic has to
stay unmet the source cannot serve the others: it would need its dummy arc and a real one.  Another publisher serves
them, since (27) binds brokers alone, or there is no solution.  Capacity (29) is for each direction by itself.  The text
gives no n_max; where the instance has none, (25) lets a broker send to all subscribers.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.models.f1_paper import printed_pairs
from tieline.plan.models.formulation import Formulation, node_rows
from tieline.plan.models.highs import Program


def f2_paper(arrays: Arrays) -> Formulation:
    """F2 as the paper prints it, equation by equation; the ``unmet`` column of a request is the ζ of its dummy arc."""
    topic, arc = printed_pairs(arrays)
    program = Program()
    flow = program.add_columns(len(arc))
    # (22): the cost is paid by ζ
    use = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    formulation = Formulation(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)
    dummy = program.add_columns(arrays.requests)
    one_arc_leaves_the_source(formulation)
    one_arc_enters_each_subscriber(formulation)
    brokers_duplicate(formulation)
    bandwidth_arrives(formulation, dummy)
    brokers_conserve_bandwidth(formulation)
    flow_and_use_agree(formulation, dummy)
    capacity_of_each_direction(formulation)
    return formulation


def one_arc_leaves_the_source(formulation: Formulation) -> None:
    """(23): Σ_j ζ_sj = 1, dummies included."""
    arrays = formulation.arrays
    leaving = np.flatnonzero(formulation.tail == arrays.source[formulation.topic])
    formulation.program.add_rows(
        arrays.topics,
        (formulation.topic[leaving], formulation.use[leaving], 1.0),
        (arrays.request_topic, formulation.unmet, 1.0),
        lower=1.0,
        upper=1.0,
    )


def one_arc_enters_each_subscriber(formulation: Formulation) -> None:
    """(24): Σ_j ζ_jt = 1, the dummy included."""
    into, place = _into_subscribers(formulation)
    every = np.arange(formulation.arrays.requests, dtype=np.int64)
    formulation.program.add_rows(
        formulation.arrays.requests,
        (place, formulation.use[into], 1.0),
        (every, formulation.unmet, 1.0),
        lower=1.0,
        upper=1.0,
    )


def brokers_duplicate(formulation: Formulation) -> None:
    """(25): n_max Σ_j ζ_ji >= Σ_j ζ_ij at every broker."""
    arrays = formulation.arrays
    most = (
        arrays.instance.n_max if arrays.instance.n_max is not None else max(1, int(np.diff(arrays.request_start).max()))
    )
    enters, leaves = arrays.is_broker[formulation.head], arrays.is_broker[formulation.tail]
    topics, _, place = node_rows(
        arrays,
        np.concatenate([formulation.topic[enters], formulation.topic[leaves]]),
        np.concatenate([formulation.head[enters], formulation.tail[leaves]]),
    )
    split = int(enters.sum())
    formulation.program.add_rows(
        len(topics),
        (place[:split], formulation.use[enters], float(most)),
        (place[split:], formulation.use[leaves], -1.0),
        lower=0.0,
    )


def bandwidth_arrives(formulation: Formulation, dummy: Ints) -> None:
    """(26): Σ_j x_jt = a^k at each subscriber."""
    arrays = formulation.arrays
    into, place = _into_subscribers(formulation)
    every = np.arange(arrays.requests, dtype=np.int64)
    rate = _unit(arrays)[arrays.request_topic]
    formulation.program.add_rows(
        arrays.requests, (place, formulation.flow[into], 1.0), (every, dummy, 1.0), lower=rate, upper=rate
    )


def brokers_conserve_bandwidth(formulation: Formulation) -> None:
    """(27): Σ_j x_ji = Σ_j x_ij at every broker that is no end of the topic."""
    arrays = formulation.arrays
    ends = np.concatenate([
        arrays.request_topic * arrays.nodes + arrays.request_node,
        np.arange(arrays.topics) * arrays.nodes + arrays.source,
    ])  # fmt: skip
    parts = []
    for node, sign in ((formulation.head, 1.0), (formulation.tail, -1.0)):
        relays = np.flatnonzero(arrays.is_broker[node] & ~np.isin(formulation.topic * arrays.nodes + node, ends))
        parts.append((formulation.topic[relays], node[relays], formulation.flow[relays], sign))
    topics, _, place = node_rows(
        arrays, np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    )
    split = len(parts[0][0])
    formulation.program.add_rows(
        len(topics), (place[:split], parts[0][2], 1.0), (place[split:], parts[1][2], -1.0), lower=0.0, upper=0.0
    )


def flow_and_use_agree(formulation: Formulation, dummy: Ints) -> None:
    """(28): a^k ζ_ij <= x_ij <= a^k |T^k| ζ_ij, dummies included."""
    arrays = formulation.arrays
    counts = np.diff(arrays.request_start).astype(np.float64)
    for flow, use, topic in (
        (formulation.flow, formulation.use, formulation.topic),
        (dummy, formulation.unmet, arrays.request_topic),
    ):
        rows, unit = np.arange(len(flow), dtype=np.int64), _unit(arrays)[topic]
        formulation.program.add_rows(len(rows), (rows, use, unit), (rows, flow, -1.0), upper=0.0)
        formulation.program.add_rows(len(rows), (rows, use, unit * counts[topic]), (rows, flow, -1.0), lower=0.0)


def capacity_of_each_direction(formulation: Formulation) -> None:
    """(29): Σ_k a^k ζ_ij <= cap_ij, for (i, j) and for (j, i) by itself."""
    capacity = np.repeat(formulation.arrays.capacity, 2)
    kept = np.flatnonzero(np.isfinite(capacity[formulation.arc]))
    arcs, place = np.unique(formulation.arc[kept], return_inverse=True)
    formulation.program.add_rows(
        len(arcs), (place.reshape(-1), formulation.use[kept], formulation.rate[kept]), upper=capacity[arcs]
    )


def _into_subscribers(formulation: Formulation) -> tuple[Ints, Ints]:
    """The pairs whose arc enters a subscriber of the topic, and the request of each."""
    arrays = formulation.arrays
    keys = arrays.request_topic * arrays.nodes + arrays.request_node
    order = np.argsort(keys, kind="stable")
    mine = formulation.topic * arrays.nodes + formulation.head
    place = (
        np.minimum(np.searchsorted(keys[order], mine), len(keys) - 1) if len(keys) else np.zeros(len(mine), np.int64)
    )
    into = np.flatnonzero(keys[order][place] == mine) if len(keys) else np.zeros(0, np.int64)
    return into, order[place[into]]


def _unit(arrays: Arrays) -> Floats:
    """a^k; a silent topic still needs a unit to count with."""
    return np.where(arrays.rate > 0, arrays.rate, 1.0)
