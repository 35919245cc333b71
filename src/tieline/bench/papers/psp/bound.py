"""Whether the paper's bound is one: on small instances with known optima, and on paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Table
from tieline.bench.plan.bounds import PAPER, tallies
from tieline.plan.arrays import arrays
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.methods.lagrangian import shortest_path_trees

#: Prices of s - a1, s - a2 and s - u: alone 1 each, together 1.5.
_PRICES = (1.0, 1.0, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """One topic, two subscribers: what the paper's tree says, and the true minimum."""

    paper_value: float
    minimum: float


def measure(request: Request) -> list[Table]:
    """How many optima of small instances the paper's "bound" exceeds, and the two values of the counter-example."""
    tally = tallies(request.chosen("small instances", quick=60, full=400, note="the paper's bound"))[PAPER]
    example = counterexample()
    return [
        Table(
            "small", {"instances": "small instances", "above": "of them with the paper's bound above the optimum"},
            [(tally.instances, tally.above)],
        ),
        Table(
            "counterexample", {"paper_value": "what shortest paths say", "minimum": "the minimum"},
            [(example.paper_value, example.minimum)],
        ),
    ]  # fmt: skip


def counterexample() -> Counterexample:
    """Two subscribers that can be reached alone or together, at prices at which together is cheaper."""
    instance = checked(
        Instance(
            name="counterexample",
            nodes=(
                Node(id="s", roles=("publisher",)),
                *(Node(id=name, roles=("broker",)) for name in ("a1", "a2", "u")),
                *(Node(id=name, roles=("subscriber",)) for name in ("t1", "t2")),
            ),
            links=tuple(
                Link(a=a, b=b, capacity=1.0, cost=0.0)
                for a, b in (("s", "a1"), ("s", "a2"), ("s", "u"), ("a1", "t1"), ("a2", "t2"), ("u", "t1"), ("u", "t2"))
            ),
            topics=(Topic(id="k", source="s", rate=1.0, subscribers=("t1", "t2")),),
            unmet_cost=100.0,
        )
    )
    compact = arrays(instance)
    prices = np.array([*_PRICES, 0.0, 0.0, 0.0, 0.0])
    rent = float(prices @ compact.capacity)
    tree, _, _ = shortest_path_trees(compact, prices)
    least = Relaxation(compact).evaluate(prices).value
    return Counterexample(paper_value=tree + rent, minimum=least + rent)
