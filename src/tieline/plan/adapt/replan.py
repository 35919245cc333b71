"""Warm re-planning: what a change does not touch stays; what it touches moves, and moves others only if it must.

Theory of operation
-------------------
A flow is the way of one request.  The rule, in this order: serve as much weight as possible (with ``unmet_cost``:
leave nobody unmet whom it pays to serve); move as few of the flows that could stay as possible; then save cost.  So
the flows whose links are gone, or whose link has become too small, are taken off; of an overloaded link those topics
go first that free it at the least loss.  They return over the cheapest free ways.  Whoever finds none asks the flows
that fill its way to move, few of them first.  If more is unmet than before the change even so, a short search may move
anything, and afterwards every flow returns to its old way where that is free.  Last, the flows that had to move choose
again among the ways that are left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.certify import certified
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance
from tieline.plan.loops.adapt import make_room
from tieline.plan.loops.negotiate import settle
from tieline.plan.loops.values import BOUNDLESS, desk, net
from tieline.plan.loops.values import search as memory
from tieline.plan.loops.ways import find, join, leave, restore
from tieline.plan.plan import Plan
from tieline.plan.routes import Hop, Route, Trees, no_trees
from tieline.plan.search.search import search
from tieline.plan.search.state import state_of, trees_of, way_of

#: Tries per unmet request to make room for it.
_TRIES = 40
#: At most so many flows move to make room for one.
_LARGEST = 12
#: Iterations of the search if that is not enough.
_ITERATIONS = 1500
#: How often flows that had to move choose again.
_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """A plan after a change, and what it took."""

    plan: Plan
    #: Requests served before and now over another way, or no longer.
    flows_moved: int
    #: Requests served before and now over the same way.
    flows_kept: int
    #: Requests served now that were not before.
    flows_added: int
    seconds: float


def replan(
    instance: Instance, before: Plan, *, seconds: float | None = None, seed: int = 0, prices: Floats | None = None
) -> Replanned:
    """The plan for a changed instance that keeps as much as possible of the plan before.

    ``prices`` are what capacity is worth, if a search found that out; ``seconds`` bounds the attempts to make room.
    """
    began = time.perf_counter()
    task = _Replanning(as_arrays(checked(instance)), before, seed, np.inf if seconds is None else began + seconds)
    task.settle(prices)
    task.make_room()
    if task.unmet_price() > before.objective - before.cost:
        task.search()
    task.choose_again()
    elapsed = time.perf_counter() - began
    plan = certified(
        task.arrays,
        trees_of(task.arrays, task.state),
        method="replan",
        bound=task.bound(),
        seconds=elapsed,
        notes={"previous": before.method},
    )
    return Replanned(plan=plan, seconds=elapsed, **compared(before, plan))


class _Replanning:
    """The plan before, as far as it still stands, and what becomes of it."""

    def __init__(self, arrays: Arrays, before: Plan, seed: int, deadline: float) -> None:
        self.arrays = arrays
        self.seed = seed
        self.deadline = deadline
        self.net = net(arrays)
        self.desk = desk(arrays)
        self.free = np.zeros(arrays.links)
        old = standing(arrays, before.routes)
        self.state = state_of(arrays, self.net, old)
        #: The ways before, target first, where they still exist.
        self.ways = {int(request): old.path(arrays, int(request)) for request in np.flatnonzero(old.served)}

    def settle(self, prices: Floats | None) -> None:
        """Take off what does not fit, and serve over free ways whom that leaves unmet."""
        settle(self.net, self.state, self.desk, self.free if prices is None else prices)

    def make_room(self) -> None:
        """Move a few flows for each request that is still unmet."""
        largest = max(2, min(_LARGEST, self.arrays.requests))
        notebook = memory(self.arrays, seed=self.seed, largest=largest, choices=1)
        scale = float(self.arrays.cost.mean()) if self.arrays.links else 1.0
        for request in np.flatnonzero(~self.state.served):
            if time.perf_counter() > self.deadline:
                return
            make_room(self.net, self.state, self.desk, notebook, int(request), self.free, scale, _TRIES)

    def unmet_price(self) -> float:
        arrays = self.arrays
        return float(arrays.price[arrays.request_topic[~self.state.served]].sum())

    def search(self) -> None:
        """A short search for a plan that serves more; its flows go home where they can."""
        left = self.deadline - time.perf_counter()
        if left <= 0:
            return
        found = search(
            self.arrays,
            seconds=left if np.isfinite(left) else None,
            iterations=_ITERATIONS,
            seed=self.seed,
            start=trees_of(self.arrays, self.state),
        )
        missed = float(self.arrays.price[self.arrays.request_topic[~found.trees.served]].sum())
        if missed < self.unmet_price():
            self.state = state_of(self.arrays, self.net, found.trees)
            self._go_home()

    def _go_home(self) -> None:
        """Put flows back on the ways they had where that needs nothing from anybody else."""
        if self.net.counts_connections or self.net.n_max != BOUNDLESS:
            return
        for request in np.flatnonzero(self.state.served).tolist():
            now, old = way_of(self.arrays, self.state, request), self.ways.get(request)
            if old is None or old == now:
                continue
            leave(self.net, self.state, request)
            way = np.array(old if self._is_free(request, old) else now, np.int32)
            restore(self.net, self.state, request, way, len(way))

    def _is_free(self, request: int, way: list[int]) -> bool:
        topic = int(self.arrays.request_topic[request])
        for arc in way:
            entering = int(self.state.entering[self.arrays.head[arc], topic])
            if entering != arc and (entering >= 0 or self.state.room[arc >> 1] < self.arrays.rate[topic]):
                return False
        return True

    def choose_again(self) -> None:
        """Flows that had to move take the cheapest way that is free now; nobody else moves."""
        for _ in range(_ROUNDS):
            for request in np.flatnonzero(self.state.served).tolist():
                now = way_of(self.arrays, self.state, request)
                if self.ways.get(request) == now:
                    continue
                leave(self.net, self.state, request)
                _, _, length = find(self.net, self.state, self.desk, request, self.free, np.inf, -1)
                if length >= 0:
                    join(self.net, self.state, self.desk, request, length)
                else:
                    # a limit hides from the search the way that it has
                    restore(self.net, self.state, request, np.array(now, np.int32), len(now))

    def bound(self) -> float:
        """Nobody is served for less than over the cheapest way."""
        arrays = self.arrays
        least = self.net.to_target[self.net.row, arrays.source[arrays.request_topic]]
        return float(np.minimum(least, arrays.price[arrays.request_topic]).sum())


def compared(before: Plan, after: Plan) -> dict[str, int]:
    """How many flows moved, were kept and were added between two plans."""
    old, new = _flows(before), _flows(after)
    kept = sum(new.get(key) == way for key, way in old.items())
    return {
        "flows_moved": len(old) - kept,
        "flows_kept": kept,
        "flows_added": sum(key not in old for key in new),
    }


def standing(arrays: Arrays, routes: tuple[Route, ...]) -> Trees:
    """What of old routes still stands in a changed instance: ways whose nodes, links and requests all exist."""
    number = {node.id: place for place, node in enumerate(arrays.instance.nodes)}
    arc_of = {
        (int(tail), int(head)): arc for arc, (tail, head) in enumerate(zip(arrays.tail, arrays.head, strict=True))
    }
    place = {topic.key: k for k, topic in enumerate(arrays.instance.topics)}
    trees = no_trees(arrays)
    for route in routes:
        topic = place.get((route.topic, route.source))
        if topic is None:
            continue
        usable = arrays.usable(topic)
        for hop in route.links:
            arc = arc_of.get((number.get(hop.tail, -1), number.get(hop.head, -1)))
            if arc is not None and usable[arc]:
                trees.entering[topic][int(arrays.head[arc])] = arc
        fed = {hop.head for hop in route.links if hop.head in hop.subscribers}
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            node = int(arrays.request_node[request])
            is_fed = arrays.instance.nodes[node].id in fed
            trees.served[request] = is_fed and _reaches(arrays, trees.entering[topic], topic, node)
    return trees.pruned(arrays)


def _reaches(arrays: Arrays, tree: dict[int, int], topic: int, node: int) -> bool:
    while node in tree:
        node = int(arrays.tail[tree[node]])
    return node == int(arrays.source[topic])


def _flows(plan: Plan) -> dict[tuple[str, str, str], tuple[tuple[str, str], ...]]:
    """The way of every served request, by topic, source and subscriber."""
    flows: dict[tuple[str, str, str], list[Hop]] = {}
    for route in plan.routes:
        for hop in route.links:
            for subscriber in hop.subscribers:
                flows.setdefault((route.topic, route.source, subscriber), []).append(hop)
    return {key: tuple(sorted((hop.tail, hop.head) for hop in hops)) for key, hops in flows.items()}
