"""What a node knows: its ends of links, the topics it passes on, its own wishes, and the manners that all agree on."""

from __future__ import annotations

from dataclasses import dataclass, field

from tieline.plan.arrays import TOLERANCE
from tieline.plan.distributed.messages import Offer


@dataclass(slots=True)
class Port:
    """One end of a link."""

    cost: float
    capacity: float
    latency: float
    is_owner: bool
    price: float = 0.0
    #: Topics that use the link; both ends agree once messages have arrived.
    users: dict[int, float] = field(default_factory=dict)
    #: What the neighbour offers.
    offers: dict[int, Offer] = field(default_factory=dict)
    #: Topics whose offers the neighbour has not heard yet.
    news: set[int] = field(default_factory=set)

    @property
    def room(self) -> float:
        return self.capacity * (1 + TOLERANCE) - sum(self.users.values())


@dataclass(slots=True)
class Passing:
    """A topic at a node: whom it is passed on for, to whom, and from where it comes."""

    parent: int | None = None
    #: Subscriber -> neighbour towards it, or the node itself.
    served: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Wish:
    """A topic that the node itself wants."""

    is_joining: bool = False
    is_served: bool = False
    refusals: int = 0
    #: When to try again; infinite: not at all.
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What all brokers agree on."""

    #: Cost that a unit of missing capacity stands for at first.
    scale: float
    #: Virtual seconds; a message takes about one.
    patience: float = 12.0
    hard_after: float = 900.0
    refusals: int = 12
    n_max: int | None = None
