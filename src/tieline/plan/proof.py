"""Whether a plan is true: everything it says is computed again from the instance alone.

Theory of operation
-------------------
The proof shares no code with the solvers and trusts no figure of the plan.  Per topic it follows the routes from the
source, or from each source where there are several: every link exists, is used once, leaves a broker or the own source
and enters a broker or an own subscriber; every node is entered at most once, and every link is reached from the source,
so that the links form a tree.  What enters a node is what leaves it, subscriber by subscriber, except the subscriber
that the node is.  Then come the limits that topics share: capacity, connections, duplications, latency.  Last the
figures: cost, unmet requests, objective, bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tieline.plan.instance import Instance, Link, Node, Topic, unmet_price, weight
from tieline.plan.plan import Plan
from tieline.plan.routes import Hop, Route

#: Sums of floats may differ by this share.
TOLERANCE: Final = 1e-6


class Refuted(Exception):
    """A plan that is not true: the sentence names what is violated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What routes are worth, computed from nothing but the instance."""

    cost: float
    unmet: int
    objective: float
    #: Load per link, in the order of the instance.
    load: tuple[float, ...]


def proven(instance: Instance, plan: Plan, finding: Finding | None = None) -> Plan:
    """The plan itself, if every word of it is true; ``finding`` is what :func:`examine` just said of its routes."""
    finding = examine(instance, plan.routes) if finding is None else finding
    if plan.instance != instance.name:
        raise Refuted(f'the plan is for the instance "{plan.instance}", not for "{instance.name}"')
    _agree("cost", plan.cost, finding.cost)
    _agree("objective", plan.objective, finding.objective)
    _agree("unmet_price", plan.unmet_price, unmet_price(instance))
    if plan.unmet != finding.unmet:
        raise Refuted(f"the plan says that {plan.unmet} requests are unmet; its routes leave {finding.unmet}")
    slack = TOLERANCE * max(1.0, abs(finding.objective))
    if not plan.bound <= finding.objective + slack:
        raise Refuted(f"the bound {plan.bound} is above the objective {finding.objective}: it bounds nothing")
    if plan.status == "optimal" and plan.bound < finding.objective - slack:
        raise Refuted(f"the plan is called optimal, but its bound {plan.bound} is below {finding.objective}")
    return plan


def examine(instance: Instance, routes: Sequence[Route]) -> Finding:
    """Feasibility of routes, and what they are worth; raises :class:`Refuted` with the first violation."""
    network = _Network(instance)
    topics = {topic.key: topic for topic in instance.topics}
    load: dict[frozenset[str], float] = defaultdict(float)
    swings: dict[frozenset[str], list[float]] = defaultdict(list)
    cost, unmet, unmet_weight = 0.0, 0, 0.0
    seen: set[tuple[str, str]] = set()
    for route in routes:
        key = (route.topic, route.source)
        topic = topics.get(key)
        if topic is None:
            raise Refuted(f'there is no topic "{route.topic}" of "{route.source}"')
        if key in seen:
            raise Refuted(f'topic "{route.topic}" of "{route.source}" has two routes')
        seen.add(key)
        served = _Tree(network, topic, route).examine()
        for hop in route.links:
            load[frozenset((hop.tail, hop.head))] += topic.rate
            if topic.rate_max is not None:
                swings[frozenset((hop.tail, hop.head))].append(topic.rate_max - topic.rate)
            cost += network.link(hop).cost * len(hop.subscribers)
        missed = len(topic.subscribers) - served
        unmet += missed
        unmet_weight += missed * weight(topic)
    for key in topics.keys() - seen:
        raise Refuted(f'topic "{key[0]}" of "{key[1]}" has no route, not even one that serves nobody')
    _check_capacity(instance, load, swings)
    _check_connections(network, load)
    price = unmet_price(instance)
    return Finding(
        cost=cost,
        unmet=unmet,
        objective=cost + price * (unmet_weight if instance.unmet_cost is None else unmet),
        load=tuple(load.get(frozenset((link.a, link.b)), 0.0) for link in instance.links),
    )


class _Network:
    """The instance, looked up by name."""

    def __init__(self, instance: Instance) -> None:
        self.nodes: dict[str, Node] = {node.id: node for node in instance.nodes}
        self.links: dict[frozenset[str], Link] = {frozenset((link.a, link.b)): link for link in instance.links}
        self.n_max = instance.n_max

    def link(self, hop: Hop) -> Link:
        link = self.links.get(frozenset((hop.tail, hop.head)))
        if link is None:
            raise Refuted(f"there is no link {hop.tail} - {hop.head}")
        return link


class _Tree:
    """One topic's route, followed from its source."""

    def __init__(self, network: _Network, topic: Topic, route: Route) -> None:
        self.network = network
        self.topic = topic
        self.route = route
        self.wanted = frozenset(topic.subscribers)
        self.sources = frozenset((topic.source, *topic.more_sources))
        self.entering: dict[str, Hop] = {}
        self.leaving: dict[str, list[Hop]] = defaultdict(list)

    def refuted(self, complaint: str) -> Refuted:
        return Refuted(f'topic "{self.topic.id}" of "{self.topic.source}": {complaint}')

    def examine(self) -> int:
        """The number of subscribers that the tree serves."""
        for hop in self.route.links:
            self._check_hop(hop)
        self._check_reached()
        served = self._check_passed_on()
        if self.topic.max_latency is not None:
            self._check_latency(self.topic.max_latency)
        if self.network.n_max is not None:
            self._check_duplications(self.network.n_max)
        stated = frozenset(self.route.unmet)
        if stated != self.wanted - served or len(stated) < len(self.route.unmet):
            raise self.refuted(
                f"it states other unmet subscribers than it has: {sorted(stated ^ (self.wanted - served))}"
            )
        return len(served)

    def _check_hop(self, hop: Hop) -> None:
        where = f"{hop.tail} -> {hop.head}"
        self.network.link(hop)
        tail, head = self.network.nodes[hop.tail], self.network.nodes[hop.head]
        if not tail.is_broker and tail.id not in self.sources:
            raise self.refuted(f"{where}: {hop.tail} is neither a broker nor the source, and sends")
        if head.id in self.sources:
            raise self.refuted(f"{where}: the topic returns to its source")
        if not head.is_broker and head.id not in self.wanted:
            raise self.refuted(f"{where}: {hop.head} is neither a broker nor a subscriber, and receives")
        if not hop.subscribers:
            raise self.refuted(f"{where}: the link is used and serves nobody")
        if len(set(hop.subscribers)) < len(hop.subscribers):
            raise self.refuted(f"{where}: a subscriber is served twice through the link")
        for subscriber in hop.subscribers:
            if subscriber not in self.wanted:
                raise self.refuted(f"{where}: {subscriber} is served and did not subscribe")
        if hop.head in self.entering:
            raise self.refuted(f"{hop.head} is entered twice, from {self.entering[hop.head].tail} and from {hop.tail}")
        self.entering[hop.head] = hop
        self.leaving[hop.tail].append(hop)

    def _check_reached(self) -> None:
        """Every node is entered once, so what each source reaches is a tree; the rest would be a loop."""
        reached = 0
        stack = sorted(self.sources)
        while stack:
            for hop in self.leaving.get(stack.pop(), ()):
                reached += 1
                stack.append(hop.head)
        if reached < len(self.entering):
            raise self.refuted("links of the route form a loop, or nothing joins them to the source")

    def _check_passed_on(self) -> frozenset[str]:
        served: set[str] = set()
        emitted: set[str] = set()
        for node in (*sorted(self.sources), *self.entering):
            passed: set[str] = set()
            for hop in self.leaving.get(node, ()):
                twice = passed.intersection(hop.subscribers)
                if twice:
                    raise self.refuted(f"{node} serves {min(twice)} over two links")
                passed.update(hop.subscribers)
            if node in self.sources:
                twice = emitted & passed
                if twice:
                    raise self.refuted(f"{min(twice)} is served by two sources")
                emitted |= passed
                continue
            arrived = set(self.entering[node].subscribers)
            if passed - arrived:
                raise self.refuted(f"{node} passes on to {min(passed - arrived)}, for whom nothing arrived")
            kept = arrived - passed
            if kept - {node}:
                raise self.refuted(f"what is for {min(kept - {node})} ends at {node}")
            served |= kept
        return frozenset(served)

    def _check_latency(self, bound: float) -> None:
        delay = dict.fromkeys(self.sources, 0.0)
        stack = sorted(self.sources)
        while stack:
            node = stack.pop()
            for hop in self.leaving.get(node, ()):
                delay[hop.head] = delay[node] + self.network.link(hop).latency
                stack.append(hop.head)
                is_served = hop.head in hop.subscribers
                if is_served and delay[hop.head] > bound * (1 + TOLERANCE) + TOLERANCE:
                    raise self.refuted(f"{hop.head} is served after {delay[hop.head]}; max_latency is {bound}")

    def _check_duplications(self, n_max: int) -> None:
        for node, hops in self.leaving.items():
            if self.network.nodes[node].is_broker and len(hops) > n_max:
                raise self.refuted(f"broker {node} sends it over {len(hops)} links; n_max is {n_max}")


