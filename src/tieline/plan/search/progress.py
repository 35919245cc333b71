"""What a search says while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tieline.plan.plan import gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a search is: the best plan, and what no plan can beat."""

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
