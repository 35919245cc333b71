"""What can happen to a network, as functions from one instance to the next; an unknown element is named."""

from __future__ import annotations

import msgspec

from tieline.plan.flaws import Flawed, checked
from tieline.plan.instance import Instance, Link, Topic


def without_link(instance: Instance, a: str, b: str) -> Instance:
    """The instance after a link has failed."""
    gone = _link(instance, a, b)
    return msgspec.structs.replace(instance, links=tuple(link for link in instance.links if link is not gone))


def with_link(
    instance: Instance, a: str, b: str, *, capacity: float | None = None, cost: float | None = None
) -> Instance:
    """A link gets another capacity or cost, or comes into being, with both."""
    pair = {a, b}
    known = [link for link in instance.links if {link.a, link.b} == pair]
    if known:
        changed = msgspec.structs.replace(
            known[0],
            capacity=known[0].capacity if capacity is None else capacity,
            cost=known[0].cost if cost is None else cost,
        )
        links = tuple(changed if link is known[0] else link for link in instance.links)
    elif capacity is None or cost is None:
        raise Flawed(f"link {a} - {b} is new: it needs a capacity and a cost")
    else:
        links = (*instance.links, Link(a=a, b=b, capacity=capacity, cost=cost))
    return checked(msgspec.structs.replace(instance, links=links))


def without_broker(instance: Instance, node: str) -> Instance:
    """A broker fails with all its links; what it published or wanted itself goes with it."""
    gone = next((each for each in instance.nodes if each.id == node), None)
    if gone is None:
        raise Flawed(f'there is no node "{node}"')
    if not gone.is_broker:
        raise Flawed(f'"{node}" is not a broker')
    topics = []
    for topic in instance.topics:
        left = tuple(subscriber for subscriber in topic.subscribers if subscriber != node)
        if topic.source != node:
            topics.append(msgspec.structs.replace(topic, subscribers=left))
    return msgspec.structs.replace(
        instance,
        nodes=tuple(each for each in instance.nodes if each.id != node),
        links=tuple(link for link in instance.links if node not in (link.a, link.b)),
        topics=tuple(topics),
    )


def with_subscription(instance: Instance, topic: str, subscriber: str, *, source: str | None = None) -> Instance:
    """The instance after somebody has subscribed to a topic."""
    old = _topic(instance, topic, source)
    new = msgspec.structs.replace(old, subscribers=(*old.subscribers, subscriber))
    return checked(_with_topic(instance, old, new))


def without_subscription(instance: Instance, topic: str, subscriber: str, *, source: str | None = None) -> Instance:
    """The instance after somebody has unsubscribed from a topic."""
    old = _topic(instance, topic, source)
    if subscriber not in old.subscribers:
        raise Flawed(f'topic "{topic}" of "{old.source}": "{subscriber}" is not its subscriber')
    left = tuple(each for each in old.subscribers if each != subscriber)
    return _with_topic(instance, old, msgspec.structs.replace(old, subscribers=left))


def with_rate(instance: Instance, topic: str, rate: float, *, source: str | None = None) -> Instance:
    """The instance after a publisher has begun to send more, or less."""
    old = _topic(instance, topic, source)
    return checked(_with_topic(instance, old, msgspec.structs.replace(old, rate=rate)))


def _link(instance: Instance, a: str, b: str) -> Link:
    for link in instance.links:
        if {link.a, link.b} == {a, b}:
            return link
    raise Flawed(f"there is no link {a} - {b}")


def _topic(instance: Instance, name: str, source: str | None) -> Topic:
    """The topic of a name; the source tells topics of one name apart."""
    known = [topic for topic in instance.topics if topic.id == name and source in (None, topic.source)]
    if not known:
        raise Flawed(f'there is no topic "{name}"' + (f' of "{source}"' if source else ""))
    if len(known) > 1:
        raise Flawed(f'topic "{name}" has several sources ({", ".join(topic.source for topic in known)}): name one')
    return known[0]


def _with_topic(instance: Instance, old: Topic, new: Topic) -> Instance:
    return msgspec.structs.replace(instance, topics=tuple(new if topic is old else topic for topic in instance.topics))
