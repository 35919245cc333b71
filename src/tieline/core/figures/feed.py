"""A topic on which the broker speaks of itself while somebody listens, and of which only the newest word counts.

Nothing is retained, nothing is kept for those who are away, and a subscriber that has not taken the last word yet is
passed over: at most one waits for each, however slow it is, and so nothing has to be dropped for its sake.  What one
word takes for all subscribers together is bounded too: if they are very many, they hear it in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from tieline.core.client import Session
from tieline.core.message import THE_BROKER, Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.receiver import Grant
from tieline.core.routing.routes import Routes

#: Of everything that waits, this may wait longest.
LEVEL: Final = 0
#: Bytes that one word may take for all its subscribers together; more of them hear it in turns.
MOST_BYTES: Final = 4_194_304
#: Entries of a queue that are searched for the last word.
_LOOKED_AT: Final = 1_024


class Feed:
    """One such topic: its subscribers are told the newest word, those who are slow are passed over."""

    __slots__ = ("_delivery", "_flow", "_name", "_next", "_routes", "_topic", "passed_over", "spoken")

    def __init__(self, topic: str, routes: Routes, delivery: Delivery) -> None:
        self._name = topic
        self._topic = topic.encode()
        self._routes = routes
        self._delivery = delivery
        self._flow = (THE_BROKER.client, self._topic, 0, 0)
        #: Where the next turn begins, if there are more subscribers than can be told at once.
        self._next = 0
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
            heard = sum([self._offer(message, grant, now) for grant in self._turn(route.grants, message.size)])
        return heard

    def _turn(self, grants: Sequence[Grant], size: int) -> Sequence[Grant]:
        """Those who hear it this time: all of them, or as many as what may be said at once is enough for, in turns."""
        most = max(1, MOST_BYTES // size)
        if len(grants) <= most:
            return grants
        begin = self._next % len(grants)
        self._next = begin + most
        self.passed_over += len(grants) - most
        return [*grants[begin : begin + most], *grants[: max(0, begin + most - len(grants))]]

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
        return len(entries) > _LOOKED_AT or any(
            isinstance(item, Message) and item.topic == self._topic for item, _ in islice(entries, _LOOKED_AT)
        )
