"""What brokers tell each other, and what each of them knows: links, topics to pass on, its own requests.

Nodes and topics are numbers that everybody knows as one knows names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

#: Relative: sums of rates are not exact, and the checker of plans allows as much.
TOLERANCE: Final = 1e-9


class TopicFacts(msgspec.Struct, frozen=True, array_like=True):
    """What whoever passes a topic on must know of it."""

    rate: float
    #: How much an unmet request counts.
    urgency: float
    #: None for no bound.
    max_latency: float | None


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """By which way a broker can have a topic, and what that weighs: cost, and the price of capacity to be taken."""

    topic: int
    weight: float
    delay: float
    facts: TopicFacts
    #: The nodes of the way, the source first; whoever finds itself in it must not use the offer.
    way: tuple[int, ...]


class Offers(msgspec.Struct, frozen=True, tag="offers", array_like=True):
    """All offers that have changed since the last time; an infinite weight withdraws one."""

    offers: tuple[Offer, ...]


class Price(msgspec.Struct, frozen=True, tag="price", array_like=True):
    """What a unit of the link's capacity costs now; said by the end that owns the link."""

    price: float


class Join(msgspec.Struct, frozen=True, tag="join", array_like=True):
    """Serve a subscriber through me; travels up to the source."""

    topic: int
    subscriber: int
    #: Who has passed it on, the subscriber first: a broker that finds itself in it would close a loop.
    via: tuple[int, ...]


class Accepted(msgspec.Struct, frozen=True, tag="accepted", array_like=True):
    """The source has the subscriber; travels down the way it came."""

    topic: int
    subscriber: int
    delay: float


class Refused(msgspec.Struct, frozen=True, tag="refused", array_like=True):
    """There is no way on from here; travels down, and undoes the join."""

    topic: int
    subscriber: int


class Leave(msgspec.Struct, frozen=True, tag="leave", array_like=True):
    """A subscriber is no longer served through me; travels up."""

    topic: int
    subscriber: int


class Evicted(msgspec.Struct, frozen=True, tag="evicted", array_like=True):
    """The link is overloaded and the topic has to go; travels down to the subscribers, who leave and look again."""

    topic: int
    subscriber: int


Message: TypeAlias = Offers | Price | Join | Accepted | Refused | Leave | Evicted


_encoder = msgspec.msgpack.Encoder()


def size(message: Message) -> int:
    """The bytes of a message on a link."""
    return len(_encoder.encode(message))


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
class Relay:
    """A topic at a node: whom it is passed on for, to whom, and from where it comes."""

    parent: int | None = None
    #: Subscriber -> neighbour towards it, or the node itself.
    served: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class OwnRequest:
    """A topic that the node itself wants."""

    is_joining: bool = False
    is_served: bool = False
    refusals: int = 0
    #: When to try again; infinite: not at all.
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What all brokers agree on."""

    #: Cost that a unit of missing capacity stands for at first.
    scale: float
    #: Virtual seconds; a message takes about one.
    patience: float = 12.0
    hard_after: float = 900.0
    refusals: int = 12
    n_max: int | None = None
