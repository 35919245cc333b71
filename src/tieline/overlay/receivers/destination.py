"""Another broker as a receiver: what its clients want is on our routes, and what is offered to it goes to the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tieline.core.account import Drop
from tieline.core.message import Item, Queued
from tieline.core.receiver import Grant, Outlet, Share


class Collector(Protocol):
    """Who gathers the destinations of each item."""

    def collect(self, item: Queued, number: int, now: float, share: Share | None = None) -> None:
        """One more broker wants an item, or was picked to give it to one member of a group."""

    def is_reachable(self, number: int) -> bool:
        """Whether a way leads to a broker now."""

    def turn_away(self, name: str, item: Item, why: Drop, now: float) -> None:
        """Name what a broker should have got and does not get."""


class Unqueued:
    """What receivers without a queue here have in common: they go by what is owed to another broker."""

    @property
    def is_half_empty(self) -> bool:
        """Publishers that wait are let go one at a time, and wait again where too much is owed."""
        return True

    def promise(self, size: int) -> None:
        """Nothing need be kept free: what was promised may be owed beyond the bound."""

    def redeem(self, size: int) -> None:
        """Nothing was kept free, so nothing is given back."""

    def ready_outlet(self, version: int, size: int, grant: Grant) -> Outlet | None:
        """Never past the node, which numbers what it carries."""
        return None


class Destination(Unqueued):
    """One other broker; a :class:`~tieline.core.receiver.Receiver`."""

    is_broker = True

    def __init__(self, number: int, name: str, collector: Collector, *, is_outside: bool = False) -> None:
        self.number = number
        self.name = name
        self._collector = collector
        #: It is the gateway of another region, and this is one: it gets what comes from this region.
        self._is_outside = is_outside
        self.is_awaited = False
        #: So much is owed to it that nothing more should be accepted for it; who collects says so.
        self.is_full = False
        self.is_over = False
        #: Which topics it may be sent where that depends on each: groups are picked for whole filters; None for all.
        self.may_read: Callable[[bytes], bool] | None = None

    def __repr__(self) -> str:
        return f"<Destination {self.name}>"

    @property
    def client_id(self) -> str:
        """A name that no client has."""
        return f"broker {self.name}"

    @property
    def user(self) -> str | None:
        """Nobody: the other broker asks who of its clients may read what."""
        return None

    @property
    def is_present(self) -> bool:
        """Whether a way leads there now; it takes everything, and keeps it while the other broker is away."""
        return self._collector.is_reachable(self.number)

    def offer(self, item: Queued, grant: Grant, now: float) -> None:
        """Have an item carried there; what came from another broker is carried there by that one.

        For a group, it comes from whoever was picked before and has nobody to give it to.
        """
        if grant.share is not None or self._is_owed(item):
            self._collector.collect(item, self.number, now, grant.share)

    def _is_owed(self, item: Queued) -> bool:
        """Whether it is for this broker to carry an item there, and not for the one that has accepted it."""
        origin = item.origin
        if self._is_outside:
            return not origin.is_entering and not origin.region
        return not origin.broker or origin.is_entering

    def has_room(self, item: Item, copies: int = 0) -> bool:
        """Whether more may be owed to it, and it may be sent this."""
        if self.may_read is not None and not self.may_read(item.topic):
            return False
        return not self.lacks_room(item)

    def lacks_room(self, item: Item) -> bool:
        """Whether too much is owed to it already."""
        return self.is_full and self._is_owed(item)

    def turn_away(self, item: Item, why: Drop, now: float) -> None:
        """Name a message that it does not get."""
        self._collector.turn_away(self.client_id, item, why, now)
