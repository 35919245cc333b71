"""Capacity relaxed at prices per link: a valid lower bound at any prices, and what moves the prices.

Theory of operation
-------------------
At prices λ a topic pays c per subscriber served through a link and λ a once.  Its subscribers are split into groups,
and each group pays a share of λ a; the shares of a link add up to 1.  A group is served as cheaply as possible,
exactly, by :mod:`tieline.plan.kernels.steiner`.  The sum over groups is at most what the topic's best tree costs,
whatever the shares, so with -Σ λ cap added it is a lower bound of the objective:

* groups of one with equal shares: one shortest path per request, the weakest bound and the fastest (**A**);
* groups of one with shares that follow use: towards the relaxation of the disaggregated formulation (**S**);
* one group per topic: the minimum over trees itself, at least as good as any relaxation of F1 (**trees**).

Topics with more subscribers than a group may have are split into groups of neighbours in the shortest-path tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Arrays, Floats, Ints
from tieline.plan.kernels.network import net
from tieline.plan.kernels.shortest import distances
from tieline.plan.kernels.steiner import cheapest_tree, follow_tree, steiner_tables
from tieline.plan.kernels.tree_costs import Delivery, deliver, through

#: The work per group grows with 3 to this number.
LARGEST = 6


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Some subscribers of one topic that pay for links together."""

    topic: int
    #: Their requests.
    requests: Ints
    targets: Ints


@dataclass(frozen=True, slots=True, eq=False)
class GroupTree:
    """The cheapest way to serve one group at some prices."""

    #: Cost of links per subscriber, and price of the unmet, without λ.
    cost: float
    #: The links it uses, each once.
    links: Ints
    arcs: Ints
    #: Which of the group's requests it serves, as bits.
    served: int


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What all groups answer at some prices."""

    #: A lower bound of the objective.
    value: float
    answers: list[GroupTree]
    #: Per link: what the answers load on it, shares applied, less its capacity.  The direction of steepest ascent.
    slope: Floats


class Relaxation:
    """The relaxed problem of an instance, asked again and again at different prices."""

    def __init__(self, arrays: Arrays, *, largest: int = LARGEST, is_adaptive: bool = True) -> None:
        self.arrays = arrays
        self.is_adaptive = is_adaptive
        self.groups = groups(arrays, largest)
        sizes = np.bincount([group.topic for group in self.groups], minlength=arrays.topics)
        #: Per group the share of λ a that it pays on each link.
        self.shares: list[Floats | float] = [1.0 / float(sizes[group.topic]) for group in self.groups]
        #: Groups of the topics that have several.
        self._split: dict[int, list[int]] = {}
        for number, group in enumerate(self.groups):
            if sizes[group.topic] > 1:
                self._split.setdefault(group.topic, []).append(number)
        widest = max((len(group.targets) for group in self.groups), default=1)
        self._net = net(arrays)
        self._steiner = steiner_tables(arrays, widest)
        self._table = np.empty((1 << widest, arrays.nodes))
        self._cost = arrays.arc_cost()
        self._limited = np.isfinite(arrays.capacity)
        self._empty: dict[int, Floats] = {}

    def evaluate(self, prices: Floats) -> Evaluation:
        """The bound at prices per link, all at least 0; links without a limit have price 0."""
        arrays = self.arrays
        total = -float(prices[self._limited] @ arrays.capacity[self._limited])
        slope = np.where(self._limited, -arrays.capacity, 0.0)
        answers = []
        for number, group in enumerate(self.groups):
            value, answer = self._answer(number, group, prices)
            total += value
            answers.append(answer)
            share = self.shares[number]
            slope[answer.links] += arrays.rate[group.topic] * (
                share if isinstance(share, float) else share[answer.links]
            )
        slope[~self._limited] = 0.0
        return Evaluation(total, answers, slope)

    def use_bounds(self, prices: Floats) -> Floats:
        """Per topic and arc, a lower bound of the objective of any plan in which the topic uses the arc.

        Where it exceeds the value of a known plan, no better plan sends the topic there.  A topic of several groups
        uses an arc if one of them does.
        """
        arrays = self.arrays
        answers = [self._through(number, group, prices) for number, group in enumerate(self.groups)]
        total = sum(value for value, _ in answers) - float(prices[self._limited] @ arrays.capacity[self._limited])
        bounds = np.full((arrays.topics, arrays.arcs), np.inf)
        for group, (value, least) in zip(self.groups, answers, strict=True):
            bounds[group.topic] = np.minimum(bounds[group.topic], total - value + least)
        return bounds

    def _through(self, number: int, group: Group, prices: Floats) -> tuple[float, Floats]:
        arrays = self.arrays
        unit, fixed = self._weights(number, group, prices)
        delivery = Delivery(
            source=int(arrays.source[group.topic]),
            targets=group.targets,
            price=float(arrays.price[group.topic]),
            unit=unit,
            fixed=fixed,
        )
        value = deliver(self._net, delivery, self._table)
        least = np.empty(arrays.arcs)
        through(self._net, delivery, self._table, np.empty_like(self._table), least)
        return value, least

    def _ahead(self, topic: int) -> Floats:
        """How far each node is from a topic's source through empty links; prices only add to it."""
        if topic not in self._empty:
            unit = np.where(np.repeat(self.arrays.fits(topic), 2), self._cost, np.inf)
            self._empty[topic] = distances(self.arrays, topic, unit)
        return self._empty[topic]

    def _weights(self, number: int, group: Group, prices: Floats) -> tuple[Floats, Floats]:
        """What an arc costs the group per subscriber, and once."""
        unit = np.where(np.repeat(self.arrays.fits(group.topic), 2), self._cost, np.inf)
        return unit, np.repeat(prices * self.arrays.rate[group.topic] * self.shares[number], 2)

    def share_by_use(self, evaluation: Evaluation, pace: float) -> None:
        """Let groups that use a link pay more of it, and those that do not, less; shares still add up to 1."""
        if not self.is_adaptive:
            return
        for numbers in self._split.values():
            uses = np.zeros((len(numbers), self.arrays.links))
            for row, number in enumerate(numbers):
                uses[row, evaluation.answers[number].links] = 1.0
            users = uses.sum(axis=0)
            wanted = np.where(users > 0, uses / np.maximum(users, 1.0), np.nan)
            for row, number in enumerate(numbers):
                old = self.shares[number]
                old = np.full(self.arrays.links, old) if isinstance(old, float) else old
                self.shares[number] = np.where(users > 0, (1 - pace) * old + pace * wanted[row], old)

    def _answer(self, number: int, group: Group, prices: Floats) -> tuple[float, GroupTree]:
        arrays, topic = self.arrays, group.topic
        self._steiner.toll[:] = prices * arrays.rate[topic] * self.shares[number]
        value, served = cheapest_tree(self._net, self._steiner, topic, group.requests, self._ahead(topic))
        count = follow_tree(self._net, self._steiner, topic, served)
        arcs = self._steiner.arc[:count]
        unmet = len(group.targets) - served.bit_count()
        travellers = np.bitwise_count(self._steiner.bits[:count])
        cost = float(self._cost[arcs] @ travellers) + unmet * float(arrays.price[topic])
        return value, GroupTree(cost, np.unique(arcs >> 1), np.unique(arcs), served)


