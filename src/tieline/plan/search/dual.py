"""Prices of capacity that raise the lower bound, step by step beside the search, and guide it.

Theory of operation
-------------------
A step asks for the cheapest trees at the prices (:mod:`tieline.plan.kernels.shares`) and moves the prices along what
the topics load on the links less their capacity.  A topic loads a link once, whatever the shares of its groups say:
that is the slope of the bound for shares that have settled, and it leads there much faster than the slope for those of
the moment.  The length is Polyak's, towards the value of the best plan; the direction keeps some of the last one.

The first bound is at hand without a step: nobody is served for less than over the cheapest way.  A dual has tables of
its own and may run beside a search.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event, Thread
from typing import NamedTuple

import numpy as np

from tieline.compiling import is_compiled
from tieline.plan.arrays import Arrays, Floats
from tieline.plan.bounds.groups import LARGEST, groups
from tieline.plan.kernels.network import Net
from tieline.plan.kernels.shares import Shares, equal_shares, evaluate
from tieline.plan.kernels.steiner import SteinerTables, steiner_tables

#: Steps without progress after which the step is halved.
_PATIENCE = 4
#: How much of its last direction a step keeps.
_MOMENTUM = 0.7
#: Shares follow use by this part of the step's scale.
_PACE = 0.3
#: The value to step towards is at most this share above the bound.
_REACH = 0.02
#: A scale below which nothing moves any more.
_STILL = 2e-3


class Insight(NamedTuple):
    """The best bound that a dual has shown so far, and by which prices."""

    #: No plan has a smaller objective.
    bound: float
    #: The prices that show it, and what each request pays at them.
    prices: Floats
    paid: Floats


class Dual:
    """Prices, and the best bound they gave."""

    def __init__(self, arrays: Arrays, net: Net, prices: Floats | None = None) -> None:
        self._arrays = arrays
        self.net = net
        self._tables: tuple[SteinerTables, Shares] | None = None
        self._limited = np.isfinite(arrays.capacity)
        self._capacity = np.where(self._limited, arrays.capacity, 0.0)
        self._load = np.zeros(arrays.links)
        self._paid = np.zeros(arrays.requests)
        self._momentum = np.zeros(arrays.links)
        self._at: Floats = np.zeros(arrays.links) if prices is None else prices.copy()
        self._scale = 1.0
        self._idle = 0
        least = np.minimum(
            net.to_target[net.row, arrays.source[arrays.request_topic]], arrays.price[arrays.request_topic]
        )
        self._best = Insight(float(least.sum()), np.zeros(arrays.links), least)
        self.steps = 0

    def insight(self) -> Insight:
        """The best bound so far, and what shows it."""
        return self._best

    @property
    def is_still(self) -> bool:
        """Whether more steps would hardly change anything."""
        return self._scale < _STILL

    def step(self, value: float) -> None:
        """Move the prices once; ``value`` is that of a plan."""
        if self._tables is None:
            parts = [(group.topic, group.requests) for group in groups(self._arrays, LARGEST)]
            self._tables = steiner_tables(self._arrays, LARGEST), equal_shares(self._arrays, parts)
        paid = evaluate(self.net, *self._tables, self._at, _PACE * self._scale, self._load, self._paid)
        found = paid - float(self._at @ self._capacity)
        self.steps += 1
        if found > self._best.bound:
            self._best, self._idle = Insight(found, self._at.copy(), self._paid.copy()), 0
        else:
            self._idle += 1
            if self._idle >= _PATIENCE:
                self._scale, self._idle = self._scale / 2, 0
                self._at = self._best.prices.copy()
        slope = self._free(np.where(self._limited, self._load - self._capacity, 0.0))
        self._momentum = slope + _MOMENTUM * self._momentum
        direction = self._free(self._momentum)
        length = float(direction @ direction)
        if length == 0.0:
            # no link is overloaded: these prices are the best for these shares
            self._scale /= 2
            return
        # prices of unmet requests dwarf all costs: do not jump that far
        distance = max(min(value - found, _REACH * abs(self._best.bound)), 1e-9 * abs(value))
        self._at = np.maximum(0.0, self._at + self._scale * distance / length * direction)

    def _free(self, direction: Floats) -> Floats:
        """A price of 0 cannot fall."""
        return np.where((self._at <= 0) & (direction < 0), 0.0, direction)


def has_threads() -> bool:
    """Whether two threads can work at the same time: two processors, and loops that are compiled."""
    return (os.cpu_count() or 1) > 1 and is_compiled()


class DualThread:
    """Steps of a dual in a thread of its own, until it is told to end or nothing moves any more.

    Kernels hold no lock of the interpreter while they run, so bound and plan improve at the same time.  What the thread
    finds is handed over as one value, which the search takes when it likes.  How far it is at that moment depends on
    the machine: a search that must be repeatable does without it.
    """

    def __init__(self, dual: Dual, value: Callable[[], float]) -> None:
        self._dual = dual
        self._value = value
        self._end = Event()
        self._news = dual.insight()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="tieline-plan-dual", daemon=True)
        #: Steps done so far.
        self.steps = 0
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether no more will come."""
        return not self._thread.is_alive()

    def insight(self) -> Insight:
        """What the dual knows by now."""
        if self._failure is not None:
            raise self._failure
        return self._news

    def wait(self, seconds: float) -> None:
        """Give the thread time."""
        self._thread.join(seconds)

    def end(self) -> None:
        """Let the thread end after its present step."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._end.is_set() and not self._dual.is_still:
                self._dual.step(self._value())
                self.steps = self._dual.steps
                self._news = self._dual.insight()
        except Exception as failure:  # noqa: BLE001 - it is raised where somebody asks
            self._failure = failure
