"""From a demand matrix to an instance of the planning problem: the file that ``tieline plan`` reads.

Brokers and the links between them come from a file of their own, because no traffic shows what a link could carry.
Clients are nodes too, each linked to the broker where it connects.  One commodity is what one publisher sends to one
topic; its rate is the most that any subscriber was sent of it, because a subscriber with a condition takes a part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal  # Any: rows of Spark

import msgspec
from msgspec import Meta, Struct

from tieline.instance_document import FORMAT, InstanceDocument, LinkDocument, NodeDocument, TopicDocument

Positive = Annotated[float, Meta(ge=0)]
Unit = Literal["bytes", "messages"]


class Unplannable(ValueError):
    """A network file or a matrix from which no instance can be made; the text is a sentence."""


class NetworkLink(LinkDocument, frozen=True, kw_only=True):
    """A link between brokers, as the instance will have it; its numbers are looked at when the file is read."""

    capacity: Positive | Literal["none"]
    cost: Positive
    latency: Positive = 0.0


class NetworkBroker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A broker of a network file."""

    id: Annotated[str, Meta(min_length=1)]
    max_connections: Annotated[int, Meta(ge=0)] | Literal["none"] = "none"


class Access(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the link between a client and its broker can carry and costs."""

    capacity: Positive | Literal["none"] = "none"
    cost: Positive = 0.0


class NetworkFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network file: brokers, links between them, and how clients are attached."""

    brokers: Annotated[tuple[NetworkBroker, ...], Meta(min_length=1)]
    links: tuple[NetworkLink, ...] = ()
    access: Access = Access()
    #: At which broker a client is, where that differs from what the events say.
    clients: dict[str, str] = {}
    unmet_cost: Positive | None = None

    @classmethod
    def read(cls, file: Path) -> NetworkFile:
        """A network from a JSON file."""
        try:
            network = msgspec.json.decode(file.read_bytes(), type=cls)
        except OSError as problem:
            raise Unplannable(f"cannot read {file}: {(problem.strerror or str(problem)).lower()}.") from None
        except msgspec.DecodeError as problem:
            raise Unplannable(f"{file} is no network: {str(problem).lower()}.") from None
        network.check()
        return network

    @classmethod
    def of(cls, shards: Iterable[str]) -> NetworkFile:
        """Nothing but these brokers; several of them have no links that anybody knows of."""
        return cls(brokers=tuple(NetworkBroker(id=each) for each in sorted(set(shards))))

    def check(self) -> None:
        """Refuse names that are used twice or lead nowhere."""
        known = {each.id for each in self.brokers}
        if len(known) < len(self.brokers):
            raise Unplannable("two brokers of the network have the same id.")
        for link in self.links:
            for end in (link.a, link.b):
                if end not in known:
                    raise Unplannable(f'the link {link.a} – {link.b} ends at "{end}", which is no broker.')
            if link.a == link.b:
                raise Unplannable(f"the link {link.a} – {link.b} leads nowhere.")
        for client, at in self.clients.items():
            if at not in known:
                raise Unplannable(f'the client {client} is at "{at}", which is no broker.')


def instance(
    matrix: Iterable[Mapping[str, Any]],
    network: NetworkFile,
    *,
    name: str,
    homes: Mapping[str, str],
    unit: Unit = "bytes",
) -> InstanceDocument:
    """The planning problem of a demand matrix (rows of :func:`tieline.pipeline.jobs.traffic.demand_matrix`).

    ``homes`` says at which broker a client connected; one that it lacks is where it was sent something, or where
    something of it was delivered.
    """
    #: By publisher and topic: what each subscriber is sent per second, and the highest level.
    flows: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    levels: dict[tuple[str, str], int] = {}
    seen: dict[str, str] = {}
    for row in matrix:
        key = (row["publisher"], row["topic"])
        subscriber = row["subscriber"]
        flows[key][subscriber] = flows[key].get(subscriber, 0.0) + row[f"{unit}_per_s"]
        levels[key] = max(levels.get(key, 0), row["level"])
        seen[subscriber] = row["shard"]
        seen.setdefault(row["publisher"], row["origin"])
    places = {**seen, **homes, **network.clients}
    topics = _topics(flows, levels)
    clients = _clients(topics)
    brokers = {each.id for each in network.brokers}
    for client in clients:
        if client in brokers:
            raise Unplannable(f'"{client}" is the name of a client and of a broker.')
        if places[client] not in brokers:
            raise Unplannable(f'the client "{client}" is at the broker "{places[client]}", which the network lacks.')
    nodes = [
        NodeDocument(id=each.id, roles=("broker",), max_connections=each.max_connections) for each in network.brokers
    ]
    nodes += [NodeDocument(id=client, roles=roles) for client, roles in clients.items()]
    access = network.access
    between = [LinkDocument(**msgspec.structs.asdict(each)) for each in network.links]
    attached = [LinkDocument(a=each, b=places[each], capacity=access.capacity, cost=access.cost) for each in clients]
    return InstanceDocument(
        format=FORMAT,
        name=name,
        nodes=tuple(sorted(nodes, key=lambda each: each.id)),
        links=tuple(sorted([*between, *attached], key=lambda each: (each.a, each.b))),
        topics=topics,
        unmet_cost=network.unmet_cost,
    )


def _topics(
    flows: Mapping[tuple[str, str], Mapping[str, float]], levels: Mapping[tuple[str, str], int]
) -> tuple[TopicDocument, ...]:
    found = [
        TopicDocument(
            id=topic,
            source=publisher,
            rate=round(max(rates.values()), 6),
            subscribers=tuple(sorted(set(rates) - {publisher})),
            level=levels[publisher, topic],
        )
        for (publisher, topic), rates in flows.items()
    ]
    # Who sends only to itself asks nothing of the network.
    return tuple(sorted((each for each in found if each.subscribers), key=lambda each: (each.id, each.source)))


def _clients(topics: Iterable[TopicDocument]) -> dict[str, tuple[Literal["publisher", "subscriber"], ...]]:
    publishers = {each.source for each in topics}
    subscribers = {client for each in topics for client in each.subscribers}
    return {
        client: (
            *(("publisher",) if client in publishers else ()),
            *(("subscriber",) if client in subscribers else ()),
        )
        for client in sorted(publishers | subscribers)
    }
