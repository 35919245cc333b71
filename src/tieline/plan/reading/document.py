"""Instances as JSON documents, format ``tieline-instance-1``: a strict reader and a writer.

The pipeline's ``traffic`` job writes the same documents.  An optional section ``subscriptions`` holds filters with
wildcards, which :mod:`tieline.plan.reading.wildcards` turns into subscribers of the topics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from tieline.plan.flaws import Flawed, checked
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Role, Topic
from tieline.plan.reading.wildcards import Subscription, expanded

FORMAT: Final = "tieline-instance-1"

T = TypeVar("T")


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    pass


class _Node(_Strict):
    id: str
    roles: tuple[Role, ...]
    max_connections: int | Literal["none"] = "none"
    at: tuple[float, float] | None = None


class _Link(_Strict):
    a: str
    b: str
    capacity: float | Literal["none"]
    cost: float
    latency: float = 0.0


class _Topic(_Strict):
    id: str
    source: str
    rate: float
    subscribers: tuple[str, ...] = ()
    level: int = msgspec.field(default=0, name="class")
    max_latency: float | Literal["none"] = "none"


class _Subscription(_Strict):
    node: str
    filter: str


class _Document(_Strict):
    format: Literal["tieline-instance-1"]
    name: str
    nodes: tuple[_Node, ...]
    links: tuple[_Link, ...]
    topics: tuple[_Topic, ...]
    unmet_cost: float | None = None
    n_max: int | Literal["none"] = "none"
    subscriptions: tuple[_Subscription, ...] = ()


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
    try:
        document = msgspec.convert(raw, _Document)
    except msgspec.ValidationError as error:
        raise Flawed(_explained(str(error), raw)) from error
    instance = Instance(
        name=document.name,
        nodes=tuple(
            Node(id=node.id, roles=node.roles, max_connections=_limit(node.max_connections), at=node.at)
            for node in document.nodes
        ),
        links=tuple(
            Link(
                a=link.a,
                b=link.b,
                capacity=UNLIMITED if link.capacity == "none" else link.capacity,
                cost=link.cost,
                latency=link.latency,
            )
            for link in document.links
        ),
        topics=tuple(
            Topic(
                id=topic.id,
                source=topic.source,
                rate=topic.rate,
                subscribers=topic.subscribers,
                level=topic.level,
                max_latency=_limit(topic.max_latency),
            )
            for topic in document.topics
        ),
        unmet_cost=document.unmet_cost,
        n_max=_limit(document.n_max),
    )
    wishes = [Subscription(node=wish.node, filter=wish.filter) for wish in document.subscriptions]
    return checked(expanded(instance, wishes) if wishes else instance)


def write(instance: Instance, path: Path) -> None:
    """Store an instance in a file."""
    path.write_bytes(render(instance))


def render(instance: Instance) -> bytes:
    """The document of an instance; reading it gives an equal instance."""
    document = _Document(
        format=FORMAT,
        name=instance.name,
        nodes=tuple(
            _Node(id=node.id, roles=node.roles, max_connections=_or_none(node.max_connections), at=node.at)
            for node in instance.nodes
        ),
        links=tuple(
            _Link(
                a=link.a,
                b=link.b,
                capacity="none" if math.isinf(link.capacity) else link.capacity,
                cost=link.cost,
                latency=link.latency,
            )
            for link in instance.links
        ),
        topics=tuple(
            _Topic(
                id=topic.id,
                source=topic.source,
                rate=topic.rate,
                subscribers=topic.subscribers,
                level=topic.level,
                max_latency=_or_none(topic.max_latency),
            )
            for topic in instance.topics
        ),
        unmet_cost=instance.unmet_cost,
        n_max=_or_none(instance.n_max),
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _limit(value: T | Literal["none"]) -> T | None:
    return None if value == "none" else value


def _or_none(value: T | None) -> T | Literal["none"]:
    return "none" if value is None else value


_PLACE: Final = re.compile(r"^(?P<complaint>.*) - at `\$(?P<path>.*)`$", re.DOTALL)
_ELEMENT: Final = re.compile(r"^\.(nodes|links|topics|subscriptions)\[(\d+)\](.*)$")


def _explained(complaint: str, raw: dict[str, Any]) -> str:
    """A complaint of the decoder, which speaks of paths, as a sentence that names the element."""
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


def _nickname(kind: str, element: Any) -> str:
    if not isinstance(element, dict):
        return ""
    names: Sequence[str] = {"links": ("a", "b"), "subscriptions": ("node", "filter")}.get(kind, ("id",))
    return f" ({' - '.join(str(element[name]) for name in names if name in element)})"
