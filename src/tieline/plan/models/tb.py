"""The split of F1 by nodes, T (8)-(13) and B (14)-(19), coupled so that it is exact.

As printed, the problems of the nodes are independent, and every broker's best answer is to send nothing: the paper
says that decisions must be "enforced downpath".  Here that means one variable per arc and topic: what leaves a node is
what enters the next.  The blocks then describe F1 once more, ordered by nodes as a distributed solver would see them.
"""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Ints
from tieline.plan.models.f1 import columns
from tieline.plan.models.formulation import Formulation


def tb(arrays: Arrays) -> Formulation:
    """The blocks of all destinations and brokers over common variables (12), (13), (18), (19)."""
    formulation = columns(arrays, integer=False)
    by_head = _grouped(formulation.head)
    by_tail = _grouped(formulation.tail)
    none = np.zeros(0, np.int64)
    for node in range(arrays.nodes):
        entering = by_head.get(node, none)
        leaving = by_tail.get(node, none)
        destination_receives(formulation, node, entering, leaving)
        if arrays.is_broker[node]:
            broker_conserves(formulation, node, entering, leaving)
        entering_flow_needs_use(formulation, entering)
        node_capacity(formulation, entering, leaving)
    return formulation


def _grouped(nodes: Ints) -> dict[int, Ints]:
    order = np.argsort(nodes, kind="stable")
    keys, start = np.unique(nodes[order], return_index=True)
    return {int(key): part for key, part in zip(keys, np.split(order, start[1:]), strict=True)}


def destination_receives(formulation: Formulation, node: int, entering: Ints, leaving: Ints) -> None:
    """(9): Σ_j x_jt = 1 - u for each topic that the node wants; a broker passes on what is above one."""
    requests = np.flatnonzero(formulation.arrays.request_node == node)
    if not len(requests):
        return
    topics = formulation.arrays.request_topic[requests]
    row_of = np.full(formulation.arrays.topics, -1, np.int64)
    row_of[topics] = np.arange(len(topics))
    gets = entering[row_of[formulation.topic[entering]] >= 0]
    gives = leaving[row_of[formulation.topic[leaving]] >= 0]
    formulation.program.add_rows(
        len(topics),
        (row_of[formulation.topic[gets]], formulation.flow[gets], 1.0),
        (row_of[formulation.topic[gives]], formulation.flow[gives], -1.0),
        (np.arange(len(topics), dtype=np.int64), formulation.unmet[requests], 1.0),
        lower=1.0,
        upper=1.0,
    )


def broker_conserves(formulation: Formulation, node: int, entering: Ints, leaving: Ints) -> None:
    """(15): Σ_j x_ji = Σ_j x_ij for each topic that the broker only relays."""
    arrays = formulation.arrays
    is_own = (arrays.source == node) | np.isin(
        np.arange(arrays.topics), arrays.request_topic[arrays.request_node == node]
    )
    gets, gives = entering[~is_own[formulation.topic[entering]]], leaving[~is_own[formulation.topic[leaving]]]
    topics, place = np.unique(np.concatenate([formulation.topic[gets], formulation.topic[gives]]), return_inverse=True)
    place = place.reshape(-1)
    formulation.program.add_rows(
        len(topics),
        (place[: len(gets)], formulation.flow[gets], 1.0),
        (place[len(gets) :], formulation.flow[gives], -1.0),
        lower=0.0,
        upper=0.0,
    )


def entering_flow_needs_use(formulation: Formulation, entering: Ints) -> None:
    """(10), (16): M ζ_ji >= x_ji on the links into the node, with M = |T^k|."""
    rows = np.arange(len(entering), dtype=np.int64)
    big = np.where(formulation.ends_at_client()[entering], 1.0, formulation.subscribers[entering])
    formulation.program.add_rows(
        len(rows), (rows, formulation.use[entering], big), (rows, formulation.flow[entering], -1.0), lower=0.0
    )


def node_capacity(formulation: Formulation, entering: Ints, leaving: Ints) -> None:
    """(11), (17): Σ_k a^k (ζ_ij + ζ_ji) <= cap_ij on the links of the node, clients included."""
    pairs = np.concatenate([entering, leaving])
    pairs = pairs[np.isfinite(formulation.arrays.capacity[formulation.link[pairs]])]
    links, place = np.unique(formulation.link[pairs], return_inverse=True)
    formulation.program.add_rows(
        len(links),
        (place.reshape(-1), formulation.use[pairs], formulation.rate[pairs]),
        upper=formulation.arrays.capacity[links],
    )
