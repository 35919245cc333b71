"""The heuristic we ship: negotiation first, then neighbourhood search beside a rising bound, until the time is over.

Theory of operation
-------------------
A first plan serves requests one after the other; negotiated congestion gives a better one, and, from prices of the
dual, a much better one.  Then there are two kinds of work: steps of the dual, which raise the bound and tell what
capacity is worth, and iterations of the neighbourhood search, which use that worth at first and only the objective
later.  When the search stands still, small groups of topics are solved exactly while the others stay (the polish).

Where iterations are counted, both kinds of work alternate, so that the same seed and number of iterations give the same
plan.  Where only seconds count and the instance is large, the dual runs beside the search in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Arrays, Floats
from tieline.plan.certify import raised
from tieline.plan.instance import has_whole_costs
from tieline.plan.kernels.anneal import CHOICES, anneal, value_of
from tieline.plan.kernels.memory import recall, remember, search_memory
from tieline.plan.kernels.negotiate import negotiated, settle
from tieline.plan.kernels.network import net
from tieline.plan.kernels.state import State, empty_state, overwrite, set_worth, state_of, trees_of
from tieline.plan.kernels.ways import scratch
from tieline.plan.plan import gap
from tieline.plan.routes import Trees
from tieline.plan.run import Run
from tieline.plan.search.dual import Dual, DualThread, Insight, has_threads
from tieline.plan.search.polish import Polisher

#: At most so many requests are taken off together.
_LARGEST = 14
#: The share of the budget after which the worth of capacity no longer counts, how steeply it loses its regard before
#: (at 1.5, it counts in full until a third of that), and the share after which nothing worse is accepted.
_WORTHLESS = 0.95
_FALL = 1.5
_COLD = 0.9
#: Temperatures at the start and at the end, in mean costs of a link.
_HOT = 0.3
_COOL = 0.003
#: The share of the dual's prices at which is negotiated again, with so much gentler a pressure; not all of them, for a
#: link that is full presses as well (measured at 2,000 nodes: 371,600 without prices, 359,300 at 0.5, 359,200 at 0.7,
#: nothing better at 0.9 and 1).
_PRICE_SHARE = 0.6
_GENTLE = 0.1
#: Dual steps before the search begins.
_FIRST_STEPS = 15
#: Iterations without a better plan before a polish: solving a group exactly costs as much as thousands of them.
_STILL = 5_000
#: From so many requests on, the dual gets a thread of its own.
_MANY = 300
#: How long to wait for its first steps before looking at the clock again.
_WAIT_S = 0.02


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Found:
    """What a search found."""

    trees: Trees
    #: No plan has a smaller objective.
    bound: float
    #: What a unit of each link's capacity is worth.
    prices: Floats
    iterations: int
    dual_steps: int


class Searcher:
    """One search: the plan that stands, the best one, the bound."""

    def __init__(  # where a search begins, how it looks around, and who watches
        self,
        arrays: Arrays,
        run: Run,
        dual: Dual,
        *,
        start: Trees | None = None,
        polishes: bool = True,
        largest: int = _LARGEST,
        seen: Callable[[State], object] | None = None,
    ) -> None:
        """Up to ``largest`` requests are taken off together; ``dual`` goes on from where it is; ``seen`` is shown, from
        time to time, what stands.
        """
        if run.seconds is None and run.iterations is None:
            raise ValueError("a search needs an end: seconds or iterations")
        self.arrays = arrays
        self.run = run
        self.net = dual.net
        self.scratch = scratch(arrays)
        self.state = empty_state(arrays, self.net) if start is None else state_of(arrays, self.net, start)
        self.is_started = start is not None
        self.dual = dual
        self.seen = seen
        self.thread: DualThread | None = None
        self.known = self.dual.insight()
        most = max(2, min(largest, arrays.requests))
        self.memory = search_memory(arrays, seed=run.seed, largest=most, choices=CHOICES)
        self.polisher = Polisher(arrays, self.net, self.state, run.seed)
        self.polishes = polishes and self.polisher.is_useful
        self.scale = rate_scale(arrays)
        self._is_whole = has_whole_costs(arrays.instance)

    @property
    def best(self) -> float:
        return float(self.memory.value[1])

    @property
    def bound(self) -> float:
        return raised(self.known.bound) if self._is_whole else self.known.bound

    @property
    def is_optimal(self) -> bool:
        return gap(self.best, self.bound) == 0.0

    def search(self) -> Found:
        """Search until the run is spent or the plan is proven optimal."""
        self.begin()
        if self.run.iterations is None and self.arrays.requests >= _MANY and has_threads():
            self.thread = DualThread(self.dual, lambda: self.best)
        try:
            if not self.is_started and not self._over():
                self.negotiate(0.0, self.scale)
            self._first_steps()
            if not self.is_started and not self._over():
                self.negotiate(_PRICE_SHARE, _GENTLE * self.scale)
            if self.arrays.requests and self.arrays.topics:
                self._improve()
        finally:
            if self.thread is not None:
                self.thread.end()
                self._hear()
        return self.found()

    def found(self) -> Found:
        """The best plan so far; it stands then."""
        recall(self.net, self.state, self.memory)
        return Found(
            trees=trees_of(self.arrays, self.state),
            bound=self.bound,
            prices=self.known.prices,
            iterations=self.run.done,
            dual_steps=self.dual.steps,
        )

    def begin(self) -> None:
        """A first plan at once, every request over the cheapest free way, and the first bound: shortest paths."""
        settle(self.net, self.state, self.scratch, np.zeros(self.arrays.links))
        self._adopt(value_of(self.net, self.state))
        self._tell("begin")

    def negotiate(self, share: float, scale: float) -> None:
        """A plan negotiated from a share of the dual's prices; it stands if it is the best."""
        self._hear()
        prices = share * self.known.prices
        found = negotiated(self.arrays, self.net, self.scratch, prices, scale, self._over)
        if found is None:
            return
        value = value_of(self.net, found)
        if value < self.best:
            overwrite(self.state, found)
            set_worth(self.state, self.net, self.known.prices)
            self._adopt(value)
            self._tell("negotiate")

    def _adopt(self, value: float) -> None:
        """The plan that stands is the best, and no way in it is known."""
        self.memory.is_dirty[:] = True
        self.memory.dirty[:] = np.arange(self.arrays.requests)
        self.memory.dirty_count[0] = self.arrays.requests
        self.memory.value[0] = value
        remember(self.net, self.state, self.memory)

    def _improve(self) -> None:
        """Chunks of the neighbourhood search, with steps of the dual between them and polish where nothing moves."""
        mean = float(self.arrays.cost.mean()) if self.arrays.links else 0.0
        # a dual step routes every request once, an iteration some: let both have about the same time
        every = max(20, self.arrays.requests // 6)
        chunk = min(every, 200)
        since_step = since_news = 0
        best = self.best
        while not self._over():
            spent = self.run.spent
            heat = 0.0 if spent >= _COLD else mean * _HOT * (_COOL / _HOT) ** (spent / _COLD)
            regard = min(1.0, max(0.0, _FALL * (1.0 - spent / _WORTHLESS)))
            if self.run.iterations is not None:
                chunk = min(chunk, self.run.iterations - self.run.done)
            anneal(self.net, self.state, self.scratch, self.memory, chunk, heat, regard, self.scale)
            if self.seen is not None:
                self.seen(self.state)
            self.run.done += chunk
            since_step += chunk
            since_news += chunk
            if self.best < best:
                since_news, best = 0, self.best
                self._tell("search")
            self._hear()
            is_due = self.thread is None and since_step >= every
            if is_due and not self.dual.is_still and not self._over():
                since_step = 0
                self.dual.step(self.best)
                self._learn(self.dual.insight())
            if since_news >= max(20 * every, _STILL) and spent > 0.5 and self.polishes and not self._over():
                since_news = 0
                recall(self.net, self.state, self.memory)
                if self.polisher.polish(self.memory, self.run):
                    self._tell("polish")

    def _first_steps(self) -> None:
        """Prices good enough to negotiate with."""
        while self.thread is not None and self.thread.steps < _FIRST_STEPS and not self.thread.is_done:
            if self._over():
                return
            self.thread.wait(_WAIT_S)
            self._hear()
        for _ in range(_FIRST_STEPS if self.thread is None else 0):
            if not self._over():
                self.dual.step(self.best)
                self._learn(self.dual.insight())

    def _hear(self) -> None:
        """Take what the dual found meanwhile."""
        if self.thread is not None:
            self._learn(self.thread.insight())

    def _learn(self, insight: Insight) -> None:
        """Let the search know what capacity is worth."""
        if insight is not self.known:
            self.known = insight
            set_worth(self.state, self.net, insight.prices)
            self.memory.due[:] = insight.paid

    def _over(self) -> bool:
        return self.is_optimal or self.run.is_spent

    def _tell(self, doing: str) -> None:
        unmet = int((self.memory.best_length < 0).sum())
        self.run.tell(doing, objective=self.best, unmet=unmet, bound=self.bound)


def search(
    arrays: Arrays, run: Run, *, start: Trees | None = None, prices: Floats | None = None, polishes: bool = True
) -> Found:
    """The best plan found in a run; the same seed and number of iterations give the same plan."""
    return Searcher(arrays, run, Dual(arrays, net(arrays), prices), start=start, polishes=polishes).search()


def rate_scale(arrays: Arrays) -> float:
    """Cost that stands for a unit of rate."""
    if not arrays.links or not arrays.topics:
        return 1.0
    return max(1e-6, float(arrays.cost.mean()) / max(1e-9, float(arrays.rate.mean())))
