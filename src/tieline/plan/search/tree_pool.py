"""Trees that were seen in a search, each once, to choose from later."""

from __future__ import annotations

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats, Ints
from tieline.plan.kernels.network import Net, Small
from tieline.plan.kernels.state import State
from tieline.plan.kernels.tree_choice import Candidates
from tieline.plan.routes import Trees, no_trees


class TreePool:
    """Trees of an instance; a tree has a number, in the order in which they came."""

    def __init__(self, arrays: Arrays, net: Net) -> None:
        self._arrays = arrays
        self._net = net
        self._limited = np.isfinite(arrays.capacity)
        #: Per topic: numbers of its trees, by the arcs by which nodes are entered and by who is served.
        self._numbers: list[dict[bytes, int]] = [{} for _ in range(arrays.topics)]
        self._topic: list[int] = []
        self._cost: list[float] = []
        self._links: list[Ints] = []
        self._entering: list[Small] = []
        self._served: list[Flags] = []

    def __len__(self) -> int:
        return len(self._cost)

    def add(self, state: State) -> Ints:
        """Take in the trees that stand; their numbers, one for each topic."""
        numbers = np.empty(self._arrays.topics, np.int64)
        start = self._arrays.request_start.tolist()
        for topic, entering in enumerate(np.ascontiguousarray(state.entering.T)):
            served = state.served[start[topic] : start[topic + 1]]
            key = entering.tobytes() + served.tobytes()
            number = self._numbers[topic].get(key)
            if number is None:
                number = self._numbers[topic][key] = len(self)
                nodes = np.flatnonzero(entering >= 0)
                links = entering[nodes].astype(np.int64) >> 1
                unmet = len(served) - int(served.sum())
                cost = self._net.cost[links] @ state.through[nodes, topic] + unmet * self._net.price[topic]
                self._topic.append(topic)
                self._cost.append(float(cost))
                self._links.append(links[self._limited[links]])
                # a copy: the others in its array need not stay
                self._entering.append(entering.copy())
                self._served.append(served.copy())
            numbers[topic] = number
        return numbers

    def candidates(self, prices: Floats) -> tuple[Candidates, Ints]:
        """All of them to choose from, and the number of each tree there; capacity is worth ``prices``."""
        topic, cost = np.array(self._topic), np.array(self._cost)
        order = np.lexsort((cost, topic))
        topic, cost = topic[order], cost[order]
        links = [self._links[number] for number in order]
        counts = np.array([len(each) for each in links], np.int64)
        joined = np.concatenate(links)
        uses = np.zeros((len(order), self._arrays.links), np.bool_)
        tree = np.repeat(np.arange(len(order)), counts)
        uses[tree, joined] = True
        dear = cost + self._net.rate[topic] * np.bincount(tree, prices[joined], len(order))
        candidates = Candidates(
            first=np.searchsorted(topic, np.arange(self._arrays.topics + 1)).astype(np.int64),
            cost=cost,
            likely=np.lexsort((dear, topic)),
            link_first=np.concatenate(([0], np.cumsum(counts))),
            link=joined,
            uses=uses,
            rate=self._net.rate,
            capacity=self._net.capacity,
        )
        return candidates, order

    def trees(self, numbers: Ints) -> Trees:
        """The plan that has these trees, one for each topic."""
        arrays = self._arrays
        trees = no_trees(arrays)
        for topic, number in enumerate(numbers.tolist()):
            entering = self._entering[number]
            nodes = np.flatnonzero(entering >= 0)
            trees.entering[topic] = dict(zip(nodes.tolist(), entering[nodes].tolist(), strict=True))
            trees.served[arrays.request_start[topic] : arrays.request_start[topic + 1]] = self._served[number]
        return trees
