"""Between a program's columns and trees: routes read from a solution, and a plan written as a starting point.

ζ costs nothing in F1, so ζ may be 1 where nothing flows: routes are read from x.  Flow can also run in circles where
links cost nothing.  The cheapest ways inside the links that carry flow are a tree, cost no more, and use no other
link.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.models.frame import Frame
from tieline.plan.routes import Trees, no_trees

#: Solvers answer within tolerances: less is no flow.
_FLOW = 1e-6


def extract(frame: Frame, solution: Floats) -> Trees:
    """The trees of a solution; a request that its own source does not reach is unmet, whatever the program says."""
    arrays = frame.arrays
    flow = np.bincount(frame.flow_pair, weights=solution[frame.flow], minlength=len(frame.arc))
    carries = np.flatnonzero((flow > _FLOW) & (solution[frame.use] > 0.5))
    leaving: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(arrays.topics)]
    for topic, arc in zip(frame.topic[carries].tolist(), frame.arc[carries].tolist(), strict=True):
        leaving[topic][int(arrays.tail[arc])].append(arc)
    result = no_trees(arrays)
    wanted = solution[frame.unmet] < 0.5
    for topic, arcs in enumerate(leaving):
        result.entering[topic] = cheapest_tree(arrays, topic, arcs)
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            reached = int(arrays.request_node[request]) in result.entering[topic]
            result.served[request] = reached and wanted[request]
    return result.pruned(arrays)


def cheapest_tree(arrays: Arrays, topic: int, leaving: dict[int, list[int]]) -> dict[int, int]:
    """The arc that enters each node on its cheapest way from the source, along the arcs given by tail."""
    source = int(arrays.source[topic])
    best = {source: 0.0}
    tree: dict[int, int] = {}
    heap = [(0.0, source)]
    done: set[int] = set()
    while heap:
        cost, node = heapq.heappop(heap)
        if node in done or not (node == source or arrays.is_broker[node]):
            continue
        done.add(node)
        for arc in leaving.get(node, ()):
            there = int(arrays.head[arc])
            reached = cost + float(arrays.cost[arc >> 1])
            if there != source and there not in done and reached < best.get(there, np.inf):
                best[there] = reached
                tree[there] = arc
                heapq.heappush(heap, (reached, there))
    return tree


def embed(frame: Frame, trees: Trees) -> tuple[Ints, Floats]:
    """Trees as values of the columns ζ and u, from which HiGHS computes the rest: column numbers and values."""
    used = np.zeros((frame.arrays.topics, frame.arrays.arcs), np.bool_)
    for topic, tree in enumerate(trees.entering):
        used[topic, list(tree.values())] = True
    numbers = np.concatenate([frame.use, frame.unmet])
    values = np.concatenate([used[frame.topic, frame.arc], ~trees.served]).astype(np.float64)
    return numbers, values
