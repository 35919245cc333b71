"""Instances as JSON documents, format ``tieline-instance-1``: a strict reader and a writer.

:mod:`tieline.instance_document` says what stands in one.  An optional section ``subscriptions`` holds filters with
wildcards; every topic whose name a filter matches gets one subscriber more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar  # Any: values of JSON

import msgspec

from tieline.conf.filters import flaw
from tieline.instance_document import (
    FORMAT,
    InstanceDocument,
    LinkDocument,
    NodeDocument,
    SubscriptionDocument,
    TopicDocument,
    rendered,
)
from tieline.match.trees import FilterTree
from tieline.plan.flaws import Flawed, checked
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic

#: What a document calls "none", by field, and what an instance has in its place.
_LIMITS: Final[dict[str, float | None]] = {
    "capacity": UNLIMITED,
    "max_connections": None,
    "max_latency": None,
    "n_max": None,
    "deviations": None,
}
S = TypeVar("S", bound=msgspec.Struct)
_PLACE: Final = re.compile(r"^(?P<complaint>.*) - at `\$(?P<path>.*)`$", re.DOTALL)
_ELEMENT: Final = re.compile(r"^\.(nodes|links|topics|subscriptions)\[(\d+)\](.*)$")


def explained(complaint: str, raw: dict[str, Any]) -> str:
    """A complaint of the decoder about a document, as a sentence that names the element.

    The document holds anything: it is what JSON says before somebody has understood it.
    """
    found = _PLACE.match(complaint)
    if found is None:
        return f"the instance: {complaint}"
    complaint, path = found["complaint"].replace("`", '"'), found["path"]
    element = _ELEMENT.match(path)
    if element is None:
        return f"the instance: {path.lstrip('.')}: {complaint}"
    kind, number, field = element[1], int(element[2]), element[3].lstrip(".")
    where = f"{kind[:-1]} {number}{_nickname(kind, raw[kind][number])}"
    return f"{where}: {field}: {complaint}" if field else f"{where}: {complaint}"


def _nickname(kind: str, element: object) -> str:
    if not isinstance(element, dict):
        return ""
    names: Sequence[str] = {"links": ("a", "b"), "subscriptions": ("node", "filter")}.get(kind, ("id",))
    return f" ({' - '.join(str(element[name]) for name in names if name in element)})"


def expanded(instance: Instance, subscriptions: Sequence[SubscriptionDocument]) -> Instance:
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


def read(path: Path) -> Instance:
    """The instance in a file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Flawed(f"{path}: {error.strerror or error}") from error
    return parse(text)


def parse(text: str | bytes) -> Instance:
    """The instance that a document describes; every mistake is an error that names the element and the rule."""
    try:
        raw = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Flawed(f"this is not JSON: {error}") from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise Flawed(f'this is not an instance: its "format" is not "{FORMAT}"')
    return understood(raw)


def understood(raw: dict[str, Any]) -> Instance:
    """The same for a document that was taken from JSON, or made."""
    try:
        document = msgspec.convert(raw, InstanceDocument)
    except msgspec.ValidationError as error:
        raise Flawed(explained(str(error), raw)) from error
    instance = Instance(
        name=document.name,
        nodes=_all_as(Node, document.nodes, _from_document),
        links=_all_as(Link, document.links, _from_document),
        topics=_all_as(Topic, document.topics, _from_document),
        unmet_cost=document.unmet_cost,
        n_max=_from_document("n_max", document.n_max),
        deviations=_from_document("deviations", document.deviations),
    )
    return checked(expanded(instance, document.subscriptions) if document.subscriptions else instance)


def write(instance: Instance, path: Path) -> None:
    """Store an instance in a file."""
    path.write_bytes(render(instance))


def render(instance: Instance) -> bytes:
    """The document of an instance; reading it gives an equal instance."""
    document = InstanceDocument(
        format=FORMAT,
        name=instance.name,
        nodes=_all_as(NodeDocument, instance.nodes, _to_document),
        links=_all_as(LinkDocument, instance.links, _to_document),
        topics=_all_as(TopicDocument, instance.topics, _to_document),
        unmet_cost=instance.unmet_cost,
        n_max=_to_document("n_max", instance.n_max),
        deviations=_to_document("deviations", instance.deviations),
    )
    return rendered(document)


def _all_as(kind: type[S], elements: Iterable[msgspec.Struct], translated: Callable[[str, Any], Any]) -> tuple[S, ...]:
    """Elements of an instance as the document has them, or the other way: the same fields, limits written otherwise."""
    fields = kind.__struct_fields__
    return tuple(kind(**{name: translated(name, getattr(each, name)) for name in fields}) for each in elements)


# a field may have any type: only limits are looked at
def _from_document(field: str, value: Any) -> Any:
    return _LIMITS[field] if value == "none" and field in _LIMITS else value


def _to_document(field: str, value: Any) -> Any:
    return "none" if field in _LIMITS and value == _LIMITS[field] else value
