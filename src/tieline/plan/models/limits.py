"""Optional limits, which any formulation may add: connections of a broker, duplications, latency."""

from __future__ import annotations

import numpy as np

from tieline.plan.models.formulation import Formulation, node_rows


def add_limits(formulation: Formulation) -> None:
    """Every limit that the instance states."""
    instance = formulation.arrays.instance
    if (formulation.arrays.max_connections >= 0).any():
        limited_connections(formulation)
    has_latency = np.isfinite(formulation.arrays.max_latency).any()
    if instance.n_max is not None or has_latency:
        entered_once(formulation)
    if instance.n_max is not None:
        limited_duplications(formulation, instance.n_max)
    if has_latency:
        bounded_latency(formulation)


def limited_connections(formulation: Formulation) -> None:
    """Σ_e y_e <= max_connections over the links of a node, where y_e >= ζ^k_ij for every topic.

    In the paper's text, in none of its formulations.
    """
    arrays = formulation.arrays
    limited = arrays.max_connections >= 0
    ends = (arrays.tail[0::2], arrays.head[0::2])
    links = np.flatnonzero(limited[ends[0]] | limited[ends[1]])
    opened = formulation.program.add_columns(len(links), upper=1.0, integer=True)
    column_of = np.full(arrays.links, -1, np.int64)
    column_of[links] = opened
    pairs = np.flatnonzero(column_of[formulation.link] >= 0)
    rows = np.arange(len(pairs), dtype=np.int64)
    formulation.program.add_rows(
        len(pairs), (rows, column_of[formulation.link[pairs]], 1.0), (rows, formulation.use[pairs], -1.0), lower=0.0
    )
    brokers = np.flatnonzero(limited)
    row_of = np.full(arrays.nodes, -1, np.int64)
    row_of[brokers] = np.arange(len(brokers))
    parts = []
    for end in ends:
        mine = links[limited[end[links]]]
        parts.append((row_of[end[mine]], column_of[mine], 1.0))
    formulation.program.add_rows(len(brokers), *parts, upper=arrays.max_connections[brokers])


def entered_once(formulation: Formulation) -> None:
    """Σ_j ζ_ji <= 1 at every node: limits about ζ speak of a tree, so ζ must be one."""
    topics, _, place = node_rows(formulation.arrays, formulation.topic, formulation.head)
    formulation.program.add_rows(len(topics), (place, formulation.use, 1.0), upper=1.0)


def limited_duplications(formulation: Formulation, n_max: int) -> None:
    """(25): n_max Σ_j ζ_ji >= Σ_j ζ_ij at every broker; a broker that is the source sends n_max times at most."""
    arrays = formulation.arrays
    relays = arrays.is_broker[formulation.head]
    sends = arrays.is_broker[formulation.tail]
    topics, nodes, place = node_rows(
        arrays,
        np.concatenate([formulation.topic[relays], formulation.topic[sends]]),
        np.concatenate([formulation.head[relays], formulation.tail[sends]]),
    )
    split = int(relays.sum())
    formulation.program.add_rows(
        len(topics),
        (place[:split], formulation.use[relays], float(n_max)),
        (place[split:], formulation.use[sends], -1.0),
        lower=np.where(arrays.begins(topics, nodes), -float(n_max), 0.0),
    )


def bounded_latency(formulation: Formulation) -> None:
    """π_j >= π_i + latency_ij - L (1 - ζ_ij) with 0 <= π <= max_latency: the delay at which a topic reaches a node.

    L is what lifts the bound when the link is unused: max_latency + latency_ij.
    """
    arrays = formulation.arrays
    mine = np.flatnonzero(np.isfinite(arrays.max_latency[formulation.topic]))
    topics, _, place = node_rows(
        arrays,
        np.concatenate([formulation.topic[mine], formulation.topic[mine]]),
        np.concatenate([formulation.head[mine], formulation.tail[mine]]),
    )
    delay = formulation.program.add_columns(len(topics), upper=arrays.max_latency[topics])
    there, here = delay[place[: len(mine)]], delay[place[len(mine) :]]
    latency = arrays.latency[formulation.link[mine]]
    slack = arrays.max_latency[formulation.topic[mine]] + latency
    rows = np.arange(len(mine), dtype=np.int64)
    formulation.program.add_rows(
        len(mine),
        (rows, there, 1.0),
        (rows, here, -1.0),
        (rows, formulation.use[mine], -slack),
        lower=latency - slack,
    )
