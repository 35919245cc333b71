"""The links between joined brokers, as the brokers tell them: what each carries, costs, and how long it takes.

A link has the lesser of the capacities that its two ends are configured with, in bytes in a second, for both directions
together; a link of which neither end says any has none.  It costs what the dearer end says, and takes half of the
shortest round trip that either has measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from tieline.plan.instance import Instance, Link, Node
from tieline.plan.reading.backbone import Backbone

_BITS: int = 8


class _Broker(msgspec.Struct, frozen=True):
    name: str
    is_reachable: bool


class _Known(msgspec.Struct, frozen=True):
    ends: tuple[str, str]
    costs: tuple[float | None, float | None]
    is_up: bool


class _OwnLink(msgspec.Struct, frozen=True):
    peer: str
    least_round_trip_s: float
    capacity: Annotated[float, Meta(gt=0)] | None = None
    #: What was given to the link since it began, and what waits for it now.
    bytes_out: float = 0.0
    waiting_bytes: float = 0.0


class NetAnswer(msgspec.Struct, frozen=True):
    """What one broker says of the network, or in brief of its own links; fields that it may add are passed over."""

    name: str
    strategy: str
    own: tuple[_OwnLink, ...]
    brokers: tuple[_Broker, ...] = ()
    links: tuple[_Known, ...] = ()

    @property
    def reachable(self) -> list[str]:
        """The brokers that it can reach, itself included, by name."""
        return sorted(broker.name for broker in self.brokers if broker.is_reachable)


def joined_backbone(answers: Mapping[str, NetAnswer], *, capacity: float, in_bytes: bool) -> Backbone:
    """The brokers that have answered, by name, and the links between them; ``capacity`` is of those that say none."""
    links: dict[frozenset[str], Link] = {}
    for answer in answers.values():
        for known in answer.links:
            a, b = known.ends
            if known.is_up and a in answers and b in answers:
                cost = max(cost for cost in known.costs if cost is not None)
                own = [each for end, other in ((a, b), (b, a)) for each in answers[end].own if each.peer == other]
                said = [each.capacity / _BITS for each in own if each.capacity is not None and in_bytes]
                trips = [each.least_round_trip_s for each in own if each.least_round_trip_s]
                links[frozenset(known.ends)] = Link(
                    a=a,
                    b=b,
                    capacity=min(said) if said else capacity,
                    cost=cost,
                    latency=round(min(trips) / 2, 6) if trips else 0.0,
                )
    brokers = tuple(Node(id=name, roles=("broker",)) for name in answers)
    return Backbone(brokers=brokers, links=tuple(sorted(links.values(), key=lambda link: (link.a, link.b))))


def with_headroom(running: Backbone, share: float) -> Backbone:
    """The same links with a share of their capacity left free: for acknowledgements, and since traffic is uneven."""
    links = (msgspec.structs.replace(link, capacity=link.capacity * (1 - share)) for link in running.links)
    return msgspec.structs.replace(running, links=tuple(links))


def with_links(instance: Instance, running: Backbone) -> Instance:
    """An instance whose brokers have the links that run, whatever it says of them."""
    brokers = {node.id for node in instance.nodes if node.is_broker}
    access = tuple(link for link in instance.links if not {link.a, link.b} <= brokers)
    own = tuple(link for link in running.links if {link.a, link.b} <= brokers)
    return msgspec.structs.replace(instance, links=(*access, *own))


def as_it_is(instance: Instance, running: Backbone) -> Instance:
    """An instance without links that are missing where it runs; those that carry less there carry less."""
    known = {frozenset((link.a, link.b)): link for link in running.links}
    brokers = {node.id for node in instance.nodes if node.is_broker}
    links = []
    for link in instance.links:
        found = known.get(frozenset((link.a, link.b)))
        if not {link.a, link.b} <= brokers:
            links.append(link)
        elif found is not None:
            links.append(msgspec.structs.replace(link, capacity=min(link.capacity, found.capacity)))
    return msgspec.structs.replace(instance, links=tuple(links))
