"""What stands where a session is not: on the routes of its old home, and before its queue at the new one."""

from __future__ import annotations

from collections.abc import Callable

from tieline.core.account import Drop
from tieline.core.client import Changed, Session
from tieline.core.message import Item, Message, Queued
from tieline.core.outbound.deliver import Delivery
from tieline.core.receiver import ActiveSubscription, Grant
from tieline.overlay.receivers.destination import Unqueued

#: Called with an assured message and how it is got.
Take = Callable[[Message, Grant, float], None]


class StandIn(Unqueued):
    """The receiver of what is routed to a session that has left; a :class:`~tieline.core.receiver.Receiver`."""

    is_broker = False

    def __init__(self, client_id: str, user: str | None, take: Take, is_full: Callable[[], bool]) -> None:
        self._client_id = client_id
        self._user = user
        self._take = take
        self._is_full = is_full
        self.is_awaited = False
        self.is_over = False
        #: As they are written, to be cancelled.
        self.subscriptions: list[tuple[str, ActiveSubscription]] = []

    def __repr__(self) -> str:
        return f"<StandIn for {self._client_id}>"

    @property
    def client_id(self) -> str:
        """That of the session, which gets none of its own messages if it does not want them."""
        return self._client_id

    @property
    def user(self) -> str | None:
        """That of the session."""
        return self._user

    @property
    def is_present(self) -> bool:
        """It takes things, but nobody is here."""
        return False

    def offer(self, item: Queued, grant: Grant, now: float) -> None:
        """Take what has to arrive; its client is away for all else."""
        if item.qos and grant.qos and isinstance(item, Message) and not self.is_over:
            self._take(item, grant, now)

    def has_room(self, item: Item, copies: int = 0) -> bool:
        """Whether more may be owed to the new home."""
        return not self._is_full()

    def lacks_room(self, item: Item) -> bool:
        """Whether too much is owed to the new home already."""
        return not item.origin.broker and self._is_full()

    def turn_away(self, item: Item, why: Drop, now: float) -> None:
        """The session is told elsewhere what it does not get."""


class Gate:
    """What is queued for a session that arrives; a :class:`~tieline.core.client.Dispatcher`."""

    def __init__(self, delivery: Delivery, take: Take) -> None:
        self._delivery = delivery
        self._take = take
        self.changed: Changed = delivery.changed
        #: Nothing takes the short way into the queue.
        self.default_level = -1

    def queue_with_care(self, session: Session, item: Queued, grant: Grant, now: float) -> None:
        """Let an assured message pass, wait, or be ignored because it comes another way; all else passes."""
        if item.qos and grant.qos and isinstance(item, Message) and not session.is_over:
            self._take(item, grant, now)
        else:
            self._delivery.queue_with_care(session, item, grant, now)

    def settle(self, session: Session) -> None:
        """As for all sessions."""
        self._delivery.settle(session)

    def make_room(self, session: Session, now: float) -> None:
        """As for all sessions."""
        self._delivery.make_room(session, now)

    def turn_away(self, session: Session, item: Item, why: Drop, now: float) -> None:
        """As for all sessions."""
        self._delivery.turn_away(session, item, why, now)

    def refuses(self, session: Session, item: Item) -> bool:
        """As for all sessions."""
        return self._delivery.refuses(session, item)

    def is_half_empty(self, session: Session) -> bool:
        """As for all sessions."""
        return self._delivery.is_half_empty(session)
