"""What the reproduction of the planner's paper found, as data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tieline.bench.papers.record import Claim

FORMAT: Final = "tieline-reproduce-psp-1"

#: The paper's Table 2, on its own machine and instances: seconds of its MIP and of its Lagrangian heuristic.
PAPER_MIP_S: Final = {"tiny": 0.3, "case2": 0.3, "case3": 0.4, "res0": 0.4, "res4": 8.2, "res5": 67.9, "res7": 75.2}
PAPER_LAGRANGIAN_S: Final = {
    "tiny": 0.01, "case2": 0.07, "case3": 0.08, "res0": 0.07, "res4": 0.39, "res5": 0.35, "res7": 1.21,
}  # fmt: skip
#: The paper's Table 1: nodes, arcs, topics, subscribers; res4 is not in it.
PAPER_SIZES: Final = {
    "tiny": (6, 13, 2, 1), "case2": (11, 23, 3, 2), "case3": (20, 57, 6, 3), "res0": (14, 28, 5, 6),
    "res5": (75, 165, 31, 24), "res7": (71, 244, 31, 23),
}  # fmt: skip
#: Values are taken for equal within this share.
_SAME: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one method made of one instance."""

    cpu_s: float
    objective: float
    cost: float
    unmet: int
    #: A valid one.
    bound: float
    is_proven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One instance, solved by everybody."""

    size: str
    seed: int
    tightness: float
    nodes: int
    arcs: int
    topics: int
    subscribers: int
    requests: int
    ours: Outcome
    #: F1 with a big M and whole x, on the same solver.
    naive: Outcome
    #: The paper's heuristic; its "bound" and whether it would call the plan optimal.
    lagrangian: Outcome
    paper_bound: float
    claims_optimal: bool
    annealing: Outcome
    #: Whether annealing found a plan without overload.
    has_annealed: bool
    #: The value of the best answer to F1 as printed; None if the time was over before there was one.
    printed_value: float | None

    @property
    def optimum(self) -> float | None:
        """The optimal objective, if anybody proved it."""
        for outcome in (self.ours, self.naive):
            if outcome.is_proven:
                return outcome.objective
        return None

    @property
    def is_false_bound(self) -> bool:
        """Whether the paper's "bound" exceeds the optimum."""
        return self.optimum is not None and self.paper_bound > self.optimum + _SAME * max(1.0, abs(self.optimum))

    @property
    def is_false_claim(self) -> bool:
        """Whether the paper would call a plan optimal that is not."""
        return self.claims_optimal and self.optimum is not None and self.distance(self.lagrangian) > 0

    def distance(self, outcome: Outcome) -> float:
        """How much dearer than the best plan, as a share; infinite if it serves fewer requests."""
        if outcome.unmet > self.ours.unmet:
            return math.inf
        distance = (outcome.objective - self.ours.objective) / max(1.0, abs(self.ours.objective))
        return max(0.0, distance) if abs(distance) > _SAME else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """One topic, two subscribers: what the paper's tree says, and the true minimum."""

    paper_value: float
    minimum: float


@dataclass(slots=True, kw_only=True)
class PlanReproduction:
    """Everything one run found out."""

    quick: bool
    started: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    naive_limit_s: float
    seconds: float = 0.0
    measured: list[Measured] = field(default_factory=list)
    #: Small instances at random, and how many of their optima the paper's "bound" exceeds.
    small_instances: int = 0
    small_above: int = 0
    counterexample: Counterexample | None = None
    claims: list[Claim] = field(default_factory=list)

    def groups(self) -> Iterator[tuple[str, float, list[Measured]]]:
        """Instances of one size and tightness, side by side."""
        for size, tightness in dict.fromkeys((one.size, one.tightness) for one in self.measured):
            yield size, tightness, [one for one in self.measured if (one.size, one.tightness) == (size, tightness)]

    def solved(self) -> list[Measured]:
        """Instances whose optimum is known."""
        return [one for one in self.measured if one.optimum is not None]

    def write(self, path: Path) -> None:
        """The record as JSON."""
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")
