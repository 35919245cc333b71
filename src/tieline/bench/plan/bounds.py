"""Whether bounds are bounds: small instances in which capacity is scarce, each bound against the optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tieline.bench.load.job import Metrics
from tieline.plan.arrays import Arrays, arrays
from tieline.plan.bounds.ascent import polyak
from tieline.plan.bounds.bundle import bundle
from tieline.plan.bounds.groups import Relaxation
from tieline.plan.certify import shortest_paths_bound
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.methods.lagrangian import lagrangian
from tieline.plan.models.solve import relaxed, solve_model
from tieline.plan.plan import SAME
from tieline.plan.run import Run
from tieline.plan.search.neighbourhood import search


def scarce_instances(count: int) -> Iterator[Instance]:
    """So many instances; the first ones are the same whatever the count."""
    for seed in range(count):
        yield scarce(seed)


def scarce(seed: int) -> Instance:
    """Three to six brokers, two sources, three or four subscribers; a link has room for one or two of the topics."""
    rng = np.random.default_rng([seed, 2024])
    brokers = [f"b{number}" for number in range(int(rng.integers(3, 7)))]
    publishers = [f"p{number}" for number in range(2)]
    subscribers = [f"s{number}" for number in range(int(rng.integers(3, 5)))]
    pairs = {(brokers[int(rng.integers(at))], brokers[at]): None for at in range(1, len(brokers))}
    for at, one in enumerate(brokers):
        pairs.update({(one, other): None for other in brokers[at + 1 :] if rng.random() < 0.4})
    for client in (*publishers, *subscribers):
        seen = rng.permutation(len(brokers))[: int(rng.integers(1, 3))]
        pairs.update({(client, brokers[int(at)]): None for at in seen})
    links = tuple(Link(a=a, b=b, capacity=float(rng.integers(2, 7)), cost=float(rng.integers(1, 10))) for a, b in pairs)
    return checked(
        Instance(
            name=f"scarce-{seed}",
            nodes=(
                *(Node(id=name, roles=("broker",)) for name in brokers),
                *(Node(id=name, roles=("publisher",)) for name in publishers),
                *(Node(id=name, roles=("subscriber",)) for name in subscribers),
            ),
            links=links,
            topics=tuple(_topic(number, publishers, subscribers, rng) for number in range(int(rng.integers(2, 5)))),
            unmet_cost=float(rng.integers(10, 60)) if rng.random() < 0.5 else None,
        )
    )


def _topic(number: int, publishers: list[str], subscribers: list[str], rng: Generator) -> Topic:
    wanted = rng.permutation(len(subscribers))[: int(rng.integers(1, len(subscribers) + 1))]
    return Topic(
        id=f"t{number}",
        source=publishers[number % len(publishers)],
        rate=float(rng.integers(1, 4)),
        subscribers=tuple(subscribers[int(at)] for at in sorted(wanted)),
    )


#: Our bounds, in the order of the table; and the paper's, which is none.
BOUNDS = ("shortest paths", "shared prices, Polyak", "trees, bundle", "linear relaxation", "search")
PAPER = "the paper's"
_STEPS = 25


@dataclass(slots=True)
class BoundCheck:
    """How often one bound was held against an optimum, how often it was above, how close it came."""

    instances: int = 0
    above: int = 0
    #: The sum of bound / optimum, as far as the bound is one.
    close: float = 0.0

    def add(self, bound: float, optimum: float) -> None:
        """Count one more instance, with its bound and its optimum."""
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


def tallies(count: int) -> dict[str, BoundCheck]:
    """Every bound on so many instances whose optimum is known."""
    found = {name: BoundCheck() for name in (*BOUNDS, PAPER)}
    for instance in scarce_instances(count):
        compact = arrays(instance)
        # each instance is small enough to be solved to the end
        optimum = solve_model(compact, Run(), model="f1").objective
        for name, bound in bounds_of(compact, optimum).items():
            found[name].add(bound, optimum)
    return found


def bounds_of(compact: Arrays, target: float) -> dict[str, float]:
    """Every bound of one instance; ``target`` is what steps are aimed at."""
    ascent = Run(iterations=_STEPS)
    return {
        "shortest paths": shortest_paths_bound(compact),
        "shared prices, Polyak": polyak(Relaxation(compact, largest=1), ascent, target=target).value,
        "trees, bundle": bundle(Relaxation(compact), ascent, target=target).value,
        "linear relaxation": relaxed(compact, Run()),
        "search": search(compact, Run(iterations=50)).bound,
        PAPER: float(lagrangian(compact, Run(), steps=_STEPS).notes["paper_bound"]),
    }
