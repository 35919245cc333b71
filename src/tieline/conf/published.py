"""What may be published at a broker, as its settings say it: with filters, by event types, or anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieline.conf.describe import Finding
from tieline.conf.filters import flaw
from tieline.conf.schema import Settings

#: Filters that are declared at most: other brokers keep them, and look through them.
MOST_FILTERS: Final = 256


def published(settings: Settings) -> frozenset[str] | None:
    """The filters of what may be published; None if that is anything."""
    said = settings.overlay.publishes
    if said == "anything":
        return None
    if said == "events":
        return frozenset(event.topic for event in settings.event.values())
    return frozenset(said)


def broken(settings: Settings) -> Iterator[Finding]:
    """Each broken rule: the path of the key to blame and a sentence."""
    said = settings.overlay.publishes
    path = ("overlay", "publishes")
    if said == "events" and not settings.event:
        yield path, "overlay.publishes is events, and no event type is declared: nothing could be published."
    filters = published(settings) or frozenset()
    if len(filters) > MOST_FILTERS:
        yield path, f"overlay.publishes comes to {len(filters)} filters; {MOST_FILTERS} can be told to other brokers."
    if isinstance(said, str):
        return
    for filter_ in said:
        text = flaw(filter_)
        if text is not None:
            yield path, text
        elif filter_.startswith("$"):
            yield path, f'"{filter_}": topics that begin with $ are not declared, and are as they were.'
    if settings.overlay.region is not None:
        yield path, "a gateway publishes what the brokers on its other side do: leave overlay.publishes to these."
