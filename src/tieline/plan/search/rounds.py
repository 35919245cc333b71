"""Small instances in rounds: a short search, more trees by chance, and the best choice among all that were seen.

A search of a small, tight instance soon stands in a place that it cannot leave: many topics would have to change at
once.  Their trees, though, have mostly been seen by then, in this search or in another one, or come up by chance; what
is missing is the combination.  So every round begins anew, adds what it sees to one pool, and then chooses from it,
by turns from the best plan on and from its own.

A search that leaves somebody unmet may have missed that everybody fits: then requests push each other about
(:mod:`tieline.plan.kernels.eject`), and if more are served after that, the search goes on from there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Lock
from typing import Final

import numpy as np

from tieline.plan.arrays import Arrays, Ints
from tieline.plan.kernels.chance import seeded
from tieline.plan.kernels.eject import eject
from tieline.plan.kernels.network import net
from tieline.plan.kernels.random_trees import reroute_some, route_each_alone
from tieline.plan.kernels.state import empty_state, overwrite, state_of, trees_of
from tieline.plan.kernels.tree_choice import choose_trees, empty_placement
from tieline.plan.kernels.ways import scratch
from tieline.plan.plan import gap
from tieline.plan.routes import Trees
from tieline.plan.run import Progress, Run
from tieline.plan.search.dual import Dual, has_threads
from tieline.plan.search.neighbourhood import Found, Searcher, rate_scale
from tieline.plan.search.tree_pool import TreePool

#: Iterations of each search, requests that are taken off together there, sets of trees by chance, sets of trees for
#: the room in the best plan, topics that leave it for that, and moves among trees.
_ITERATIONS: Final = 800
_LARGEST: Final = 28
_LONE_SETS: Final = 20
_FITTING_SETS: Final = 50
_LEAVING: Final = 10
_MOVES: Final = 20_000
#: Steps in which requests push each other about, what the weight of one costs there and how strong chance is, in mean
#: costs of a link, and iterations of the search after that.
_PUSHES: Final = 1_500
_PUSH: Final = 0.4
_NOISE: Final = 0.3
_MENDING: Final = 400
#: What the largest mean surcharge on a link is, in costs of a unit of rate, and the temperatures at the start and at
#: the end of the moves, in mean costs of a link.
_SURCHARGE: Final = 1.0
_HOT: Final = 0.5
_COOL: Final = 0.1
#: Rounds at most, and rounds without a better plan after which more of them will hardly help; only one if the gap is so
#: small a share that a proof is near.
_ROUNDS: Final = 40
_PATIENCE: Final = 8
_CLOSE: Final = 0.005
#: How far apart the seeds of the two lanes are.
_APART: Final = 1 << 20


def in_rounds(arrays: Arrays, run: Run) -> Found:
    """The best plan of two lanes of rounds, with the better of their bounds.

    The lanes know nothing of each other, so that the same seed gives the same plan, as long as time allows.  The second
    one begins when the first round of the first one has not proven its plan.
    """
    given_up, lock = Event(), Lock()

    def tell(word: Progress) -> None:
        # lanes speak at the same time
        with lock:
            if run.listener is not None:
                run.listener(word)

    shared = run.heard_by(None if run.listener is None else tell).stopped_by(
        lambda: given_up.is_set() or (run.stop is not None and run.stop())
    )
    lanes = [Rounds(arrays, shared.part(seed=run.seed + number * _APART)) for number in range(2)]
    first, second = lanes
    first.round()
    if first.is_over:
        return first.found()
    if has_threads():
        with ThreadPoolExecutor(1, "tieline-plan-rounds") as threads:
            other = threads.submit(second.go_on)
            try:
                first.go_on()
                other.result()
            except BaseException:
                # leaving this block waits for the thread
                given_up.set()
                raise
    else:
        first.go_on()
        second.go_on()
    better = min(lanes, key=lambda lane: lane.value).found()
    return replace(
        better,
        bound=max(lane.bound for lane in lanes),
        iterations=sum(lane.iterations for lane in lanes),
        dual_steps=sum(lane.dual.steps for lane in lanes),
    )


class Rounds:
    """One lane: rounds until the plan is proven, the time is over, or nothing better comes."""

    def __init__(self, arrays: Arrays, run: Run) -> None:
        self.arrays = arrays
        self.run = run
        self.net = net(arrays)
        self.scratch = scratch(arrays)
        self.dual = Dual(arrays, self.net)
        self.pool = TreePool(arrays, self.net)
        #: Where trees by chance stand; they need not fit together.
        self.drawn = empty_state(arrays, self.net)
        # where links cost nothing there is no temperature either, but it must not be zero
        self.mean = max(1e-9, float(arrays.cost.mean())) if arrays.links else 1.0
        self.chance = seeded(run.seed)
        #: The best plan as numbers of trees, what it is worth, and what no plan can beat; the plan of this round.
        self.best: Ints = np.zeros(0, np.int64)
        self.value = np.inf
        self.own: Ints = np.zeros(0, np.int64)
        self.bound = -np.inf
        self.iterations = 0
        #: Rounds so far, and those since the last better plan.
        self.done = self.idle = 0

    def go_on(self) -> None:
        """One more round, and others until it is over."""
        self.round()
        while not self.is_over:
            self.round()

    def round(self) -> None:
        """Search, draw more trees by chance, and choose among all that were seen."""
        before = self.value
        self._search()
        # limits on connections tie topics together in a way that a choice of trees does not see
        if self.arrays.topics and self.arrays.links and not self.net.counts_connections and not self._is_stopped():
            self._add_lone_trees()
            self._add_fitting_trees()
            self._choose_trees(self.own if self.done % 2 else self.best)
        self.idle = 0 if self.value < before else self.idle + 1
        self.done += 1

    @property
    def is_over(self) -> bool:
        """Whether another round would hardly help."""
        patience = 1 if gap(self.value, self.bound) <= _CLOSE else _PATIENCE
        return self.done == _ROUNDS or self.idle >= patience or self._is_stopped()

    def found(self) -> Found:
        """The best plan so far."""
        return Found(
            trees=self.pool.trees(self.best),
            bound=self.bound,
            prices=self.dual.insight().prices,
            iterations=self.iterations,
            dual_steps=self.dual.steps,
        )

    def _search(self) -> None:
        """A search from the beginning, with the prices that are known by now; another one if more can be served."""
        searcher = self._searched(_ITERATIONS, None)
        if searcher.state.served.all() or self._is_stopped():
            return
        push, noise = _PUSH * self.mean, _NOISE * self.mean
        if eject(self.net, searcher.state, self.scratch, self.chance, _PUSHES, push, noise):
            self._searched(_MENDING, trees_of(self.arrays, searcher.state))

    def _searched(self, iterations: int, start: Trees | None) -> Searcher:
        """A search from a start; its plan, which stands then, is that of the round."""
        part = self.run.part(iterations=iterations, seed=self.run.seed + self.done)
        searcher = Searcher(
            self.arrays, part, self.dual, start=start, polishes=False, largest=_LARGEST, seen=self.pool.add
        )
        found = searcher.search()
        self.iterations += found.iterations
        self.bound = found.bound
        self.own = self.pool.add(searcher.state)
        if searcher.best < self.value:
            self.best, self.value = self.own, searcher.best
        return searcher

    def _add_lone_trees(self) -> None:
        """Trees by chance around the prices."""
        worth = self.dual.insight().prices
        surcharge = _SURCHARGE * rate_scale(self.arrays)
        for _ in range(_LONE_SETS):
            route_each_alone(self.net, self.drawn, self.scratch, self.chance, worth, surcharge)
            self.pool.add(self.drawn)

    def _add_fitting_trees(self) -> None:
        """Trees for the room that others leave in the best plan."""
        plan = state_of(self.arrays, self.net, self.pool.trees(self.best))
        for number in range(_FITTING_SETS):
            overwrite(self.drawn, plan)
            size = 2 + number % (_LEAVING - 1)
            reroute_some(self.net, self.drawn, self.scratch, self.chance, size, _NOISE * self.mean)
            self.pool.add(self.drawn)

    def _choose_trees(self, start: Ints) -> None:
        """A better choice among all trees, from a plan on."""
        candidates, numbers = self.pool.candidates(self.dual.insight().prices)
        place = np.empty(len(numbers), np.int64)
        place[numbers] = np.arange(len(numbers))
        chosen = place[start]
        best = chosen.copy()
        hot, cool = _HOT * self.mean, _COOL * self.mean
        value = choose_trees(candidates, empty_placement(candidates), chosen, best, self.chance, _MOVES, hot, cool)
        if value < self.value:
            self.best, self.value = numbers[best], value
            self._tell()

    def _is_stopped(self) -> bool:
        return gap(self.value, self.bound) == 0.0 or self.run.must_end

    def _tell(self) -> None:
        if self.run.listener is not None:
            unmet = int((~self.pool.trees(self.best).served).sum())
            self.run.tell("choose", objective=self.value, unmet=unmet, bound=self.bound)
