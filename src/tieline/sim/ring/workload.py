"""Who wants what, and what is published: the ring paper's workload, one in which brokers want little, and topics.

The paper has 20 nodes with 50 random subscriptions each in a space of the third order, and an event every 10 s; its
text contradicts itself (3,000 subscriptions of 20 nodes with 50 each are 1,000), and leaves the attributes and the
sizes of boxes open: two, with both ends of each side anywhere.  Then every node wants nearly every event.  *Ours* has
brokers that want a share of events that can be chosen, in a few boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tieline.match.box import Box
from tieline.match.merge.digest import Routing
from tieline.match.space import Space
from tieline.overlay.ring.events import Event, RingSubscription, Spaces

TYPE: Final = "reading"
#: The paper's order of the curve.
PAPER_ORDER: Final = 3
PAPER_SUBSCRIPTIONS: Final = 50
#: The share of all events that a broker wants, in ours.
SHARE: Final = 0.045


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What all brokers ask for."""

    subscriptions: Sequence[Sequence[RingSubscription]]
    spaces: Spaces

    @property
    def dimensions(self) -> int:
        """Attributes of an event."""
        return self.spaces[TYPE].space.dimensions

    def receivers(self, event: Event, without: int = -1) -> list[int]:
        """The brokers, by their numbers, that want an event; by looking at all."""
        return [
            number
            for number, subscriptions in enumerate(self.subscriptions)
            if number != without and any(one.may_want(event) for one in subscriptions)
        ]


def spaces(order: int, dimensions: int = 2) -> Spaces:
    """One event type of some attributes from 0 to 1."""
    return {TYPE: Routing(Space([(0.0, 1.0)] * dimensions, order), range(dimensions))}


def paper(brokers: int, random: Random, *, subscriptions: int = PAPER_SUBSCRIPTIONS) -> Workload:
    """The paper's: random boxes in two dimensions."""

    def drawn() -> RingSubscription:
        sides = [sorted((random.random(), random.random())) for _ in range(2)]
        return RingSubscription("#", TYPE, Box(tuple(side[0] for side in sides), tuple(side[1] for side in sides)))

    return Workload(
        subscriptions=[[drawn() for _ in range(subscriptions)] for _ in range(brokers)], spaces=spaces(PAPER_ORDER)
    )


def sparse(brokers: int, random: Random, *, share: float = SHARE, boxes: int = 5, order: int = 6) -> Workload:
    """Ours: each broker wants a share of all events, in a few square boxes that lie anywhere."""
    side = (1 - (1 - share) ** (1 / boxes)) ** 0.5

    def drawn() -> RingSubscription:
        corner = [random.random() * (1 - side) for _ in range(2)]
        return RingSubscription("#", TYPE, Box(tuple(corner), tuple(low + side for low in corner)))

    return Workload(subscriptions=[[drawn() for _ in range(boxes)] for _ in range(brokers)], spaces=spaces(order))


def constrained(brokers: int, random: Random, dimensions: int, *, subscriptions: int = 3) -> Workload:
    """A few boxes for each broker in a space of some dimensions: as many constraints."""

    def drawn() -> RingSubscription:
        sides = [sorted((random.random(), random.random())) for _ in range(dimensions)]
        return RingSubscription("#", TYPE, Box(tuple(side[0] for side in sides), tuple(side[1] for side in sides)))

    found = [[drawn() for _ in range(subscriptions)] for _ in range(brokers)]
    return Workload(subscriptions=found, spaces=spaces(PAPER_ORDER, dimensions))


def event(number: int, random: Random, payload: int = 100, dimensions: int = 2) -> Event:
    """A publication anywhere in the space; its number stands in front of its payload."""
    body = number.to_bytes(4, "little") + bytes(max(0, payload - 4))
    return Event("site/reading", body, TYPE, tuple(random.random() for _ in range(dimensions)))
