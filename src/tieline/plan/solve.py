"""One door to all methods: an instance in, a proven plan out.

``auto`` looks at the size.  The smallest instances are solved exactly at once; small ones are searched in rounds,
whose bound often proves the plan, and otherwise solved exactly from there.  Large ones are searched until the time is
over.  Before all that, reductions take away what has no choice (:mod:`tieline.plan.reduce`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tieline.extras import is_installed
from tieline.plan.arrays import Arrays, arrays
from tieline.plan.certify import certified
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.reduce.solving import solve_reduced
from tieline.plan.routes import Trees, trees
from tieline.plan.search.neighbourhood import Found, search
from tieline.plan.search.progress import Improving, Listener, Progress
from tieline.plan.search.rounds import in_rounds
from tieline.plan.search.warm import warm

#: Whether to return the best plan so far.
Stop = Callable[[], bool]

METHODS: Final = ("auto", "mip", "lagrangian", "annealing", "lns", "distributed")
#: Those that plan what reductions leave; the others are for comparison, and take the instance as it is.
_REDUCED: Final = frozenset({"auto", "mip", "lns"})
#: Seconds that a search takes if nothing is said.
SECONDS: Final = 30.0

#: Models whose plans need not get better on the way.
_OTHERS: Final = frozenset({"f1-paper", "f2", "tb"})
#: Up to so many pairs of a topic and an arc, ``auto`` solves exactly, and up to so many it does not search before.
_EXACT_PAIRS: Final = 15_000
_TINY_PAIRS: Final = 600


def solve(
    instance: Instance,
    *,
    method: str = "auto",
    model: str | None = None,
    seconds: float | None = None,
    iterations: int | None = None,
    seed: int = 0,
    watch: Listener | None = None,
    stop: Stop | None = None,
) -> Plan:
    """The best plan that a method finds; ``model`` is for the exact ones, ``iterations`` for the search."""
    if method not in METHODS:
        raise ValueError(f'"{method}" is no method; known: {", ".join(METHODS)}')
    if model is not None and method not in ("auto", "mip"):
        raise ValueError(f'the method "{method}" has no model; models are for "mip"')
    checked(instance)

    def planned(part: Instance, limit: float | None, listener: Listener | None) -> Plan:
        told = None if listener is None else Improving(listener)
        task = _Task(arrays(part), model, limit, iterations, seed, told, stop)
        return getattr(task, method)()  # type: ignore[no-any-return]

    if method not in _REDUCED or model is not None:
        return planned(instance, seconds, watch)
    together = SECONDS if iterations is None and method != "mip" else None
    return solve_reduced(instance, planned, method=method, seconds=seconds, together=together, watch=watch)


class _Task:
    """One instance to be solved, and how."""

    def __init__(
        self,
        arrays: Arrays,
        model: str | None,
        seconds: float | None,
        iterations: int | None,
        seed: int,
        watch: Listener | None,
        stop: Stop | None,
    ) -> None:
        self.arrays = arrays
        self.model = model
        self.seconds = seconds
        self.iterations = iterations
        self.seed = seed
        self.watch = watch
        self.stop = stop
        self.began = time.perf_counter()
        self._preparing = 0.0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def _planning(self) -> float:
        """Seconds that count against the limit."""
        return self.elapsed - self._preparing

    def auto(self) -> Plan:
        """Exactly if the instance is small, otherwise by search."""
        if self.model is not None:
            return self.mip()
        pairs = self.arrays.topics * self.arrays.arcs
        if pairs > _EXACT_PAIRS or not _has_highs():
            return self.lns()
        if pairs <= _TINY_PAIRS:
            return self._exact(None, None)
        found = self._rounds() if self.iterations is None else self._search(self.iterations, method="auto")
        if found.status == "optimal" or self._is_over():
            return found
        exact = self._exact(None, trees(self.arrays, found.routes))
        better = exact if exact.objective <= found.objective else found
        return certified(
            self.arrays,
            trees(self.arrays, better.routes),
            method="auto",
            bound=max(exact.bound, found.bound),
            seconds=self.elapsed,
            is_interrupted=exact.status == "interrupted",
            notes={**found.notes, **exact.notes},
        )

    def lns(self) -> Plan:
        """Negotiated congestion and neighbourhood search."""
        return self._search(self.iterations, method="lns")

    def mip(self) -> Plan:
        """A formulation on HiGHS; without a name the fast exact method, which makes its program small first."""
        return self._exact(self.model, None)

    def lagrangian(self) -> Plan:
        """The paper's matheuristic."""
        from tieline.plan.methods.lagrangian import lagrangian

        return self._told(lagrangian(self.arrays, seconds=self.seconds, stop=self.stop))

    def annealing(self) -> Plan:
        """The paper's baseline."""
        from tieline.plan.methods.annealing import annealing

        return self._told(annealing(self.arrays, seed=self.seed, seconds=self.seconds, stop=self.stop))

    def distributed(self) -> Plan:
        """Brokers among themselves."""
        from tieline.plan.distributed.planning import distributed

        return self._told(distributed(self.arrays, seed=self.seed, seconds=self.seconds, stop=self.stop))

    def _search(self, iterations: int | None, *, method: str) -> Plan:
        self._prepare()
        # what follows in other methods is exact for the whole
        return self._searched(self._look(iterations, self.seed, polishes=method == "lns"), method)

    def _rounds(self) -> Plan:
        """Short searches, and the best choice among the trees that they saw."""
        self._prepare()
        found = in_rounds(
            self.arrays, seconds=self._left(), seed=self.seed, listener=self._watch_since(), stop=self.stop
        )
        return self._searched(found, "auto")

    def _look(self, iterations: int | None, seed: int, *, polishes: bool) -> Found:
        seconds = SECONDS if self.seconds is None and iterations is None else self._left()
        return search(
            self.arrays,
            seconds=seconds,
            iterations=iterations,
            seed=seed,
            listener=self._watch_since(),
            stop=self.stop,
            polishes=polishes,
        )

    def _searched(self, found: Found, method: str) -> Plan:
        return certified(
            self.arrays,
            found.trees,
            method=method,
            bound=found.bound,
            seconds=self.elapsed,
            is_interrupted=self._is_over(),
            notes={"iterations": found.iterations, "dual_steps": found.dual_steps},
        )

    def _prepare(self) -> None:
        """Have the loops compiled, which may take a while once and is not counted as time to plan."""
        if self.watch is not None:
            self.watch(
                Progress(
                    doing="prepare",
                    seconds=self.elapsed,
                    objective=math.inf,
                    unmet=self.arrays.requests,
                    bound=-math.inf,
                )
            )
        began = time.perf_counter()
        warm()
        self._preparing += time.perf_counter() - began

    def _left(self) -> float | None:
        return None if self.seconds is None else max(0.05, self.seconds - self._planning)

    def _exact(self, model: str | None, start: Trees | None) -> Plan:
        from tieline.plan.models.exact import exact
        from tieline.plan.models.solve import solve_model as solve_formulation

        left = self._left()
        if model is None:
            found = exact(
                self.arrays, seconds=left, seed=self.seed, start=start, stop=self.stop, watch=self._watch_since()
            )
        else:
            found = solve_formulation(
                self.arrays,
                model=model,
                seconds=left,
                seed=self.seed,
                start=start,
                stop=self.stop,
                # a model may have an objective of its own: what it finds on the way says nothing about its answer
                watch=None if model in _OTHERS else self._watch_since(),
            )
        return self._told(found)

    def _watch_since(self) -> Listener | None:
        """The listener, who counts seconds from the beginning of the task."""
        watch, offset = self.watch, self.elapsed
        return None if watch is None else lambda word: watch(replace(word, seconds=word.seconds + offset))

    def _is_over(self) -> bool:
        is_late = self.seconds is not None and self._planning >= self.seconds
        return is_late or (self.stop is not None and self.stop())

    def _told(self, plan: Plan) -> Plan:
        """The plan itself, of which the listener has heard."""
        if self.watch is not None:
            self.watch(
                Progress(
                    doing=plan.method,
                    seconds=self.elapsed,
                    objective=plan.objective,
                    unmet=plan.unmet,
                    bound=plan.bound,
                )
            )
        return plan


def _has_highs() -> bool:
    return is_installed("highspy")
