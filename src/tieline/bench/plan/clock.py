"""One solution, timed: when it was found, when it was proven, in seconds of this process's CPU and by the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tieline.bench.load.job import Metrics
from tieline.plan.plan import SAME, Plan
from tieline.plan.search.progress import Progress


@dataclass(frozen=True, slots=True)
class Word:
    """What a solver said, and when."""

    cpu_s: float
    wall_s: float
    objective: float
    bound: float


@dataclass(slots=True)
class Clock:
    """Hears what a solver says, and notes when it said it."""

    cpu: float = field(default_factory=time.process_time)
    wall: float = field(default_factory=time.perf_counter)
    words: list[Word] = field(default_factory=list)

    def hear(self, progress: Progress) -> None:
        """Note one word; before there is a plan there is nothing to note."""
        if math.isfinite(progress.objective):
            cpu, wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
            self.words.append(Word(cpu, wall, progress.objective, progress.bound))

    def reached(self, objective: float) -> Word | None:
        """The first word of a plan at least so good."""
        limit = objective + SAME * max(1.0, abs(objective))
        return next((word for word in self.words if word.objective <= limit), None)

    def narrowed(self, gap: float) -> Word | None:
        """The first word of a plan whose distance to the bound was at most this share of the objective."""
        for word in self.words:
            if word.objective - word.bound <= gap * abs(word.objective):
                return word
        return None


def timed(solve: Callable[[Clock], Plan]) -> tuple[Plan, Clock, Metrics]:
    """A plan, what was heard meanwhile, and the numbers of it."""
    clock = Clock()
    plan = solve(clock)
    cpu, wall = time.process_time() - clock.cpu, time.perf_counter() - clock.wall
    found = clock.reached(plan.objective)
    metrics = {
        "cpu_s": cpu,
        "wall_s": wall,
        "found_s": cpu if found is None else found.cpu_s,
        "is_proven": float(plan.status == "optimal"),
        "gap": plan.gap,
        "unmet": float(plan.unmet),
        "objective": plan.objective,
    }
    return plan, clock, metrics