def _check_capacity(
    instance: Instance, load: dict[frozenset[str], float], swings: dict[frozenset[str], list[float]]
) -> None:
    """The worst that may happen on a link is that those topics rise together which rise most."""
    for link in instance.links:
        pair = frozenset((link.a, link.b))
        rises = sorted(swings.get(pair, ()), reverse=True)
        used = load.get(pair, 0.0)
        most = used + sum(rises if instance.deviations is None else rises[: instance.deviations])
        if most > link.capacity * (1 + TOLERANCE):
            worst = f" and up to {most} when rates rise" if most > used else ""
            raise Refuted(f"link {link.a} - {link.b} carries {used}{worst}; its capacity is {link.capacity}")


def _check_connections(network: _Network, load: dict[frozenset[str], float]) -> None:
    used: dict[str, int] = defaultdict(int)
    for pair in load:
        for node in pair:
            used[node] += 1
    for node, count in used.items():
        limit = network.nodes[node].max_connections
        if limit is not None and count > limit:
            kind = "broker" if network.nodes[node].is_broker else "client"
            raise Refuted(f"{kind} {node} uses {count} links; its max_connections is {limit}")


def _agree(name: str, stated: float, found: float) -> None:
    if not abs(stated - found) <= TOLERANCE * max(1.0, abs(found)):
        raise Refuted(f"the plan states {name} {stated}; its routes give {found}")
