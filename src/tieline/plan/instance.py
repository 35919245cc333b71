"""What is to be planned, as a value: nodes, undirected links that share their capacity, topics and who wants them.

A topic here is one commodity: what one publisher sends under one name.  Only brokers relay.  The cost of a link is paid
once for every subscriber served through it.  :mod:`tieline.plan.flaws` says what makes an instance well-formed,
:mod:`tieline.plan.reading.document` how it is written down.

The objective of a plan is the cost of its links and the price of the requests that it leaves unmet.  With
``unmet_cost`` that is what each of them adds.  Without it the order is lexicographic: serve as many requests as
possible, weighted by class, then save cost.  Both are one number: without ``unmet_cost`` an unmet request of weight 1
is priced above the dearest plan there can be, so that no saving outweighs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import msgspec

from tieline.instance_document import Role

#: The capacity of a link that carries whatever comes; files write "none".
UNLIMITED: Final = math.inf
#: The weight of an unmet request by the class of its topic, 0 to 3.
CLASS_WEIGHTS: Final = (1.0, 2.0, 4.0, 8.0)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A broker, a client, or both."""

    id: str
    roles: tuple[Role, ...]
    #: A node uses at most so many of its links; None for no limit.  A client with 1 attaches to one of its brokers.
    max_connections: int | None = None
    #: Where to draw the node; no solver looks at it.
    at: tuple[float, float] | None = None

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """An undirected link: both directions share its capacity."""

    a: str
    b: str
    #: Sum of the rates of the topics that may use the link, in either direction.
    capacity: float
    #: Paid once per subscriber served through the link.
    cost: float
    #: Counts against the topics' ``max_latency``.
    latency: float = 0.0


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """What one publisher sends under one name, and who wants it."""

    id: str
    source: str
    rate: float
    subscribers: tuple[str, ...]
    #: The level of urgency, 0 to 3, whose weight an unmet request has.
    level: int = 0
    #: No subscriber may be served over a longer way; None for no bound.
    max_latency: float | None = None
    #: The rate lies between ``rate`` and this; None if it is known.
    rate_max: float | None = None
    #: Nodes that have the same messages: a replica, a second gateway.  Each subscriber is served by one of them.
    more_sources: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Every node from which it may come."""
        return (self.source, *self.more_sources)

    @property
    def swing(self) -> float:
        """By how much its rate may be above ``rate``."""
        return 0.0 if self.rate_max is None else self.rate_max - self.rate

    @property
    def key(self) -> tuple[str, str]:
        """What tells commodities apart: several publishers may send under one name."""
        return self.id, self.source


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A network, its topics, and what an unmet request costs."""

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    topics: tuple[Topic, ...]
    #: What one unmet request adds to the objective; None: serve as many as possible first, then save cost.
    unmet_cost: float | None = None
    #: A broker sends a topic on over at most so many links (the paper's n_max); None for no limit.
    n_max: int | None = None
    #: A plan has room for any so many topics above their ``rate`` at once, up to their ``rate_max``; None for all.
    deviations: int | None = None

    @property
    def is_extended(self) -> bool:
        """Whether it states something that only the formulations understand: several sources, or rates in intervals."""
        return any(topic.more_sources or topic.rate_max is not None for topic in self.topics)

    def requests(self) -> Iterator[tuple[Topic, str]]:
        """What is to be served: every topic with each of its subscribers."""
        for topic in self.topics:
            for subscriber in topic.subscribers:
                yield topic, subscriber

    @property
    def request_count(self) -> int:
        return sum(len(topic.subscribers) for topic in self.topics)

    @property
    def arc_count(self) -> int:
        """Arcs as the paper counts them: two between brokers, one from a publisher, one to a subscriber."""
        roles = {node.id: node for node in self.nodes}
        count = 0
        for link in self.links:
            for tail, head in ((roles[link.a], roles[link.b]), (roles[link.b], roles[link.a])):
                emits = tail.is_broker or "publisher" in tail.roles
                takes = head.is_broker or "subscriber" in head.roles
                count += emits and takes
        return count

    def __repr__(self) -> str:
        return (
            f"Instance({self.name!r}, {len(self.nodes)} nodes, {len(self.links)} links, "
            f"{len(self.topics)} topics, {self.request_count} requests)"
        )


def weight(topic: Topic) -> float:
    """How much an unmet request of the topic counts among other unmet ones."""
    return CLASS_WEIGHTS[topic.level]


def unmet_price(instance: Instance) -> float:
    """The price of one unmet request of weight 1."""
    return dearest_plan(instance) + 1.0 if instance.unmet_cost is None else instance.unmet_cost


def request_price(instance: Instance, topic: Topic) -> float:
    """The price of one unmet request of a topic; a stated ``unmet_cost`` is the same for all."""
    price = unmet_price(instance)
    return price * weight(topic) if instance.unmet_cost is None else price


def dearest_plan(instance: Instance) -> float:
    """No plan costs more: every request over a loop-free way through the dearest links."""
    brokers = sum(node.is_broker for node in instance.nodes)
    costs = sorted((link.cost for link in instance.links), reverse=True)
    # rounded up, so that prices of instances with whole costs stay whole and exact in a float
    return float(math.ceil(instance.request_count * sum(costs[: brokers + 1])))


def has_whole_costs(instance: Instance) -> bool:
    """Whether every plan's objective is a whole number, so that bounds may be rounded up."""
    amounts = [link.cost for link in instance.links]
    if instance.unmet_cost is not None:
        amounts.append(instance.unmet_cost)
    return all(float(amount).is_integer() for amount in amounts)
