"""One run of a planning method: how long it may take, from which seed, who hears of it, and who may end it early.

The door (:mod:`tieline.plan.solve`) makes a run and hands it to a method.  What works for the method gets a part of the
run: perhaps fewer seconds, iterations of its own or another seed, but the same listener, and the same question whether
to stop.  Progress counts seconds from the beginning of the whole, whichever part tells it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tieline.plan.plan import Plan, gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a method is: the best plan, and what no plan can beat."""

    #: What it is about: prepare, begin, negotiate, search, polish, choose, or the name of a method.
    doing: str
    seconds: float
    objective: float
    unmet: int
    bound: float

    @property
    def gap(self) -> float:
        """The share of the objective that an optimal plan might save at most."""
        return gap(self.objective, self.bound)


Listener: TypeAlias = Callable[[Progress], None]
#: Whether to return the best plan so far.
Stop: TypeAlias = Callable[[], bool]


@dataclass(slots=True, kw_only=True)
class Run:
    """What a method may use, and whom it tells; with neither seconds nor iterations it works until it is done."""

    seconds: float | None = None
    #: For methods that repeat something; the same seed and number of iterations give the same plan.
    iterations: int | None = None
    seed: int = 0
    listener: Listener | None = None
    stop: Stop | None = None
    #: Iterations done so far.
    done: int = 0
    began: float = field(default_factory=time.perf_counter)
    #: Seconds since the beginning that count against no limit, such as those in which kernels are compiled.
    uncounted: float = 0.0
    #: When the whole began of which this is a part.
    origin: float = -1.0

    def __post_init__(self) -> None:
        if self.origin < 0:
            self.origin = self.began

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Seconds that are left; None if they are not counted."""
        return None if self.seconds is None else max(0.0, self.seconds - (self.elapsed - self.uncounted))

    @property
    def spent(self) -> float:
        """The part of seconds or iterations that is spent, whichever is more, from 0 to 1."""
        by_time = 0.0 if self.seconds is None else (self.elapsed - self.uncounted) / max(self.seconds, 1e-9)
        by_count = 0.0 if self.iterations is None else (self.done / self.iterations if self.iterations else 1.0)
        return min(1.0, max(by_time, by_count))

    @property
    def must_end(self) -> bool:
        """Whether the time is over, or somebody wants the best plan so far; iterations do not matter."""
        return self.left == 0.0 or (self.stop is not None and self.stop())

    @property
    def is_spent(self) -> bool:
        """Whether seconds or iterations are over, or somebody wants the best plan so far."""
        return self.spent >= 1.0 or (self.stop is not None and self.stop())

    def part(self, *, seconds: float | None = None, iterations: int | None = None, seed: int | None = None) -> Run:
        """A part of the work that begins now: in so many seconds, or in all that are left."""
        return Run(
            seconds=self.left if seconds is None else seconds,
            iterations=iterations,
            seed=self.seed if seed is None else seed,
            listener=self.listener,
            stop=self.stop,
            origin=self.origin,
        )

    def heard_by(self, listener: Listener | None) -> Run:
        """The same run, of which somebody else hears."""
        return replace(self, listener=listener)

    def stopped_by(self, stop: Stop) -> Run:
        """The same run, which somebody else may end."""
        return replace(self, stop=stop)

    def tell(self, doing: str, *, objective: float, unmet: int, bound: float) -> None:
        """Say how far the method is, if anybody listens."""
        if self.listener is not None:
            seconds = time.perf_counter() - self.origin
            self.listener(Progress(doing=doing, seconds=seconds, objective=objective, unmet=unmet, bound=bound))

    def told(self, plan: Plan) -> Plan:
        """The plan itself, of which the listener has heard."""
        self.tell(plan.method, objective=plan.objective, unmet=plan.unmet, bound=plan.bound)
        return plan


class Improving:
    """A listener to several methods that work on one instance: what it passes on never gets worse."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._best: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        best = progress if self._best is None or progress.objective <= self._best.objective else self._best
        bound = progress.bound if self._best is None else max(progress.bound, self._best.bound)
        self._best = replace(progress, objective=best.objective, unmet=best.unmet, bound=bound)
        self._listener(self._best)
