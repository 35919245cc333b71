"""A feasible plan, fast: requests are served one after the other over the cheapest way that is still free.

The cheapest way joins the topic's own tree wherever that is best; links of the tree take no more capacity.  Every
limit of the instance is kept: capacity, connections, duplications, latency.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tieline.plan.arrays import TOLERANCE, Arrays, Flags, Floats, Ints
from tieline.plan.kernels.shortest import leaving, spread
from tieline.plan.routes import Trees, load, no_trees


class Builder:
    """Trees that grow request by request."""

    def __init__(self, arrays: Arrays, trees: Trees | None = None) -> None:
        self.arrays = arrays
        self.trees = no_trees(arrays) if trees is None else trees
        self.room: Floats = arrays.capacity * (1 + TOLERANCE) - load(arrays, self.trees)
        self._entering = np.empty(arrays.nodes, np.int64)
        self._limited = bool((arrays.max_connections >= 0).any())
        #: How many topics use each link; kept for the limits on connections.
        self.users: Ints = np.zeros(arrays.links, np.int64)
        for tree in self.trees.entering:
            for arc in tree.values():
                self.users[arc >> 1] += 1

    def serve(self, request: int, weight: Floats | None = None) -> bool:
        """Serve a request over the cheapest free way; ``weight`` per arc replaces the cost in choosing it."""
        arrays = self.arrays
        topic = int(arrays.request_topic[request])
        cost = arrays.arc_cost() if weight is None else weight
        if self._try(request, topic, cost):
            return True
        # a way that is too slow may have a faster one beside it
        return bool(np.isfinite(arrays.max_latency[topic])) and self._try(request, topic, np.repeat(arrays.latency, 2))

    def _try(self, request: int, topic: int, cost: Floats) -> bool:
        arrays = self.arrays
        tree = self.trees.entering[topic]
        source, target = int(arrays.source[topic]), int(arrays.request_node[request])
        if target in tree:
            self._add(request, ())
            return True
        free = np.repeat(self.room >= arrays.rate[topic], 2)
        if self._limited:
            free &= self._connectable()
        weight = np.where(free, cost, np.inf)
        distance, is_fixed = self._labels(topic, cost)
        relays = arrays.is_broker.copy()
        relays[source] = True
        n_max = arrays.instance.n_max
        if n_max is not None:
            for node, count in _fanout(arrays, tree).items():
                relays[node] = relays[node] and (count < n_max or not arrays.is_broker[node])
        self._entering.fill(-1)
        spread(leaving(arrays), relays, weight, distance, self._entering, is_fixed, target)
        if not np.isfinite(distance[target]):
            return False
        path: list[int] = []
        node = target
        while not is_fixed[node]:
            path.append(int(self._entering[node]))
            node = int(arrays.tail[path[-1]])
        if not self._in_time(topic, path, node) or (self._limited and not self._connects(path)):
            return False
        self._add(request, path)
        return True

    def serve_over(self, request: int, way: Sequence[int]) -> bool:
        """Serve a request over a given way from its source, if that agrees with the tree and every limit."""
        arrays = self.arrays
        topic = int(arrays.request_topic[request])
        tree = self.trees.entering[topic]
        shared = 0
        while shared < len(way) and tree.get(int(arrays.head[way[shared]])) == way[shared]:
            shared += 1
        path = list(way[shared:])
        if any(int(arrays.head[arc]) in tree or self.room[arc >> 1] < arrays.rate[topic] for arc in path):
            return False
        joint = int(arrays.tail[path[0]]) if path else int(arrays.request_node[request])
        n_max = arrays.instance.n_max
        if path and n_max is not None and arrays.is_broker[joint] and _fanout(arrays, tree).get(joint, 0) >= n_max:
            return False
        if not self._in_time(topic, path, joint) or (self._limited and not self._connects(path)):
            return False
        self._add(request, path)
        return True

    def _add(self, request: int, path: Sequence[int]) -> None:
        arrays = self.arrays
        topic = int(arrays.request_topic[request])
        for arc in path:
            self.trees.entering[topic][int(arrays.head[arc])] = arc
            self.room[arc >> 1] -= arrays.rate[topic]
            self.users[arc >> 1] += 1
        self.trees.served[request] = True

    def drop(self, request: int) -> None:
        """Leave a request unmet, and free the links that served nobody else."""
        arrays, trees = self.arrays, self.trees
        topic = int(arrays.request_topic[request])
        trees.served[request] = False
        tree = trees.entering[topic]
        kept = set(map(int, arrays.subscribers(topic)[self._flags(topic)]))
        fanout = _fanout(arrays, tree)
        node = int(arrays.request_node[request])
        while node in tree and node not in kept and not fanout.get(node):
            arc = tree.pop(node)
            self.room[arc >> 1] += arrays.rate[topic]
            self.users[arc >> 1] -= 1
            node = int(arrays.tail[arc])
            fanout[node] -= 1

    def _flags(self, topic: int) -> Flags:
        return self.trees.served[self.arrays.request_start[topic] : self.arrays.request_start[topic + 1]]

    def _labels(self, topic: int, cost: Floats) -> tuple[Floats, Flags]:
        """Distances of the nodes that the topic already reaches; they are fixed, since their subscribers are served."""
        arrays = self.arrays
        tree = self.trees.entering[topic]
        distance = np.full(arrays.nodes, np.inf)
        distance[arrays.source[topic]] = 0.0
        is_fixed = np.zeros(arrays.nodes, np.bool_)
        is_fixed[arrays.source[topic]] = True
        for node in tree:
            way = []
            while not is_fixed[node]:
                way.append(tree[node])
                node = int(arrays.tail[tree[node]])
            for arc in reversed(way):
                distance[arrays.head[arc]] = distance[arrays.tail[arc]] + cost[arc]
                is_fixed[arrays.head[arc]] = True
        return distance, is_fixed

    def _connectable(self) -> Flags:
        """Arcs whose link is in use, or may be opened at both ends."""
        arrays = self.arrays
        in_use = self.users > 0
        count = np.bincount(arrays.tail[np.repeat(in_use, 2)], minlength=arrays.nodes)
        is_open = (arrays.max_connections < 0) | (count < arrays.max_connections)
        return np.repeat(in_use, 2) | (is_open[arrays.tail] & is_open[arrays.head])

    def _connects(self, path: Sequence[int]) -> bool:
        """Whether all links of a way may be opened together: a broker in the middle of it opens two."""
        arrays = self.arrays
        in_use = self.users > 0
        in_use[[arc >> 1 for arc in path]] = True
        count = np.bincount(arrays.tail[np.repeat(in_use, 2)], minlength=arrays.nodes)
        return bool(((arrays.max_connections < 0) | (count <= arrays.max_connections)).all())

    def _in_time(self, topic: int, path: Sequence[int], joint: int) -> bool:
        arrays = self.arrays
        bound = float(arrays.max_latency[topic])
        if not np.isfinite(bound):
            return True
        tree = self.trees.entering[topic]
        total = sum(float(arrays.latency[arc >> 1]) for arc in path)
        while joint in tree:
            total += float(arrays.latency[tree[joint] >> 1])
            joint = int(arrays.tail[tree[joint]])
        return total <= bound * (1 + TOLERANCE)


def greedy(arrays: Arrays, order: Sequence[int] | Ints | None = None, weight: Floats | None = None) -> Trees:
    """A feasible plan: requests in the order given, by default the most urgent and then the smallest rates first."""
    builder = Builder(arrays)
    if order is None:
        topic = arrays.request_topic
        order = np.lexsort((topic, arrays.rate[topic], -arrays.weight[topic]))
    for request in order:
        builder.serve(int(request), weight)
    return worthwhile(builder)


def worthwhile(builder: Builder) -> Trees:
    """The trees of a builder without requests whose way costs more than leaving them unmet."""
    arrays, trees = builder.arrays, builder.trees
    for request in np.flatnonzero(trees.served):
        way = sum(float(arrays.cost[arc >> 1]) for arc in trees.path(arrays, int(request)))
        if way > arrays.price[arrays.request_topic[request]]:
            builder.drop(int(request))
    return trees


def repaired(arrays: Arrays, trees: Trees, prices: Floats) -> Trees:
    """A feasible plan close to given trees."""
    builder = Builder(arrays)
    weight = arrays.arc_cost()
    wanted = []
    for request in range(arrays.requests):
        way = trees.path(arrays, request) if trees.served[request] else []
        wanted.append((not way, -arrays.price[arrays.request_topic[request]], sum(weight[way]), request, way))
    wanted.sort(key=lambda one: one[:4])
    left = [request for *_, request, way in wanted if not (way and builder.serve_over(request, way[::-1]))]
    for request in left:
        topic = arrays.request_topic[request]
        builder.serve(request, weight + np.repeat(prices * arrays.rate[topic], 2))
    return worthwhile(builder)


def _fanout(arrays: Arrays, tree: dict[int, int]) -> dict[int, int]:
    count: dict[int, int] = {}
    for arc in tree.values():
        tail = int(arrays.tail[arc])
        count[tail] = count.get(tail, 0) + 1
    return count
