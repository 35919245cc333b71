"""Sub-MIP polish: a few topics that compete for links are solved exactly, while all others stay where they are.

The program has only the topics, the capacity that the others leave, and links that lie on some way not much dearer
than the present one; that keeps it small enough to be solved at once at any size of the network.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.random import default_rng

from tieline.extras import is_installed
from tieline.plan.arrays import Arrays, Flags, Ints
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.instance import Instance
from tieline.plan.kernels.memory import SearchMemory, remember
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.shortest import distances
from tieline.plan.kernels.state import State, leave, restore, trees_of, way_cost
from tieline.plan.models.solve import solve_model
from tieline.plan.routes import Route, routes, trees
from tieline.plan.run import Run

#: A program has at most so many topics and pairs of a topic and an arc.
_TOPICS = 6
_PAIRS = 800
#: Ways may be dearer than the present one by this share.
_DETOUR = 0.25
#: A program gets at most so many seconds.
_SECONDS = 2.0


class Polisher:
    """Groups of topics, one after the other."""

    def __init__(self, arrays: Arrays, net: Net, state: State, seed: int) -> None:
        self.arrays = arrays
        self.net = net
        self.state = state
        self._random = default_rng(seed)
        self._cost = arrays.arc_cost()
        #: Limits on connections tie all topics together: what the others leave is then no instance.
        self.is_useful = not net.counts_connections and arrays.topics > 1 and _has_highs()

    def polish(self, memory: SearchMemory, run: Run) -> bool:
        """Solve one group; whether that made the plan better.  The best plan must stand."""
        topics = self._group()
        if len(topics) < 2:
            return False
        part = self._instance(topics)
        small = as_arrays(part)
        own = {self.arrays.instance.topics[topic].key for topic in topics}
        present = [route for route in routes(self.arrays, trees_of(self.arrays, self.state)) if _key(route) in own]
        left, seed = run.left, int(self._random.integers(1 << 30))
        # the group has a seed of its own, and nobody hears of it or ends it
        alone = Run(seconds=None if left is None else min(left, _SECONDS), seed=seed)
        plan = solve_model(small, alone, model="f1", start=trees(small, present))
        before = self._value(topics)
        self._replace(topics, plan.routes, memory)
        after = self._value(topics)
        memory.value[0] += after - before
        if after < before - 1e-9 * max(1.0, abs(before)):
            remember(self.net, self.state, memory)
            return True
        return False

    def _group(self) -> list[int]:
        """A topic that pays for a detour or is unmet, and topics that share full links with it."""
        arrays, state = self.arrays, self.state
        harmed = [
            request
            for request in self._random.permutation(arrays.requests)[:64].tolist()
            if not state.served[request] or way_cost(self.net, state, request) > self._least(request) + 1e-9
        ]
        if not harmed:
            return []
        first = int(arrays.request_topic[harmed[0]])
        reach = self._reach(first)
        full = reach & np.repeat(state.room < np.median(arrays.rate), 2)
        sharers = np.zeros(arrays.topics, np.int64)
        for arc in np.flatnonzero(full):
            sharers += state.entering[arrays.head[arc]] == arc
        sharers[first] = 0
        order = np.argsort(-sharers + self._random.random(arrays.topics), kind="stable")
        group, pairs = [first], int(reach.sum())
        for topic in order[: 3 * _TOPICS].tolist():
            more = int(self._reach(topic).sum())
            if sharers[topic] > 0 and len(group) < _TOPICS and pairs + more <= _PAIRS:
                group.append(topic)
                pairs += more
        return group

    def _least(self, request: int) -> float:
        return float(self.net.to_target[self.net.row[request], self.arrays.source[self.arrays.request_topic[request]]])

    def _reach(self, topic: int) -> Flags:
        """Arcs on ways that are not much dearer than the present ones."""
        arrays, net = self.arrays, self.net
        from_source = distances(arrays, topic, np.where(np.repeat(arrays.fits(topic), 2), self._cost, np.inf))
        reach = np.zeros(arrays.arcs, np.bool_)
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            least = self._least(request)
            now = way_cost(net, self.state, request) if self.state.served[request] else 1.5 * least
            guide = net.to_target[net.row[request]]
            reach |= from_source[arrays.tail] + self._cost + guide[arrays.head] <= max(now, least) * (1 + _DETOUR)
        return reach & arrays.usable(topic)

    def _instance(self, topics: list[int]) -> Instance:
        """The group alone, in what the other topics leave."""
        arrays, state = self.arrays, self.state
        whole = arrays.instance
        room = np.maximum(0.0, state.room)
        wide = np.zeros(arrays.arcs, np.bool_)
        for topic in topics:
            nodes = np.flatnonzero(state.entering[:, topic] >= 0)
            used: Ints = state.entering[nodes, topic].astype(np.int64)
            room[used >> 1] += arrays.rate[topic]
            wide[used] = True
            wide |= self._reach(topic)
        links = np.flatnonzero(wide[0::2] | wide[1::2])
        return msgspec.structs.replace(
            whole,
            links=tuple(
                msgspec.structs.replace(whole.links[link], capacity=float(room[link])) for link in links.tolist()
            ),
            topics=tuple(whole.topics[topic] for topic in topics),
        )

    def _value(self, topics: list[int]) -> float:
        total = 0.0
        for topic in topics:
            for request in range(self.arrays.request_start[topic], self.arrays.request_start[topic + 1]):
                served = self.state.served[request]
                total += way_cost(self.net, self.state, request) if served else float(self.arrays.price[topic])
        return total

    def _replace(self, topics: list[int], found: tuple[Route, ...], memory: SearchMemory) -> None:
        """Let the group's topics take the routes found."""
        arrays = self.arrays
        new = trees(arrays, found)
        requests = [r for k in topics for r in range(arrays.request_start[k], arrays.request_start[k + 1])]
        for request in requests:
            if self.state.served[request]:
                leave(self.net, self.state, request)
        for request in requests:
            if new.served[request]:
                way = np.array(new.path(arrays, request), np.int32)
                restore(self.net, self.state, request, way, len(way))
            if not memory.is_dirty[request]:
                memory.is_dirty[request] = True
                memory.dirty[memory.dirty_count[0]] = request
                memory.dirty_count[0] += 1


def _key(route: Route) -> tuple[str, str]:
    return route.topic, route.source


def _has_highs() -> bool:
    return is_installed("highspy")
