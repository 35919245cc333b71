"""Subscriptions with wildcards, expanded: every topic whose name a filter matches gets one subscriber more."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tieline.conf.filters import flaw
from tieline.match.filters import FilterTree
from tieline.plan.flaws import Flawed
from tieline.plan.instance import Instance


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A node wants the topics that match a filter."""

    node: str
    filter: str


def expanded(instance: Instance, subscriptions: Sequence[Subscription]) -> Instance:
    """The instance with the subscriptions added to its topics.

    A publisher whose own topic matches its filter keeps what it sent: that needs no link.
    """
    tree: FilterTree[list[str]] = FilterTree()
    nodes = {node.id for node in instance.nodes}
    for number, subscription in enumerate(subscriptions):
        where = f"subscription {number} ({subscription.node} - {subscription.filter})"
        if subscription.node not in nodes:
            raise Flawed(f'{where}: there is no node "{subscription.node}"')
        if problem := flaw(subscription.filter):
            raise Flawed(f"{where}: {problem}")
        holders = tree.get(subscription.filter)
        if holders is None:
            tree.put(subscription.filter, [subscription.node])
        else:
            holders.append(subscription.node)
    topics = []
    for topic in instance.topics:
        wanted = dict.fromkeys(topic.subscribers)
        for holders in tree.match(topic.id):
            wanted.update(dict.fromkeys(node for node in holders if node != topic.source))
        topics.append(msgspec.structs.replace(topic, subscribers=tuple(wanted)))
    return msgspec.structs.replace(instance, topics=tuple(topics))
