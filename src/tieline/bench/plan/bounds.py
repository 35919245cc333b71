"""Whether bounds are bounds: small instances at random, each bound against the optimum."""

from __future__ import annotations

from dataclasses import dataclass

from tieline.bench.load.job import Metrics
from tieline.bench.plan.scarce import scarce_instances
from tieline.plan.arrays import Arrays, arrays
from tieline.plan.bounds.ascent import Until
from tieline.plan.bounds.bundle import bundle
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.bounds.polyak import polyak
from tieline.plan.bounds.relaxation import relaxed
from tieline.plan.bounds.shortest import shortest_paths_bound
from tieline.plan.models.solve import solve
from tieline.plan.paper.lagrangian import lagrangian
from tieline.plan.plan import SAME
from tieline.plan.search.search import search

#: Our bounds, in the order of the table; and the paper's, which is none.
BOUNDS = ("shortest paths", "shared prices, Polyak", "trees, bundle", "linear relaxation", "search")
PAPER = "the paper's"
_STEPS = 25


@dataclass(slots=True)
class Tally:
    """How often one bound was held against an optimum, how often it was above, how close it came."""

    instances: int = 0
    above: int = 0
    #: The sum of bound / optimum, as far as the bound is one.
    close: float = 0.0

    def add(self, bound: float, optimum: float) -> None:
        """One instance more."""
        self.instances += 1
        if bound > optimum + SAME * max(1.0, abs(optimum)):
            self.above += 1
        elif optimum > 0:
            self.close += max(0.0, bound) / optimum
        else:
            self.close += 1.0

    @property
    def metrics(self) -> Metrics:
        """The numbers of a row."""
        within = max(1, self.instances - self.above)
        return {"instances": float(self.instances), "above": float(self.above), "closeness": self.close / within}


def tallies(count: int) -> dict[str, Tally]:
    """Every bound on so many instances whose optimum is known."""
    found = {name: Tally() for name in (*BOUNDS, PAPER)}
    for instance in scarce_instances(count):
        compact = arrays(instance)
        # each instance is small enough to be solved to the end
        optimum = solve(compact, model="f1").objective
        for name, bound in bounds_of(compact, optimum).items():
            found[name].add(bound, optimum)
    return found


def bounds_of(compact: Arrays, target: float) -> dict[str, float]:
    """Every bound of one instance; ``target`` is what steps are aimed at."""
    until = Until(steps=_STEPS, target=target)
    return {
        "shortest paths": shortest_paths_bound(compact),
        "shared prices, Polyak": polyak(Relaxation(compact, largest=1), until).value,
        "trees, bundle": bundle(Relaxation(compact), Until(steps=_STEPS, target=target)).value,
        "linear relaxation": relaxed(compact),
        "search": search(compact, iterations=50).bound,
        PAPER: float(lagrangian(compact, steps=_STEPS).notes["paper_bound"]),
    }
