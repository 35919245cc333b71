"""The rules that every instance obeys; the first one broken is named together with the element that breaks it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, get_args

from tieline.instance_document import Role
from tieline.plan.instance import Instance, Link, Node, Topic

LEVELS: Final = range(4)
_ROLES: Final = get_args(Role)


class Flawed(ValueError):
    """An instance that means nothing: the sentence names the element and the rule."""


def checked(instance: Instance) -> Instance:
    """The instance itself, if it obeys every rule."""
    for flaw in flaws(instance):
        raise Flawed(flaw)
    return instance


def flaws(instance: Instance) -> Iterator[str]:
    """Each broken rule as a sentence."""
    nodes: dict[str, Node] = {}
    for number, node in enumerate(instance.nodes):
        yield from _node_flaws(f"node {number} ({node.id})", node)
        if node.id in nodes:
            yield f"node {number} ({node.id}): another node has the same id"
        nodes[node.id] = node
    yield from _link_table_flaws(instance.links, nodes)
    known: dict[tuple[str, str], int] = {}
    for number, topic in enumerate(instance.topics):
        yield from _topic_flaws(f"topic {number} ({topic.id})", topic, nodes)
        if topic.key in known:
            yield f"topic {number} ({topic.id}): topic {known[topic.key]} has the same id and source"
        known.setdefault(topic.key, number)
    if instance.unmet_cost is not None:
        yield from _amount("the instance", "unmet_cost", instance.unmet_cost)
    if instance.n_max is not None and instance.n_max < 1:
        yield "the instance: n_max is less than 1, so no broker could send anything on"
    if instance.deviations is not None and instance.deviations < 0:
        yield "the instance: deviations is negative"


def _node_flaws(where: str, node: Node) -> Iterator[str]:
    if not node.id:
        yield f"{where}: the id is empty"
    if not node.roles:
        yield f"{where}: it has no role; known: {', '.join(_ROLES)}"
    for role in node.roles:
        if role not in _ROLES:
            yield f'{where}: "{role}" is no role; known: {", ".join(_ROLES)}'
    if len(set(node.roles)) < len(node.roles):
        yield f"{where}: a role is written twice"
    if node.max_connections is not None and node.max_connections < 0:
        yield f"{where}: max_connections is negative"
    if node.at is not None and not all(map(math.isfinite, node.at)):
        yield f"{where}: its place is not finite"


def _link_table_flaws(links: tuple[Link, ...], nodes: dict[str, Node]) -> Iterator[str]:
    known: dict[frozenset[str], int] = {}
    for number, link in enumerate(links):
        where = f"link {number} ({link.a} - {link.b})"
        for end in (link.a, link.b):
            if end not in nodes:
                yield f'{where}: there is no node "{end}"'
        if link.a == link.b:
            yield f"{where}: it leads from a node to itself"
        pair = frozenset((link.a, link.b))
        if pair in known:
            yield f"{where}: link {known[pair]} joins the same two nodes; write one link with their common capacity"
        known.setdefault(pair, number)
        if math.isnan(link.capacity):
            yield f"{where}: capacity is not a number"
        elif link.capacity < 0:
            yield f"{where}: capacity is negative"
        yield from _amount(where, "cost", link.cost)
        yield from _amount(where, "latency", link.latency)


def _topic_flaws(where: str, topic: Topic, nodes: dict[str, Node]) -> Iterator[str]:
    if not topic.id:
        yield f"{where}: the id is empty"
    yield from _amount(where, "rate", topic.rate)
    if topic.level not in LEVELS:
        yield f"{where}: class is {topic.level}; known: {LEVELS[0]} to {LEVELS[-1]}"
    if topic.max_latency is not None:
        yield from _amount(where, "max_latency", topic.max_latency)
    if topic.source not in nodes:
        yield f'{where}: there is no node "{topic.source}" to be its source'
    elif "publisher" not in nodes[topic.source].roles:
        yield f'{where}: its source "{topic.source}" does not have the role publisher'
    if topic.rate_max is not None:
        yield from _amount(where, "rate_max", topic.rate_max)
        if topic.rate_max < topic.rate:
            yield f"{where}: rate_max is less than its rate"
    for source in topic.more_sources:
        if source not in nodes:
            yield f'{where}: there is no node "{source}" to be one of its sources'
        elif "publisher" not in nodes[source].roles:
            yield f'{where}: its source "{source}" does not have the role publisher'
    if len(set(topic.sources)) < len(topic.sources):
        yield f"{where}: a source is written twice"
    seen: set[str] = set()
    for subscriber in topic.subscribers:
        if subscriber not in nodes:
            yield f'{where}: there is no node "{subscriber}" to be a subscriber'
        elif "subscriber" not in nodes[subscriber].roles:
            yield f'{where}: "{subscriber}" does not have the role subscriber'
        if subscriber in topic.sources:
            yield f'{where}: its source "{subscriber}" cannot be its subscriber'
        if subscriber in seen:
            yield f'{where}: the subscriber "{subscriber}" is written twice'
        seen.add(subscriber)


def _amount(where: str, name: str, value: float) -> Iterator[str]:
    if not math.isfinite(value):
        yield f"{where}: {name} is not finite"
    elif value < 0:
        yield f"{where}: {name} is negative"
