"""What the formulations are written over, and the way between their columns and trees.

The columns belong to pairs of a topic and an arc that it may use.  ζ costs nothing in F1, so ζ may be 1 where nothing
flows: routes are read from x.  Flow can also run in circles where links cost nothing.  The cheapest ways inside the
links that carry flow are a tree, cost no more, and use no other link.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.models.highs import Program
from tieline.plan.routes import Trees, no_trees

#: Solvers answer within tolerances: less is no flow.
_FLOW = 1e-6


@dataclass(slots=True, eq=False)
class Formulation:
    """A program, its pairs (topic, arc), and the columns of the variables that all formulations have.

    Columns that a formulation does not have are empty.
    """

    arrays: Arrays
    program: Program
    #: Per pair; pairs of one topic are side by side.
    topic: Ints
    arc: Ints
    #: Columns of x: how many subscribers are served through the arc of a pair (or how much bandwidth for them).
    flow: Ints
    #: The pair that each column of x belongs to; formulations that split x have several for one pair.
    flow_pair: Ints
    #: Column of ζ per pair: whether the topic uses the arc.
    use: Ints
    #: Column of u per request: whether it stays unmet.
    unmet: Ints

    @property
    def link(self) -> Ints:
        return self.arc >> 1

    @property
    def tail(self) -> Ints:
        return self.arrays.tail[self.arc]

    @property
    def head(self) -> Ints:
        return self.arrays.head[self.arc]

    @property
    def rate(self) -> Floats:
        return self.arrays.rate[self.topic]

    @property
    def subscribers(self) -> Floats:
        """|T^k| of each pair's topic."""
        return np.diff(self.arrays.request_start)[self.topic].astype(np.float64)

    def ends_at_client(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether the arc can serve only the client it leads to."""
        return ~self.arrays.is_broker[self.head]


def own_pairs(arrays: Arrays, keep: Flags | None = None) -> tuple[Ints, Ints]:
    """Topic and arc of every pair that the corrected formulations have: own source, own subscribers, enough room.

    ``keep`` says, per topic and arc, which pairs are wanted at all.
    """
    allowed = [arrays.usable(topic) & (True if keep is None else keep[topic]) for topic in range(arrays.topics)]
    found = [np.flatnonzero(flags) for flags in allowed]
    counts = [len(arcs) for arcs in found]
    topics = np.repeat(np.arange(arrays.topics, dtype=np.int64), counts)
    return topics, (np.concatenate(found) if found else np.zeros(0, np.int64))


def node_rows(arrays: Arrays, topic: Ints, node: Ints) -> tuple[Ints, Ints, Ints]:
    """Distinct (topic, node) among those given: their topics, their nodes, and the place of each one given."""
    keys, place = np.unique(topic * arrays.nodes + node, return_inverse=True)
    return keys // arrays.nodes, keys % arrays.nodes, place.reshape(-1)


def extract(formulation: Formulation, solution: Floats) -> Trees:
    """The trees of a solution; a request that its own source does not reach is unmet, whatever the program says."""
    arrays = formulation.arrays
    flow = np.bincount(formulation.flow_pair, weights=solution[formulation.flow], minlength=len(formulation.arc))
    carries = np.flatnonzero((flow > _FLOW) & (solution[formulation.use] > 0.5))
    leaving: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(arrays.topics)]
    for topic, arc in zip(formulation.topic[carries].tolist(), formulation.arc[carries].tolist(), strict=True):
        leaving[topic][int(arrays.tail[arc])].append(arc)
    result = no_trees(arrays)
    wanted = solution[formulation.unmet] < 0.5
    for topic, arcs in enumerate(leaving):
        result.entering[topic] = tree_within(arrays, topic, arcs)
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            reached = int(arrays.request_node[request]) in result.entering[topic]
            result.served[request] = reached and wanted[request]
    return result.pruned(arrays)


def tree_within(arrays: Arrays, topic: int, leaving: dict[int, list[int]]) -> dict[int, int]:
    """The arc that enters each node on its cheapest way from a source, along the arcs given by tail."""
    sources = frozenset(arrays.sources(topic).tolist())
    best = dict.fromkeys(sources, 0.0)
    tree: dict[int, int] = {}
    heap = [(0.0, source) for source in sorted(sources)]
    done: set[int] = set()
    while heap:
        cost, node = heapq.heappop(heap)
        if node in done or not (node in sources or arrays.is_broker[node]):
            continue
        done.add(node)
        for arc in leaving.get(node, ()):
            there = int(arrays.head[arc])
            reached = cost + float(arrays.cost[arc >> 1])
            if there not in sources and there not in done and reached < best.get(there, np.inf):
                best[there] = reached
                tree[there] = arc
                heapq.heappush(heap, (reached, there))
    return tree


def embed(formulation: Formulation, trees: Trees) -> tuple[Ints, Floats]:
    """Trees as values of the columns ζ and u, from which HiGHS computes the rest: column numbers and values."""
    used = np.zeros((formulation.arrays.topics, formulation.arrays.arcs), np.bool_)
    for topic, tree in enumerate(trees.entering):
        used[topic, list(tree.values())] = True
    numbers = np.concatenate([formulation.use, formulation.unmet])
    values = np.concatenate([used[formulation.topic, formulation.arc], ~trees.served]).astype(np.float64)
    return numbers, values
