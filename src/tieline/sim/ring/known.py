"""What a publication takes where its origin knows all that want it: on the same graph, counted link by link.

``path`` sends one copy over each link of the shortest ways to all receivers, ``tree`` over those of one spanning tree,
``flood`` over every link.  Their frames are those of joined brokers: the destinations in a frame take three bytes each.
Only groups of 255 brokers go by these; beyond that it is what it would take, and what everybody would have to know.

The ring paper compares conditions with topics, and constraints that are sent one after the other, as its section IV-A
has it: the publication goes to everybody in the topic's group; those who match what they have been sent inform the
publisher, which sends the next constraint to them alone, and so on.  So each constraint costs an answer and a message
for everybody who has matched all earlier ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tieline.overlay.ring.events import Event, RingSubscription
from tieline.sim.ring.network import OVERHEAD, Links

#: A frame with one destination beside its payload, and each further destination.
_FRAME: Final = 14
_DESTINATION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One publication on all links together."""

    messages: int
    bytes: int
    #: Links and seconds to the last receiver.
    links: int
    last_s: float


def path(graph: Links, source: int, receivers: Collection[int], payload: int) -> Crossing:
    """Along the shortest ways."""
    return _along(graph.parents(source), graph, source, receivers, payload)


def tree(graph: Links, source: int, receivers: Collection[int], payload: int) -> Crossing:
    """Along one tree for everybody: the shortest ways of the first broker, walked from wherever a message begins."""
    up = graph.parents(0)
    neighbours: dict[int, list[int]] = {broker: [] for broker in graph.neighbours}
    for broker, above in up.items():
        neighbours[broker].append(above)
        neighbours[above].append(broker)
    parents: dict[int, int] = {}
    waiting = [source]
    for at in waiting:
        for beside in neighbours[at]:
            if beside != source and beside not in parents:
                parents[beside] = at
                waiting.append(beside)
    return _along(parents, graph, source, receivers, payload)


def flood(graph: Links, source: int, receivers: Collection[int], payload: int) -> Crossing:
    """Over every link, but back to where it came from."""
    copies = sum(map(len, graph.neighbours.values())) - (len(graph.neighbours) - 1)
    size = payload + _FRAME + OVERHEAD + _DESTINATION * (len(receivers) - 1)
    ways = [graph.between(source, each) for each in receivers]
    return Crossing(
        messages=copies,
        bytes=copies * size,
        links=max((way.links for way in ways), default=0),
        last_s=max((way.delay_s for way in ways), default=0.0),
    )


def _along(parents: Mapping[int, int], graph: Links, source: int, receivers: Collection[int], payload: int) -> Crossing:
    """One copy over each link that leads to some receivers, with these in its frame."""
    behind: dict[tuple[int, int], int] = {}
    links = 0
    last_s = 0.0
    for receiver in receivers:
        at, steps, delay = receiver, 0, 0.0
        while at != source:
            above = parents[at]
            behind[above, at] = behind.get((above, at), 0) + 1
            delay += graph.neighbours[above][at]
            at, steps = above, steps + 1
        links, last_s = max(links, steps), max(last_s, delay)
    size = payload + _FRAME + OVERHEAD
    return Crossing(
        messages=len(behind),
        bytes=sum(size + _DESTINATION * (count - 1) for count in behind.values()),
        links=links,
        last_s=last_s,
    )


def messages_by_topics(
    subscriptions: Sequence[Sequence[RingSubscription]], event: Event, constraints: int, publisher: int
) -> int:
    """How many messages a publication takes by topics with so many constraints; all who want anything are the group."""
    group = [asked for number, asked in enumerate(subscriptions) if asked and number != publisher]
    found = len(group)
    for constraint in range(constraints):
        matched = sum(_matches(asked, event, constraint) for asked in group)
        found += 2 * matched
    return found


def _matches(subscriptions: Sequence[RingSubscription], event: Event, constraints: int) -> bool:
    """Whether somebody who asks for all this matches the first constraints of an event."""
    point = event.point[:constraints]
    return any(
        one.box is None
        or all(low <= value <= high for low, value, high in zip(one.box.lo, point, one.box.hi, strict=False))
        for one in subscriptions
    )