def groups(arrays: Arrays, largest: int) -> list[Group]:
    """Every topic's requests, split where there are more than ``largest``."""
    if not 1 <= largest <= 12:
        raise ValueError(f"groups of {largest}: 1 to 12 subscribers may pay together")
    found: list[Group] = []
    for topic in range(arrays.topics):
        requests = np.arange(arrays.request_start[topic], arrays.request_start[topic + 1])
        if len(requests) > largest > 1:
            requests = requests[_tree_order(arrays, topic)]
        parts = -(-len(requests) // largest)
        found.extend(
            Group(topic, part, arrays.request_node[part])
            for part in np.array_split(requests, max(1, parts))
            if len(part)
        )
    return found


def _tree_order(arrays: Arrays, topic: int) -> Ints:
    """Subscribers in the order of a walk through the shortest-path tree, so that neighbours share their way."""
    weight = np.where(np.repeat(arrays.fits(topic), 2), arrays.arc_cost(), np.inf)
    entering = np.full(arrays.nodes, -1, np.int64)
    distances(arrays, topic, weight, entering)

    def way(node: int) -> tuple[int, ...]:
        arcs: list[int] = []
        while entering[node] >= 0:
            arcs.append(int(entering[node]))
            node = int(arrays.tail[arcs[-1]])
        return tuple(reversed(arcs))

    ways = [way(int(node)) for node in arrays.subscribers(topic)]
    return np.array(sorted(range(len(ways)), key=ways.__getitem__), np.int64)
