"""Clients, topics and capacities for a bare network.

Theory of operation
-------------------
Clients stand at random places and see the nearest brokers.  Costs and rates are whole numbers from 1 to 10; costs grow
with the length of a link.  Capacity comes from one scale for the whole network, so that it says nothing about good
routes: the load that shortest-path trees put on their busier links (the sixth decile of the used ones), times the
tightness factor, times a random factor from 0.75 to 1.25.  A client's own links have room for all it publishes or
wants: what is scarce lies between brokers.  A factor of 2 is loose, 1 is tight: requests stay unmet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tieline.extras import needs
from tieline.instance_document import Role
from tieline.plan.arrays import Floats, Ints
from tieline.plan.flaws import checked
from tieline.plan.generate.network import BrokerNetwork
from tieline.plan.instance import Instance, Link, Node, Topic

#: The load is estimated from at most so many topics.
_SAMPLE = 300
_BUSY = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """How many clients and topics a network gets."""

    publishers: int
    subscribers: int
    topics: int
    requests: int
    #: Links between clients and brokers, at least one each.
    client_links: int
    #: The factor b: 2 is loose, 1 is tight.
    tightness: float = 2.0
    unmet_cost: float | None = None
    #: Topics get classes 0 to 3 at random; otherwise all have class 0.
    classes: bool = False

    def check(self) -> None:
        """Refuse what cannot be generated, with the rule."""
        clients = self.publishers + self.subscribers
        if min(self.publishers, self.subscribers, self.topics) < 1:
            raise ValueError("a network needs at least one publisher, one subscriber and one topic")
        if not self.topics <= self.requests <= self.topics * self.subscribers:
            raise ValueError(
                f"{self.requests} requests: {self.topics} topics and {self.subscribers} subscribers allow "
                f"{self.topics} to {self.topics * self.subscribers}"
            )
        if self.client_links < clients:
            raise ValueError(f"{self.client_links} links for {clients} clients: every client needs one")
        if not self.tightness > 0:
            raise ValueError(f"tightness is {self.tightness}; it must be above 0")


def populated(bare: BrokerNetwork, population: Population, rng: Generator) -> Instance:
    """The instance of a bare network with clients, topics and capacities."""
    population.check()
    brokers = len(bare.ids)
    if population.client_links > brokers * (population.publishers + population.subscribers):
        raise ValueError(
            f"{population.client_links} links between clients and {brokers} brokers: there are not so many pairs"
        )
    publishers = [f"p{number}" for number in range(population.publishers)]
    subscribers = [f"s{number}" for number in range(population.subscribers)]
    low, high = bare.places.min(axis=0), bare.places.max(axis=0)
    at = low + rng.random((len(publishers) + len(subscribers), 2)) * np.maximum(high - low, 1e-9)
    seen = _seen_brokers(bare, at, population.client_links, rng)
    access = np.array([(client, broker) for client, brokers_ in enumerate(seen) for broker in brokers_], np.int64)
    reach = np.linalg.norm(at[access[:, 0]] - bare.places[access[:, 1]], axis=1)
    rates = rng.integers(1, 11, population.topics)
    source = np.concatenate(
        [
            rng.permutation(population.publishers)[: population.topics],
            rng.integers(0, population.publishers, max(0, population.topics - population.publishers)),
        ]
    )
    wanted = _wanted(population, rng)
    cost = _costs(bare.length, rng)
    access_cost = _costs(reach, rng)
    busy = _busy_load(
        bare,
        cost,
        [seen[s][0] for s in source],
        [[seen[population.publishers + t][0] for t in each] for each in wanted],
        rates,
    )
    spread = rng.uniform(0.75, 1.25, len(bare.pairs) + len(access))
    room = np.maximum(1.0, np.round(population.tightness * busy * spread))
    backbone = np.where(np.isnan(bare.capacity), room[: len(bare.pairs)], bare.capacity)
    own = np.zeros(len(at))
    np.add.at(own, source, rates)
    for topic, each in enumerate(wanted):
        own[population.publishers + np.array(each)] += rates[topic]
    access_room = np.maximum(room[len(bare.pairs) :], own[access[:, 0]])
    levels = rng.integers(0, 4, population.topics) if population.classes else np.zeros(population.topics, np.int64)
    roles: list[tuple[str, Role, Floats]] = [
        *((bare.ids[number], "broker", bare.places[number]) for number in range(brokers)),
        *((name, "publisher", at[number]) for number, name in enumerate(publishers)),
        *((name, "subscriber", at[len(publishers) + number]) for number, name in enumerate(subscribers)),
    ]
    clients = publishers + subscribers
    nodes = tuple(
        Node(id=name, roles=(role,), at=(round(float(place[0]), 5), round(float(place[1]), 5)))
        for name, role, place in roles
    )
    links = (
        *(
            Link(a=bare.ids[a], b=bare.ids[b], capacity=float(room_), cost=float(cost_), latency=_latency(length))
            for (a, b), room_, cost_, length in zip(bare.pairs, backbone, cost, bare.length, strict=True)
        ),
        *(
            Link(a=clients[c], b=bare.ids[b], capacity=float(room_), cost=float(cost_), latency=_latency(length))
            for (c, b), room_, cost_, length in zip(access, access_room, access_cost, reach, strict=True)
        ),
    )
    topics = tuple(
        Topic(
            id=f"t{number}",
            source=publishers[source[number]],
            rate=float(rates[number]),
            subscribers=tuple(subscribers[s] for s in wanted[number]),
            level=int(levels[number]),
        )
        for number in range(population.topics)
    )
    return checked(Instance(name=bare.name, nodes=nodes, links=links, topics=topics, unmet_cost=population.unmet_cost))


def _latency(length: float) -> float:
    return round(float(length), 5)


def _costs(length: Floats, rng: Generator) -> Ints:
    typical = float(np.median(length)) if len(length) else 1.0
    return np.clip(np.rint(5 * length / max(typical, 1e-9) * rng.uniform(0.5, 1.5, len(length))), 1, 10).astype(
        np.int64
    )


def _seen_brokers(bare: BrokerNetwork, at: Floats, links: int, rng: Generator) -> list[list[int]]:
    """The brokers that each client may attach to, the nearest first."""
    with needs("plan"):
        from scipy.spatial import cKDTree

    counts = np.full(len(at), links // len(at))
    counts[rng.permutation(len(at))[: links % len(at)]] += 1
    _, near = cKDTree(bare.places).query(at, k=int(counts.max()))
    near = near.reshape(len(at), -1)
    return [near[client, : counts[client]].tolist() for client in range(len(at))]


def _wanted(population: Population, rng: Generator) -> list[list[int]]:
    """Distinct subscribers per topic; every topic has one, and every subscriber wants one where requests suffice."""
    chosen: list[set[int]] = [set() for _ in range(population.topics)]
    everybody = rng.permutation(population.subscribers)
    for number in range(population.topics):
        chosen[number].add(int(everybody[number % population.subscribers]))
    left = population.requests - population.topics
    for number in range(population.topics, min(population.subscribers, population.requests)):
        chosen[number % population.topics].add(int(everybody[number]))
        left -= 1
    while left > 0:
        open_topics = [number for number in range(population.topics) if len(chosen[number]) < population.subscribers]
        for number in rng.choice(open_topics, size=min(left, len(open_topics)), replace=left < len(open_topics)):
            free = population.subscribers - len(chosen[number])
            if free <= 0:
                continue
            subscriber = int(rng.integers(population.subscribers))
            while subscriber in chosen[number]:
                subscriber = (subscriber + 1) % population.subscribers
            chosen[number].add(subscriber)
            left -= 1
    return [sorted(each) for each in chosen]


def _busy_load(bare: BrokerNetwork, cost: Ints, sources: list[int], targets: list[list[int]], rates: Ints) -> float:
    """The load that shortest-path trees put on the busier of the links they use."""
    with needs("plan"):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

    brokers, pairs = len(bare.ids), bare.pairs
    largest = float(rates.max())
    if not len(pairs):
        return largest * len(rates)
    graph = csr_array((cost.astype(np.float64), (pairs[:, 0], pairs[:, 1])), shape=(brokers, brokers))
    step = math.ceil(len(sources) / _SAMPLE)
    sampled = range(0, len(sources), step)
    load: dict[tuple[int, int], float] = {}
    for topic in sampled:
        _, before = dijkstra(graph, directed=False, indices=sources[topic], return_predecessors=True)
        used: set[tuple[int, int]] = set()
        for node in targets[topic]:
            while before[node] >= 0:
                used.add((min(node, int(before[node])), max(node, int(before[node]))))
                node = int(before[node])
        for pair in used:
            load[pair] = load.get(pair, 0.0) + float(rates[topic])
    if not load:
        return largest
    return max(largest, step * float(np.quantile(np.array(list(load.values())), _BUSY)))
