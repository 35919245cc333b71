"""What is to be planned, as a value: nodes, undirected links that share their capacity, topics and who wants them.

A topic here is one commodity: what one publisher sends under one name.  Only brokers relay.  The cost of a link is paid
once for every subscriber served through it.  :mod:`tieline.plan.flaws` says what makes an instance well-formed,
:mod:`tieline.plan.reading.document` how it is written down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

Role = Literal["broker", "publisher", "subscriber"]

#: The capacity of a link that carries whatever comes; files write "none".
UNLIMITED: Final = math.inf


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A broker, a client, or both."""

    id: str
    roles: tuple[Role, ...]
    #: A broker uses at most so many of its links; None for no limit.
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

    def requests(self) -> Iterator[tuple[Topic, str]]:
        """Every wish to be served: a topic and one of its subscribers."""
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
