"""An instance as arrays of numbers, which every solver works on.

Link e is arcs 2e (from a to b) and 2e + 1 (from b to a).  Request r is one subscriber of one topic; the requests of
topic k are ``request_start[k]`` to ``request_start[k + 1]``.  A topic may use an arc whose tail is a broker or its own
source, whose head is a broker or one of its own subscribers, and whose capacity is not below the topic's rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tieline.plan.instance import Instance, unmet_price, weight

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: Rates are sums of measured numbers: capacity may be exceeded by rounding, not by more.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """The compact form of an instance."""

    instance: Instance
    #: Per link.
    capacity: Floats
    cost: Floats
    latency: Floats
    #: Per arc.
    tail: Ints
    head: Ints
    #: Arcs that leave node v: ``out_arc[out_start[v]:out_start[v + 1]]``; the same for those that enter it.
    out_start: Ints
    out_arc: Ints
    in_start: Ints
    in_arc: Ints
    #: Per node.
    is_broker: Flags
    #: -1 for no limit.
    max_connections: Ints
    #: Per topic.
    source: Ints
    #: A topic and a node from which it may come, as ``topic * nodes + node``, sorted: ``source`` and all others.
    source_keys: Ints
    rate: Floats
    #: By how much the rate may rise; a plan has room for so many of these at once as ``instance.deviations`` says.
    swing: Floats
    weight: Floats
    level: Ints
    #: What an unmet request of the topic adds to the objective.
    price: Floats
    #: Infinite for no bound.
    max_latency: Floats
    request_start: Ints
    #: Per request.
    request_node: Ints
    request_topic: Ints

    @property
    def nodes(self) -> int:
        return len(self.is_broker)

    @property
    def links(self) -> int:
        return len(self.capacity)

    @property
    def arcs(self) -> int:
        return len(self.tail)

    @property
    def topics(self) -> int:
        return len(self.source)

    @property
    def requests(self) -> int:
        return len(self.request_node)

    def subscribers(self, topic: int) -> Ints:
        """The nodes that want a topic, in the order of its requests."""
        return self.request_node[self.request_start[topic] : self.request_start[topic + 1]]

    def usable(self, topic: int) -> Flags:
        """Which arcs a topic may use."""
        takes = self.is_broker.copy()
        takes[self.subscribers(topic)] = True
        takes[self.sources(topic)] = False
        emits = self.is_broker.copy()
        emits[self.sources(topic)] = True
        usable: Flags = emits[self.tail] & takes[self.head] & np.repeat(self.fits(topic), 2)
        return usable

    def fits(self, topic: int) -> Flags:
        """Which links have room for a topic that is alone on them."""
        most = self.rate[topic] + (0.0 if self.instance.deviations == 0 else self.swing[topic])
        fits: Flags = most <= self.capacity * (1 + TOLERANCE)
        return fits

    def sources(self, topic: int) -> Ints:
        """The nodes from which a topic may come."""
        low, high = np.searchsorted(self.source_keys, (topic * self.nodes, (topic + 1) * self.nodes))
        return self.source_keys[low:high] - topic * self.nodes

    def begins(self, topic: Ints, node: Ints) -> Flags:
        """Whether each topic may come from the node beside it."""
        found: Flags = np.isin(topic * self.nodes + node, self.source_keys)
        return found

    def arc_cost(self) -> Floats:
        return np.repeat(self.cost, 2)


def arrays(instance: Instance) -> Arrays:
    """The arrays of a well-formed instance."""
    number = {node.id: place for place, node in enumerate(instance.nodes)}
    ends = _ints([(number[link.a], number[link.b]) for link in instance.links]).reshape(-1, 2)
    tail = ends.reshape(-1)
    head = ends[:, ::-1].reshape(-1)
    out_start, out_arc = _grouped(tail, len(instance.nodes))
    in_start, in_arc = _grouped(head, len(instance.nodes))
    counts = _ints([len(topic.subscribers) for topic in instance.topics])
    price = unmet_price(instance)
    weights = _floats([weight(topic) for topic in instance.topics])
    return Arrays(
        instance=instance,
        capacity=_floats([link.capacity for link in instance.links]),
        cost=_floats([link.cost for link in instance.links]),
        latency=_floats([link.latency for link in instance.links]),
        tail=tail,
        head=head,
        out_start=out_start,
        out_arc=out_arc,
        in_start=in_start,
        in_arc=in_arc,
        is_broker=np.array([node.is_broker for node in instance.nodes], dtype=np.bool_),
        max_connections=_ints(
            [-1 if node.max_connections is None else node.max_connections for node in instance.nodes]
        ),
        source=_ints([number[topic.source] for topic in instance.topics]),
        source_keys=np.sort(
            _ints(
                [
                    k * len(instance.nodes) + number[one]
                    for k, topic in enumerate(instance.topics)
                    for one in topic.sources
                ]
            )
        ),
        rate=_floats([topic.rate for topic in instance.topics]),
        swing=_floats([topic.swing for topic in instance.topics]),
        weight=weights,
        level=_ints([topic.level for topic in instance.topics]),
        price=price * weights if instance.unmet_cost is None else np.full(len(weights), price),
        max_latency=_floats([np.inf if topic.max_latency is None else topic.max_latency for topic in instance.topics]),
        request_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        request_node=_ints([number[subscriber] for topic in instance.topics for subscriber in topic.subscribers]),
        request_topic=np.repeat(np.arange(len(instance.topics), dtype=np.int64), counts),
    )


def _grouped(keys: Ints, groups: int) -> tuple[Ints, Ints]:
    """Places of equal keys side by side: where each key's places start, and the places."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    start = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=groups), out=start[1:])
    return start, order


def _ints(values: Sequence[object]) -> Ints:
    return np.array(values, dtype=np.int64)


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
