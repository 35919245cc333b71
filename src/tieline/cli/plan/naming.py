"""How links, topics and requests are named on the command line; what exists decides what is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from tieline.plan.instance import Instance, Link, Topic

T = TypeVar("T")


def link_named(instance: Instance, text: str) -> Link | None:
    """The link ``A-B``, in either order; None if there is none.  Names may hold hyphens of their own."""
    plain = text.replace(" ", "")
    found = [
        link
        for link in instance.links
        if plain in (f"{link.a}-{link.b}".replace(" ", ""), f"{link.b}-{link.a}".replace(" ", ""))
    ]
    return _only(found, text, [f"{link.a} - {link.b}" for link in found]) if found else None


def topic_named(instance: Instance, text: str) -> Topic:
    """The topic ``ID`` or, where several sources send under one name, ``ID@SOURCE``."""
    found = [topic for topic in instance.topics if text in (topic.id, f"{topic.id}@{topic.source}")]
    if not found:
        raise Trouble(f"there is no topic {text}.", code=MISUSED)
    return _only(found, text, [f"{topic.id}@{topic.source}" for topic in found])


def request_named(instance: Instance, text: str) -> tuple[Topic, str]:
    """The request ``TOPIC:SUBSCRIBER``; the topic as above."""
    found = [
        (topic, subscriber)
        for topic, subscriber in instance.requests()
        if text in (f"{topic.id}:{subscriber}", f"{topic.id}@{topic.source}:{subscriber}")
    ]
    if not found:
        raise Trouble(f"there is no request {text}; a request is TOPIC:SUBSCRIBER.", code=MISUSED)
    return _only(found, text, [f"{topic.id}@{topic.source}:{subscriber}" for topic, subscriber in found])


def _only(found: Sequence[T], text: str, names: Sequence[str]) -> T:
    if len(found) > 1:
        raise Trouble(f"{text} may be {' or '.join(names)}.", code=MISUSED)
    return found[0]
