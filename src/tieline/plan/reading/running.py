"""A network that runs, as an instance: what its brokers have counted, and the links between them.

Theory of operation
-------------------
A topic's source is where it is published, and whoever subscribes to it anywhere wants it, so filters are expanded
against the topics of all brokers together.  Clients are nodes, each linked to its broker, because the cost of a link is
paid once for every subscriber; or, if one likes, each broker stands for its clients, publishes what they publish and
wants each topic once.  A client that several brokers know, or that is called like a broker, gets ``@BROKER`` behind its
name.  A group that shares its messages takes each of them once at its broker, as one subscriber does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from tieline.core.figures.demand import DemandRow, Subscribed
from tieline.instance_document import Role, SubscriptionDocument
from tieline.plan.flaws import Flawed, checked
from tieline.plan.instance import Instance, Link, Node, Topic
from tieline.plan.reading.backbone import Backbone
from tieline.plan.reading.document import expanded

Unit = Literal["bytes", "messages"]
Party = Literal["client", "broker"]

#: Before the name and the filter of a group, where a client is expected: as its members write it.
_GROUP: Final = "$share/"


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker was asked to carry while it was watched."""

    broker: str
    seconds: float
    #: Messages that the broker had no room to name.
    unnamed: int = 0
    flows: Sequence[DemandRow] = ()
    subscriptions: Sequence[Subscribed] = ()


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, and what it cannot show."""

    instance: Instance
    notes: tuple[str, ...]


def observed(  # what was seen, and how it is to be read
    surveys: Sequence[Survey],
    backbone: Backbone,
    *,
    name: str,
    unit: Unit = "bytes",
    party: Party = "client",
    framed: int = 0,
) -> Observed:
    """The instance of a network that runs; ``party`` is who publishes and subscribes in it.

    ``framed`` is what each message takes beside its packet, where bytes are counted.
    """
    ids = _ids(surveys) if party == "client" else {}
    topics = _topics(surveys, ids, unit, framed)
    if not topics:
        raise Flawed(f"nothing was published at {', '.join(survey.broker for survey in surveys)} in that time")
    subscriptions = dict.fromkeys(
        SubscriptionDocument(node=ids.get((survey.broker, _subscriber(one)), survey.broker), filter=one.filter)
        for survey in surveys
        for one in survey.subscriptions
    )
    everybody = [Node(id=id_, roles=("subscriber",)) for id_ in ids.values()]
    bare = Instance(name=name, nodes=(*backbone.brokers, *everybody), links=(), topics=topics)
    wanted = tuple(
        # in an order of their own, so that two instances of one network can be compared
        msgspec.structs.replace(topic, subscribers=tuple(sorted(topic.subscribers)))
        for topic in expanded(bare, list(subscriptions)).topics
        if topic.subscribers
    )
    roles = _roles(wanted)
    clients = {id_: broker for (broker, _), id_ in ids.items() if id_ in roles}
    instance = Instance(
        name=name,
        nodes=(
            *(msgspec.structs.replace(node, roles=(*node.roles, *roles.get(node.id, ()))) for node in backbone.brokers),
            *(Node(id=client, roles=roles[client]) for client in clients),
        ),
        links=(
            *backbone.links,
            *(
                Link(a=client, b=broker, capacity=backbone.access.capacity, cost=backbone.access.cost)
                for client, broker in clients.items()
            ),
        ),
        topics=wanted,
        unmet_cost=backbone.unmet_cost,
    )
    return Observed(instance=checked(instance), notes=tuple(_notes(surveys, len(topics) - len(wanted))))


def _subscriber(one: Subscribed) -> str:
    return f"{_GROUP}{one.share}/{one.filter}" if one.share else one.client


def _ids(surveys: Sequence[Survey]) -> dict[tuple[str, str], str]:
    """What each client is called, by its broker and its own name, in the order of both."""
    at: defaultdict[str, list[str]] = defaultdict(list)
    for survey in surveys:
        here = {flow.publisher for flow in survey.flows} | {_subscriber(one) for one in survey.subscriptions}
        for client in here:
            at[client].append(survey.broker)
    brokers = {survey.broker for survey in surveys}
    taken = brokers | {client for client, places in at.items() if len(places) == 1}
    ids: dict[tuple[str, str], str] = {}
    for client in sorted(at):
        for broker in at[client]:
            id_ = client
            if len(at[client]) > 1 or client in brokers:
                id_ = f"{client}@{broker}"
                while id_ in taken:
                    id_ += f"@{broker}"
                taken.add(id_)
            ids[broker, client] = id_
    return ids


def _topics(surveys: Sequence[Survey], ids: dict[tuple[str, str], str], unit: Unit, framed: int) -> tuple[Topic, ...]:
    """One for each source and name; the clients of a broker that stands for them are one source."""
    rates: defaultdict[tuple[str, str], float] = defaultdict(float)
    levels: defaultdict[tuple[str, str], int] = defaultdict(int)
    for survey in surveys:
        for flow in survey.flows:
            key = (flow.topic, ids.get((survey.broker, flow.publisher), survey.broker))
            size = flow.bytes + framed * flow.messages
            rates[key] += (size if unit == "bytes" else flow.messages) / survey.seconds
            levels[key] = max(levels[key], flow.level)
    return tuple(
        Topic(id=topic, source=source, rate=round(rates[topic, source], 6), subscribers=(), level=levels[topic, source])
        for topic, source in sorted(rates)
    )


def _roles(topics: Iterable[Topic]) -> dict[str, tuple[Role, ...]]:
    publishers = {topic.source for topic in topics}
    subscribers = {subscriber for topic in topics for subscriber in topic.subscribers}
    return {
        id_: (
            *(("publisher",) if id_ in publishers else ()),
            *(("subscriber",) if id_ in subscribers else ()),
        )
        for id_ in publishers | subscribers
    }


def _notes(surveys: Sequence[Survey], unwanted: int) -> Iterable[str]:
    """What whoever plans with the instance should know."""
    if unwanted:
        yield f"topics left out, because nobody else subscribes to them: {unwanted:,}"
    conditional = sum(one.is_conditional for survey in surveys for one in survey.subscriptions)
    if conditional:
        yield f"subscriptions with a condition, which count as if they wanted every message: {conditional:,}"
    groups = {(survey.broker, _subscriber(one)) for survey in surveys for one in survey.subscriptions if one.share}
    if groups:
        yield f"groups that share their messages, each of which counts as one subscriber at its broker: {len(groups):,}"
    for survey in surveys:
        if survey.unnamed:
            yield f"messages at {survey.broker} left out, because there were too many topics: {survey.unnamed:,}"
