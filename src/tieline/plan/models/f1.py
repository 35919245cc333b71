"""Formulation F1 (1)-(7), corrected, and the naive variant with a big M that speeds are compared with.

What the print leaves open, and what is done here: a topic leaves its own source only, and clients relay nothing,
because other pairs have no variables; flow is conserved at every relay; M is |T^k|, and 1 where an arc ends at a
client; x is continuous, for given ζ it is a network flow; (5) is written once per link; a topic whose rate exceeds a
link's capacity has no variable there; an unmet request has a variable u with a price instead of a dummy arc.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.models.formulation import Formulation, node_rows, own_pairs
from tieline.plan.models.highs import Amount, Program

#: The M of the naive variant.
BIG_M = 1000.0


def f1(arrays: Arrays) -> Formulation:
    """F1 as it was meant: with the corrections that this module lists."""
    formulation = columns(arrays, integer=False)
    flow_balance(formulation)
    tight = np.where(formulation.ends_at_client(), 1.0, formulation.subscribers)
    flow_needs_use(formulation, tight)
    shared_capacity(formulation)
    return formulation


def f1_naive(arrays: Arrays) -> Formulation:
    """F1 with M = 1000 and integer x, on the own arcs of each topic: the same optimum as :func:`f1`, found slower."""
    formulation = columns(arrays, integer=True)
    flow_balance(formulation)
    flow_needs_use(formulation, np.full(len(formulation.arc), BIG_M))
    shared_capacity(formulation)
    return formulation


def columns(arrays: Arrays, *, integer: bool) -> Formulation:
    """The variables and the objective (1): x at the cost of its link (6), ζ binary and free (7), u at its price."""
    program = Program()
    topic, arc = own_pairs(arrays)
    flow = program.add_columns(len(arc), cost=arrays.cost[arc >> 1], integer=integer)
    use = program.add_columns(len(arc), upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    return Formulation(arrays, program, topic, arc, flow, np.arange(len(arc), dtype=np.int64), use, unmet)


def flow_balance(formulation: Formulation) -> None:
    """(2) and (3): what enters a node leaves it, except one unit at a subscriber that is served.

    Σ_j x_ji - Σ_j x_ij (+ u = 1 at a subscriber, = 0 at any other node but the sources).
    """
    balance(formulation, np.ones(len(formulation.arrays.source)))


def balance(formulation: Formulation, unit: Floats) -> None:
    """What enters a node leaves it, except so much of its topic, ``unit``, at a subscriber that is served."""
    arrays = formulation.arrays
    inner = ~arrays.begins(formulation.topic, formulation.tail)
    topics, nodes, place = node_rows(
        arrays,
        np.concatenate([formulation.topic, formulation.topic[inner], arrays.request_topic]),
        np.concatenate([formulation.head, formulation.tail[inner], arrays.request_node]),
    )
    first, last = len(formulation.arc), len(formulation.arc) + int(inner.sum())
    wanted = np.isin(topics * arrays.nodes + nodes, arrays.request_topic * arrays.nodes + arrays.request_node)
    demand = np.where(wanted, unit[topics], 0.0)
    formulation.program.add_rows(
        len(topics),
        (place[:first], formulation.flow, 1.0),
        (place[first:last], formulation.flow[inner], -1.0),
        (place[last:], formulation.unmet, unit[arrays.request_topic]),
        lower=demand,
        upper=demand,
    )


def flow_needs_use(formulation: Formulation, big: Floats) -> None:
    """(4): M ζ_ij >= x_ij."""
    rows = np.arange(len(formulation.arc), dtype=np.int64)
    formulation.program.add_rows(len(rows), (rows, formulation.use, big), (rows, formulation.flow, -1.0), lower=0.0)


def shared_capacity(formulation: Formulation) -> None:
    """(5): Σ_k a^k (ζ_ij + ζ_ji) <= cap_ij, once per link that has a limit; where rates may rise, with room for that.

    Room for any Γ of the rises d^k at once is, after Bertsimas and Sim (2004), Γ z_ij + Σ_k p^k_ij on the left side
    with z_ij + p^k_ij >= d^k ζ: the dual of choosing the Γ largest.
    """
    arrays = formulation.arrays
    limited = np.isfinite(arrays.capacity)
    kept = np.flatnonzero(limited[formulation.link])
    links, place = np.unique(formulation.link[kept], return_inverse=True)
    place = place.reshape(-1)
    parts: list[tuple[Ints, Ints, Amount]] = [(place, formulation.use[kept], formulation.rate[kept])]
    most = arrays.topics if arrays.instance.deviations is None else arrays.instance.deviations
    rising = np.flatnonzero(arrays.swing[formulation.topic[kept]] > 0)
    if most >= arrays.topics:
        swing = arrays.swing[formulation.topic[kept[rising]]]
        parts.append((place[rising], formulation.use[kept[rising]], swing))
    elif most > 0 and len(rising):
        program, rows = formulation.program, np.arange(len(rising), dtype=np.int64)
        common, own = program.add_columns(len(links)), program.add_columns(len(rising))
        swing = arrays.swing[formulation.topic[kept[rising]]]
        program.add_rows(
            len(rising), (rows, common[place[rising]], 1.0), (rows, own, 1.0),
            (rows, formulation.use[kept[rising]], -swing), lower=0.0,
        )  # fmt: skip
        every = np.arange(len(links), dtype=np.int64)
        parts += [(every, common, float(most)), (place[rising], own, 1.0)]
    formulation.program.add_rows(len(links), *parts, upper=arrays.capacity[links])


def f1d(arrays: Arrays, keep: Flags | None = None) -> Formulation:
    """F1 with flows per request, on all pairs of topics and arcs or on those to keep."""
    program = Program()
    topic, arc = own_pairs(arrays, keep)
    use = program.add_columns(len(arc), upper=1.0, integer=True)
    unmet = program.add_columns(arrays.requests, cost=arrays.price[arrays.request_topic], upper=1.0, integer=True)
    request, pair = _parts(arrays, topic, arc)
    flow = program.add_columns(len(pair), cost=arrays.cost[arc[pair] >> 1], upper=1.0)
    formulation = Formulation(arrays, program, topic, arc, flow, pair, use, unmet)
    unit_flow_arrives(formulation, request)
    split_flow_needs_use(formulation)
    shared_capacity(formulation)
    return formulation


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


def unit_flow_arrives(formulation: Formulation, request: Ints) -> None:
    """(2), (3) per subscriber: Σ_j f_jt + u = 1, and every node on the way passes on what it gets."""
    arrays = formulation.arrays
    head, tail = formulation.head[formulation.flow_pair], formulation.tail[formulation.flow_pair]
    inner = ~arrays.begins(arrays.request_topic[request], tail)
    every = np.arange(arrays.requests, dtype=np.int64)
    requests, nodes, place = node_rows(
        arrays,
        np.concatenate([request, request[inner], every]),
        np.concatenate([head, tail[inner], arrays.request_node]),
    )
    first, last = len(request), len(request) + int(inner.sum())
    demand = (nodes == arrays.request_node[requests]).astype(np.float64)
    formulation.program.add_rows(
        len(nodes),
        (place[:first], formulation.flow, 1.0),
        (place[first:last], formulation.flow[inner], -1.0),
        (place[last:], formulation.unmet, 1.0),
        lower=demand,
        upper=demand,
    )


def split_flow_needs_use(formulation: Formulation) -> None:
    """(4) without M: ζ_ij >= f^t_ij."""
    rows = np.arange(len(formulation.flow), dtype=np.int64)
    formulation.program.add_rows(
        len(rows), (rows, formulation.use[formulation.flow_pair], 1.0), (rows, formulation.flow, -1.0), lower=0.0
    )
