"""Instances by name: the paper's test set in its dimensions, and meshes of any size.

The paper's own files are not to be had; these have the same numbers of nodes, arcs, topics and subscribers (Table 1),
as many publishers as topics, and twice as many requests as topics.  The dimensions of res4 are not printed: ours are
60/140/25/20. Table 1 does not say whether dummy arcs are counted.  Ours are not: an unmet request has a price instead
of an arc.  That leaves more links between brokers, hence more choice, than the other reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from tieline.plan.flaws import checked
from tieline.plan.generate.clients import Population, populated
from tieline.plan.generate.network import geometric
from tieline.plan.instance import Instance, Link, Node, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A row of the paper's Table 1."""

    nodes: int
    arcs: int
    topics: int
    subscribers: int

    @property
    def brokers(self) -> int:
        return self.nodes - self.topics - self.subscribers


SIZES: Final = {
    "tiny": Size(nodes=6, arcs=13, topics=2, subscribers=1),
    "case2": Size(nodes=11, arcs=23, topics=3, subscribers=2),
    "case3": Size(nodes=20, arcs=57, topics=6, subscribers=3),
    "res0": Size(nodes=14, arcs=28, topics=5, subscribers=6),
    "res4": Size(nodes=60, arcs=140, topics=25, subscribers=20),
    "res5": Size(nodes=75, arcs=165, topics=31, subscribers=24),
    "res7": Size(nodes=71, arcs=244, topics=31, subscribers=23),
}


def tiny() -> Instance:
    """The paper's tinyInstance: brokers 0 to 2, sources 4 and 5, subscriber 3 of both topics.

    The text gives the nodes, the edges between brokers and the requests.  Ours are the other seven arcs (4-0, 4-1, 5-1,
    5-2, 0-3, 1-3, 2-3), rates of 2, capacities that let each link carry one of the topics, and costs that make broker 1
    redundant, as in the paper's Figure 5.
    """
    return checked(
        Instance(
            name="tiny",
            nodes=(
                *(Node(id=str(number), roles=("broker",)) for number in range(3)),
                Node(id="3", roles=("subscriber",)),
                Node(id="4", roles=("publisher",)),
                Node(id="5", roles=("publisher",)),
            ),
            links=tuple(
                Link(a=a, b=b, capacity=3.0, cost=float(cost))
                for a, b, cost in (
                    ("0", "1", 2), ("1", "2", 2), ("0", "2", 1),
                    ("4", "0", 1), ("4", "1", 2), ("5", "1", 2), ("5", "2", 1),
                    ("0", "3", 2), ("1", "3", 2), ("2", "3", 2),
                )
            ),
            topics=(
                Topic(id="1", source="4", rate=2.0, subscribers=("3",)),
                Topic(id="2", source="5", rate=2.0, subscribers=("3",)),
            ),
        )
    )  # fmt: skip


def paper(name: str, *, seed: int = 0, tightness: float = 2.0, unmet_cost: float | None = None) -> Instance:
    """An instance with the dimensions of one of the paper's; tinyInstance is always the same one."""
    if name not in SIZES:
        raise ValueError(f'"{name}" is not in the test set; known: {", ".join(SIZES)}')
    if name == "tiny":
        return msgspec.structs.replace(tiny(), unmet_cost=unmet_cost)
    size = SIZES[name]
    clients = size.topics + size.subscribers
    # one or two links per client, as many as leave the brokers' own links even and at most as dense as all pairs
    pairs = size.brokers * (size.brokers - 1) // 2
    access = clients + clients // 4
    access += max(0, size.arcs - access - 2 * pairs)
    access += (size.arcs - access) % 2
    population = Population(
        publishers=size.topics,
        subscribers=size.subscribers,
        topics=size.topics,
        requests=2 * size.topics,
        client_links=access,
        tightness=tightness,
        unmet_cost=unmet_cost,
    )
    rng = np.random.default_rng([seed, list(SIZES).index(name)])
    full_name = f"{name}-s{seed}-b{tightness:g}"
    bare = geometric(size.brokers, (size.arcs - access) // 2, rng, name=full_name)
    return populated(bare, population, rng)


def mesh(  # what users describe a mesh by: `tieline plan generate`
    nodes: int,
    *,
    topics: int,
    requests: int,
    seed: int = 0,
    tightness: float = 2.0,
    degree: float = 6.0,
    unmet_cost: float | None = None,
    classes: bool = False,
) -> Instance:
    """A geometric mesh of any size: half of the nodes are brokers with so many links each on average."""
    brokers = max(1, nodes // 2)
    publishers = max(1, (nodes - brokers) // 2)
    subscribers = max(1, nodes - brokers - publishers)
    links = min(brokers * (brokers - 1) // 2, max(brokers - 1, round(brokers * degree / 2)))
    population = Population(
        publishers=publishers,
        subscribers=subscribers,
        topics=topics,
        requests=requests,
        client_links=min(brokers * (publishers + subscribers), (publishers + subscribers) * 3 // 2),
        tightness=tightness,
        unmet_cost=unmet_cost,
        classes=classes,
    )
    rng = np.random.default_rng([seed, nodes])
    return populated(geometric(brokers, links, rng, name=f"mesh{nodes}-s{seed}-b{tightness:g}"), population, rng)
