"""What the formulations are written over: pairs of a topic and an arc it may use, and the balance of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.models.program import Program


@dataclass(slots=True, eq=False)
class Frame:
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


def request_of(arrays: Arrays) -> dict[tuple[int, int], int]:
    """The request of a (topic, node)."""
    return {
        (int(topic), int(node)): request
        for request, (topic, node) in enumerate(zip(arrays.request_topic, arrays.request_node, strict=True))
    }
