"""Repair of a plan that a change has damaged: what it does not touch stays, and others move only if they must.

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

from functools import cache

import numpy as np

from tieline.plan.arrays import Arrays, Flags, Floats
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.kernels.memory import SearchMemory, search_memory
from tieline.plan.kernels.negotiate import settle
from tieline.plan.kernels.network import BOUNDLESS, Net, net
from tieline.plan.kernels.repair import close_link, load_on, make_room
from tieline.plan.kernels.state import State, leave, overwrite, restore, state_of, trees_of, way_of
from tieline.plan.kernels.ways import Scratch, find, join, scratch
from tieline.plan.routes import no_trees
from tieline.plan.run import Run
from tieline.plan.search.neighbourhood import search
from tieline.plan.search.warm import few_nodes, warm

#: Tries per unmet request to make room for it.
_TRIES = 40
#: At most so many flows move to make room for one.
_LARGEST = 12
#: Iterations of the search if that is not enough.
_ITERATIONS = 1500
#: How often flows that had to move choose again.
_ROUNDS = 2


def snapshot(state: State) -> State:
    """The ways of a state, to be compared with later; whatever else it has goes on changing."""
    return state._replace(entering=state.entering.copy(), served=state.served.copy())


class Repair:
    """A state that a change has damaged, and what becomes of it; ``old`` is how it was before, if that is known."""

    def __init__(
        self,
        arrays: Arrays,
        net: Net,
        scratch: Scratch,
        state: State,
        run: Run,
        *,
        old: State | None = None,
    ) -> None:
        self.arrays = arrays
        self.net = net
        self.scratch = scratch
        self.state = state
        self.old = snapshot(state) if old is None else old
        self.run = run
        self._free = np.zeros(arrays.links)

    def mend(self, paid_before: float, prices: Floats | None = None) -> None:
        """Repair the state; ``paid_before`` is what was paid for unmet requests, ``prices`` what capacity is worth."""
        settle(self.net, self.state, self.scratch, self._free if prices is None else prices)
        if not self.state.served.all():
            self._make_room()
            if self.unmet_price() > paid_before:
                self._search()
        self._choose_again()

    def unmet_price(self, state: State | None = None) -> float:
        """What the unmet requests cost, now or in another state."""
        served = self.state.served if state is None else state.served
        return float(self.arrays.price[self.arrays.request_topic[~served]].sum())

    def touched(self) -> Flags:
        """The topics of which anything is other than before."""
        touched: Flags = (self.state.entering != self.old.entering).any(axis=0)
        touched[self.arrays.request_topic[self.state.served != self.old.served]] = True
        return touched

    def moved(self) -> tuple[int, int, int]:
        """How many flows moved or ended, were kept, and were added."""
        was, now = self.old.served, self.state.served
        stayed = was & now
        for request in np.flatnonzero(stayed & self.touched()[self.arrays.request_topic]).tolist():
            stayed[request] = self._is_home(request)
        kept = int(stayed.sum())
        return int(was.sum()) - kept, kept, int((now & ~was).sum())

    def bound(self) -> float:
        """Nobody is served for less than over the cheapest way."""
        arrays = self.arrays
        least = self.net.to_target[self.net.row, arrays.source[arrays.request_topic]]
        return float(np.minimum(least, arrays.price[arrays.request_topic]).sum())

    def _make_room(self) -> None:
        """Move a few flows for each request that is still unmet."""
        notebook = self._notebook()
        scale = float(self.arrays.cost.mean()) if self.arrays.links else 1.0
        for request in np.flatnonzero(~self.state.served):
            if self.run.must_end:
                return
            make_room(self.net, self.state, self.scratch, notebook, int(request), self._free, scale, _TRIES)

    def _notebook(self) -> SearchMemory:
        largest = max(2, min(_LARGEST, self.arrays.requests))
        return search_memory(self.arrays, seed=self.run.seed, largest=largest, choices=1)

    def _search(self) -> None:
        """A short search for a plan that serves more; its flows go home where they can."""
        if self.run.must_end:
            return
        found = search(self.arrays, self.run.part(iterations=_ITERATIONS), start=trees_of(self.arrays, self.state))
        missed = float(self.arrays.price[self.arrays.request_topic[~found.trees.served]].sum())
        if missed < self.unmet_price():
            overwrite(self.state, state_of(self.arrays, self.net, found.trees))
            self._go_home()

    def _go_home(self) -> None:
        """Put flows back on the ways they had where that needs nothing from anybody else."""
        if self.net.counts_connections or self.net.n_max != BOUNDLESS:
            return
        for request in np.flatnonzero(self.state.served & self.old.served).tolist():
            if self._is_home(request):
                continue
            now, old = way_of(self.arrays, self.state, request), way_of(self.arrays, self.old, request)
            leave(self.net, self.state, request)
            way = np.array(old if self._is_free(request, old) else now, np.int32)
            restore(self.net, self.state, request, way, len(way))

    def _is_home(self, request: int) -> bool:
        """Whether a served request has the way it had."""
        return bool(self.old.served[request]) and way_of(self.arrays, self.state, request) == way_of(
            self.arrays, self.old, request
        )

    def _is_free(self, request: int, way: list[int]) -> bool:
        topic = int(self.arrays.request_topic[request])
        for arc in way:
            entering = int(self.state.entering[self.arrays.head[arc], topic])
            if entering != arc and (entering >= 0 or self.state.room[arc >> 1] < self.arrays.rate[topic]):
                return False
        return True

    def _choose_again(self) -> None:
        """Flows that had to move take the cheapest way that is free now; nobody else moves."""
        movers = self.state.served & self.touched()[self.arrays.request_topic]
        for _ in range(_ROUNDS):
            for request in np.flatnonzero(movers).tolist():
                if self._is_home(request):
                    continue
                now = way_of(self.arrays, self.state, request)
                leave(self.net, self.state, request)
                _, _, length = find(self.net, self.state, self.scratch, request, self._free, np.inf, -1)
                if length >= 0:
                    join(self.net, self.state, self.scratch, request, length)
                else:
                    # a limit hides from the search the way that it has
                    restore(self.net, self.state, request, np.array(now, np.int32), len(now))


@cache
def ready() -> None:
    """Repair the plan of a network of a few nodes, once per process."""
    warm()
    numbers = as_arrays(few_nodes())
    network = net(numbers)
    state = state_of(numbers, network, no_trees(numbers))
    for _ in range(2):
        repair = Repair(numbers, network, scratch(numbers), state, Run())
        repair.mend(repair.unmet_price())
        # links 1 and 2 are the ways of the topic that is served: it moves to the other one
        close_link(network, state, 1)
        state.room[1] = load_on(network, state, 1)
