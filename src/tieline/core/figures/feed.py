"""A topic on which the broker speaks of itself while somebody listens, and of which only the newest word counts.

Nothing is retained, nothing is kept for those who are away, and a subscriber that has not taken the last word yet is
passed over: at most one waits for each, however slow it is, and so nothing has to be dropped for its sake.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from tieline.core.client import Session
from tieline.core.message import THE_BROKER, Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.receiver import Grant
from tieline.core.routing.routes import Routes

#: Of everything that waits, this may wait longest.
LEVEL: Final = 0
#: Entries of a queue that are searched for the last word.
_LOOKED_AT: Final = 1_024


class Feed:
    """One such topic."""

    __slots__ = ("_delivery", "_flow", "_last", "_name", "_routes", "_topic", "passed_over", "spoken")

    def __init__(self, topic: str, routes: Routes, delivery: Delivery) -> None:
        self._name = topic
        self._topic = topic.encode()
        self._routes = routes
        self._delivery = delivery
        self._flow = (THE_BROKER.client, self._topic, 0, 0)
        self._last: Message | None = None
        #: Words spoken since the start, and subscribers that were passed over because they still had the last one.
        self.spoken = 0
        self.passed_over = 0

    @property
    def is_heard(self) -> bool:
        """Whether anybody who is connected subscribes to it."""
        route = self._routes.find(self._name, self._topic)
        return any(grant.receiver.is_present for grant in route.grants) or bool(route.groups or route.conditions)

    def speak(self, payload: bytes, now: float) -> int:
        """Say something to everybody who listens; how many that are."""
        route = self._routes.find(self._name, self._topic)
        message = Message(self._topic, payload, level=LEVEL, taxon=LEVEL, at=now)
        self.spoken += 1
        if not route.is_simple:
            heard = self._delivery.deliver(message, route, now)
        else:
            heard = 0
            for grant in route.grants:
                heard += self._offer(message, grant, now)
        self._last = message
        return heard

    def _offer(self, message: Message, grant: Grant, now: float) -> bool:
        receiver = grant.receiver
        if not isinstance(receiver, Session) or receiver.connection is None:
            return False
        if receiver.queue.messages and self._has_last(receiver):
            self.passed_over += 1
            return False
        receiver.offer(message, grant, now)
        return True

    def _has_last(self, session: Session) -> bool:
        if session.backlog is not None:
            return session.backlog.policy.has_flow(self._flow)
        entries = session.queue.entries
        return len(entries) > _LOOKED_AT or any(item is self._last for item, _ in islice(entries, _LOOKED_AT))
