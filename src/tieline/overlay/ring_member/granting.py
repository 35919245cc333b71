"""What the clients of a broker ask for, said to the ring; a SUBACK waits until everybody who has to know it does.

Subscriptions of one turn are said together.  Several of one kind are one to the ring, which hears of the first and the
last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tieline.overlay.ring.events import RingSubscription
from tieline.overlay.ring.node import RingNode
from tieline.overlay.ring_member.declared import Declared

#: Subscriptions that are said at once.
_MOST: Final = 500


class Granting:
    """The subscriptions of one broker, and who waits for them to be known."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        #: The ring, once it can be told.
        self.node: RingNode | None = None
        #: How many subscriptions come to a subscription.
        self._counts: dict[RingSubscription, int] = {}
        #: What the ring has not been told yet.
        self._fresh: dict[RingSubscription, None] = {}
        #: By subscription, the number of the saying that is not known everywhere yet.
        self._unknown: dict[RingSubscription, int] = {}
        self._sayings = 0
        #: Who waits, and for which sayings.
        self._waiting: list[tuple[set[int], Callable[[], None]]] = []
        #: Subscriptions that were acknowledged although somebody may not have known of them.
        self.late = 0

    def began(self, filter_: str, condition: str | None) -> int:
        """A subscription begins; what that was as work, in subscriptions."""
        subscriptions = self._declared.subscriptions(filter_, condition)
        for subscription in subscriptions:
            count = self._counts.get(subscription, 0)
            self._counts[subscription] = count + 1
            if not count:
                self._fresh[subscription] = None
        return len(subscriptions)

    def ended(self, filter_: str, condition: str | None, now: float) -> int:
        """A subscription is over; what that was as work, in subscriptions."""
        subscriptions = self._declared.subscriptions(filter_, condition)
        for subscription in subscriptions:
            count = self._counts.pop(subscription, 0)
            if count > 1:
                self._counts[subscription] = count - 1
            elif subscription in self._fresh:
                del self._fresh[subscription]
            elif count and self.node is not None:
                self.node.unsubscribe(subscription, now)
        return len(subscriptions)

    @property
    def is_due(self) -> bool:
        """Whether something has to be said."""
        return bool(self._fresh) and self.node is not None

    def say(self, now: float) -> None:
        """Let the ring know what is new."""
        node = self.node
        while self._fresh and node is not None:
            said = [subscription for subscription, _ in zip(self._fresh, range(_MOST), strict=False)]
            self._sayings += 1
            number = self._sayings
            for subscription in said:
                del self._fresh[subscription]
                self._unknown[subscription] = number
            node.subscribe_all(said, partial(self._known, number, said), now)

    def _known(self, number: int, subscriptions: list[RingSubscription], _now: float, is_echoed: bool) -> None:
        self.late += not is_echoed
        for subscription in subscriptions:
            if self._unknown.get(subscription) == number:
                del self._unknown[subscription]
        before, self._waiting = self._waiting, []
        for numbers, then in before:
            numbers.discard(number)
            if numbers:
                self._waiting.append((numbers, then))
            else:
                then()

    def wait(self, then: Callable[[], None], now: float) -> bool:
        """Whether what has begun is not known everywhere yet; if so, ``then`` is called once it is, or is given up.

        It waits for whatever was said by now, also by others: a subscription may have paused between its parts.
        """
        self.say(now)
        if not self._unknown:
            return False
        self._waiting.append(({*self._unknown.values()}, then))
        return True

    @property
    def subscriptions(self) -> int:
        """Different things that are asked for."""
        return len(self._counts)
