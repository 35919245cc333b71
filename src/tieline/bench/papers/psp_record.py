"""What the reproduction of the planner's paper found, and the paper's two tables beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar, Final

from tieline.bench.metrics import three_digits
from tieline.bench.papers.reproduction import Reproduction, Sheet

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


_SIZES = (
    "size", "paper: nodes", "arcs", "topics", "subscribers", "ours: nodes", "arcs ", "topics ", "subscribers ",
    "requests",
)  # fmt: skip
_TIMES = (
    "size", "tightness", "paper: MIP", "paper: Lagrangian", "naive F1", "proven", "ours", "proven ", "Lagrangian",
    "off", "its bound too high", "annealing off", "unmet",
)  # fmt: skip
NOTE = (
    "The columns marked paper are the paper's, on its machine and its instances, which are not to be had. Ours have "
    "the same dimensions and come from seeds. All other times are CPU seconds of this run, the median over the seeds."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
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
    ours: MethodResult
    #: F1 with a big M and whole x, on the same solver.
    naive: MethodResult
    #: The paper's heuristic; its "bound" and whether it would call the plan optimal.
    lagrangian: MethodResult
    paper_bound: float
    claims_optimal: bool
    annealing: MethodResult
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

    def distance(self, outcome: MethodResult) -> float:
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
class PlanReproduction(Reproduction):
    """Every instance, and what became of the paper's bound."""

    title: ClassVar[str] = "The planner's paper, reproduced"

    naive_limit_s: float
    measured: list[Measured] = field(default_factory=list)
    #: Small instances at random, and how many of their optima the paper's "bound" exceeds.
    small_instances: int = 0
    small_above: int = 0
    counterexample: Counterexample | None = None

    def sheets(self) -> list[Sheet]:
        """The paper's two tables beside ours."""
        sizes = list(dict.fromkeys(one.size for one in self.measured))
        return [
            Sheet("Table 1: dimensions, the paper's and ours", _SIZES, [_size_row(self, size) for size in sizes]),
            Sheet(
                "Table 2: seconds and distances, the paper's and ours",
                _TIMES,
                [_time_row(size, tightness, group) for size, tightness, group in self.groups()],
            ),
        ]

    def groups(self) -> Iterator[tuple[str, float, list[Measured]]]:
        """Instances of one size and tightness, side by side."""
        for size, tightness in dict.fromkeys((one.size, one.tightness) for one in self.measured):
            yield size, tightness, [one for one in self.measured if (one.size, one.tightness) == (size, tightness)]

    def solved(self) -> list[Measured]:
        """Instances whose optimum is known."""
        return [one for one in self.measured if one.optimum is not None]


def _size_row(found: PlanReproduction, size: str) -> list[str]:
    one = next(one for one in found.measured if one.size == size)
    paper = [str(number) for number in PAPER_SIZES[size]] if size in PAPER_SIZES else ["not given", "", "", ""]
    return [size, *paper, *(str(number) for number in (one.nodes, one.arcs, one.topics, one.subscribers, one.requests))]


def _time_row(size: str, tightness: float, group: list[Measured]) -> list[str]:
    solved = [one for one in group if one.optimum is not None]
    return [
        size,
        f"{tightness:g}",
        f"{PAPER_MIP_S[size]:g}",
        f"{PAPER_LAGRANGIAN_S[size]:g}",
        _seconds([one.naive for one in group]),
        _proven([one.naive for one in group]),
        _seconds([one.ours for one in group]),
        _proven([one.ours for one in group]),
        _seconds([one.lagrangian for one in group]),
        _off([one.distance(one.lagrangian) for one in group]),
        f"{sum(one.is_false_bound for one in solved)} of {len(solved)}",
        _off([one.distance(one.annealing) if one.has_annealed else None for one in group]),
        f"{median(one.ours.unmet for one in group):g}",
    ]


def _seconds(outcomes: list[MethodResult]) -> str:
    middle = median(outcome.cpu_s for outcome in outcomes)
    # a median that was cut off by a limit is a lower estimate
    is_cut = sum(outcome.is_proven for outcome in outcomes) * 2 <= len(outcomes)
    return f"{'≥ ' if is_cut and middle > 1 else ''}{three_digits(middle)}"


def _proven(outcomes: list[MethodResult]) -> str:
    return f"{sum(outcome.is_proven for outcome in outcomes)} of {len(outcomes)}"


def _off(distances: list[float | None]) -> str:
    """The worst distance; how often fewer requests were served; how often there was no plan."""
    finite = [one for one in distances if one is not None and math.isfinite(one)]
    words = [f"{100 * max(finite):.1f} %"] if finite else []
    fewer = sum(one is not None and math.isinf(one) for one in distances)
    missing = sum(one is None for one in distances)
    words += [f"{fewer} serve fewer"] if fewer else []
    words += [f"{missing} n.a."] if missing else []
    return ", ".join(words)
