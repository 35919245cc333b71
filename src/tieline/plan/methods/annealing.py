"""The paper's simulated annealing, after Wei et al. (2014), modified as little as possible, kept for comparison.

A state gives every request one way of a few candidates.  A link that is used beyond its capacity costs a fixed amount;
that is the paper's modification.  A move gives one request another way; worse states are accepted with a probability
that falls as the temperature does.  The best state without overload is the answer; if there is none, nobody is served,
and the paper's table says n.a.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from tieline.plan.arrays import TOLERANCE, Arrays, Floats
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.kernels.shortest import distances
from tieline.plan.models.formulation import tree_within
from tieline.plan.plan import Plan
from tieline.plan.routes import Trees, no_trees
from tieline.plan.run import Run

#: Candidate ways per request: the cheapest, and cheapest ones at costs disturbed at random.
_WAYS = 6
_COOLING = 0.95
#: Moves between two looks at the clock.
_ASK = 256


def annealing(arrays: Arrays, run: Run, *, rounds: int = 120, moves: int | None = None) -> Plan:
    """The paper's annealing: so many rounds of cooling, each of so many moves (by default 20 per request)."""
    rng = np.random.default_rng(run.seed)
    state = _State(arrays, _candidates(arrays, rng, run))
    best: list[int] | None = None
    best_value = np.inf
    best_seconds = 0.0
    heat = max(1.0, float(arrays.cost.mean()) * 10) if arrays.links else 1.0
    per_round = 20 * arrays.requests if moves is None else moves
    is_interrupted = False
    movable = [request for request, ways in enumerate(state.ways) if len(ways) > 1]
    for _ in range(rounds):
        for number in range(per_round if movable else 1):
            is_interrupted = number % _ASK == 0 and run.must_end
            if is_interrupted:
                break
            if movable:
                request = movable[int(rng.integers(len(movable)))]
                change = state.move(request, int(rng.integers(len(state.ways[request]))))
                if change > 0 and rng.random() >= math.exp(-change / heat):
                    state.undo()
            if state.overloaded == 0 and state.cost < best_value - 1e-9:
                best, best_value, best_seconds = list(state.chosen), state.cost, run.elapsed
        if is_interrupted:
            break
        heat *= _COOLING
    plan = certified(
        arrays,
        no_trees(arrays) if best is None else _trees(arrays, state.ways, best),
        method="annealing",
        bound=shortest_paths_bound(arrays),
        seconds=run.elapsed,
        is_interrupted=is_interrupted,
        notes={"found_feasible": float(best is not None), "best_seconds": best_seconds},
    )
    return run.told(plan)


class _State:
    """One way per request, the load it makes, and its cost with a fixed amount per overloaded link."""

    def __init__(self, arrays: Arrays, ways: list[list[list[int]]]) -> None:
        self.arrays = arrays
        self.ways = ways
        self.chosen = [0] * arrays.requests
        self.room: Floats = arrays.capacity * (1 + TOLERANCE)
        #: Per topic and link, how many of its ways use the link: the load counts once.
        self.users: list[dict[int, int]] = [{} for _ in range(arrays.topics)]
        self.overloaded = 0
        self.cost = 0.0
        #: What one overloaded link costs: more than the dearest link for everybody.
        self.fine = float(arrays.cost.max(initial=1.0)) * 10
        self._last = (0, 0)
        for request in range(arrays.requests):
            self._add(request, +1)

    def move(self, request: int, way: int) -> float:
        """Take another way; by how much the state became dearer, fines included."""
        before = self.cost + self.fine * self.overloaded
        self._last = (request, self.chosen[request])
        self._add(request, -1)
        self.chosen[request] = way
        self._add(request, +1)
        return self.cost + self.fine * self.overloaded - before

    def undo(self) -> None:
        self.move(*self._last)

    def _add(self, request: int, sign: int) -> None:
        arrays = self.arrays
        topic = int(arrays.request_topic[request])
        users = self.users[topic]
        ways = self.ways[request]
        if not ways:
            self.cost += sign * float(arrays.price[topic])
            return
        for arc in ways[self.chosen[request]]:
            link = arc >> 1
            self.cost += sign * float(arrays.cost[link])
            count = users.get(link, 0) + sign
            users[link] = count
            if count == (1 if sign > 0 else 0):
                was_over = self.room[link] < 0
                self.room[link] -= sign * arrays.rate[topic]
                self.overloaded += int(self.room[link] < 0) - int(was_over)


def _candidates(arrays: Arrays, rng: Generator, run: Run) -> list[list[list[int]]]:
    """A few different ways per request, the cheapest first; none if its source cannot reach it.

    When the time is over, the cheapest way must do.
    """
    ways: list[list[list[int]]] = [[] for _ in range(arrays.requests)]
    cost = arrays.arc_cost()
    entering = np.empty(arrays.nodes, np.int64)
    for topic in range(arrays.topics):
        fits = np.repeat(arrays.fits(topic), 2)
        for attempt in range(1 if run.must_end else _WAYS):
            disturbed = cost * (1.0 if attempt == 0 else rng.uniform(0.2, 3.0, arrays.arcs)) + 1e-9
            entering.fill(-1)
            reached = distances(arrays, topic, np.where(fits, disturbed, np.inf), entering)
            for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
                node = int(arrays.request_node[request])
                if not np.isfinite(reached[node]):
                    continue
                way: list[int] = []
                while entering[node] >= 0:
                    way.append(int(entering[node]))
                    node = int(arrays.tail[way[-1]])
                if way not in ways[request]:
                    ways[request].append(way)
    return ways


def _trees(arrays: Arrays, ways: list[list[list[int]]], chosen: list[int]) -> Trees:
    """The cheapest trees inside the links that the chosen ways use."""
    result = no_trees(arrays)
    for topic in range(arrays.topics):
        leaving: dict[int, list[int]] = {}
        for request in range(arrays.request_start[topic], arrays.request_start[topic + 1]):
            if ways[request]:
                result.served[request] = True
                for arc in ways[request][chosen[request]]:
                    leaving.setdefault(int(arrays.tail[arc]), []).append(arc)
        result.entering[topic] = tree_within(arrays, topic, leaving)
    return result.pruned(arrays)
