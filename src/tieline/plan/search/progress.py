"""What a search says while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tieline.plan.plan import gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a search is: the best plan, and what no plan can beat."""

    #: What it is about: prepare, begin, negotiate, search, polish, or the name of a method.
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
