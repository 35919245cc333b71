"""QoS 2 messages between being taken over and being routed: a commit lies in between.

Theory of operation
-------------------
With a store, a QoS 2 message of a session that outlives its connection is *taken over* when it arrives, in one batch
with its packet id, and *routed* when that batch is permanent.  Nobody gets it before: if the broker dies, the publisher
sends it again, and a receiver that remembers nothing would get it twice.  Routing is a batch of its own, which ends
with the fact that it has happened.  If the broker dies before that is permanent, the next one routes the message; by
then everybody is away, so QoS 0 is dropped by name and only sessions that are kept get it.

A publisher is told that its message was taken while the queues of its receivers do not have it yet.  So each of them
*promises* room: it is no longer free for anything else, and is given back when the message is put there.  Who joins the
route in between has promised nothing, and drops the message by name if it has no room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from tieline.core.durable.journal import Journal, Owed
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.retained import Retained
from tieline.core.receiver import ActiveSubscription, Grant, Receiver
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.route import Route
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timers
from tieline.core.work import Work

#: Bytes of messages to be routed above which clients are not read.
BEHIND = 8_388_608


class TakenOver:
    """What was taken over and is to be routed."""

    __slots__ = (
        "_content",
        "_delivery",
        "_journal",
        "_ready",
        "_retained",
        "_routes",
        "_timers",
        "_work",
        "bytes",
        "on_caught_up",
        "promises",
    )

    def __init__(  # what routing a message takes
        self,
        routes: Routes,
        content: ContentMatch,
        retained: Retained,
        delivery: Delivery,
        journal: Journal,
        timers: Timers,
        work: Work,
        *,
        promises: bool,
    ) -> None:
        self._routes = routes
        self._content = content
        self._retained = retained
        self._delivery = delivery
        self._journal = journal
        self._timers = timers
        self._work = work
        #: Whether receivers must keep room: not where full queues drop their oldest message.
        self.promises = promises
        #: Permanent by now; in the order of arrival.
        self._ready: deque[Owed] = deque()
        #: The sum of their sizes.
        self.bytes = 0
        #: Called when there is no longer too much to be routed.
        self.on_caught_up: Callable[[], None]

    def __len__(self) -> int:
        return len(self._ready)

    def __iter__(self) -> Iterator[Owed]:
        return iter(self._ready)

    @property
    def is_behind(self) -> bool:
        """There is more to be routed than there should be: nothing more should be read from clients."""
        return self.bytes > BEHIND

    def take(
        self,
        message: Message,
        route: Route,
        *,
        is_conditional: bool,
        foreseen: list[ActiveSubscription] | None = None,
    ) -> bool:
        """Take a message over; whether anybody on its route, as it is now, wants it.

        Who gets it is found out when it is routed.  Where there are conditions, that may be somebody else: what one
        compares with is what was delivered before.  Where it takes long to ask all of them, the publisher has waited
        for the answer (``foreseen``), and those alone are asked again.
        """
        self._work.did(len(route.grants))
        is_wanted = _is_wanted(message, route)
        if is_wanted or message.retain or is_conditional:
            receivers = list(_promising(message, route)) if self.promises else []
            for receiver in receivers:
                receiver.promise(message.size)
            self._journal.taken_over(Owed(message, receivers, foreseen))
        return is_wanted

    def ready(self, owed: Iterable[Owed]) -> None:
        """These are permanent: they are routed in the next turn, not from inside a write."""
        if not self._ready:
            self._timers.soon(self.route)
        for each in owed:
            self._ready.append(each)
            self.bytes += _size(each)

    def route(self, now: float) -> None:
        """Route what is permanent; a part of it if it is much."""
        enough = self._work.enough()
        was_behind = self.is_behind
        try:
            while self._ready and self._work.done <= enough:
                owed = self._ready.popleft()
                self.bytes -= _size(owed)
                for receiver in owed.receivers:
                    receiver.redeem(owed.message.size)
                self.route_one(owed.message, now, owed.foreseen)
        finally:
            # also after a fault of our own: the others go on, and the next start tries that one again
            if self._ready:
                self._timers.soon(self.route)
        if was_behind:
            self.on_caught_up()

    def route_one(self, message: Message, now: float, foreseen: list[ActiveSubscription] | None = None) -> None:
        """Keep a message if it is retained, queue it for its receivers, and note that this has happened."""
        message.is_owed = self.promises
        if message.retain:
            self._retained.keep(message, now)
        route = self._routes.of(message.topic)
        if foreseen is not None and route.is_conditional:
            route = self._content.route_of(message, route, foreseen)
        self._delivery.deliver(message, route, now)
        message.is_owed = False
        self._journal.routed(message)


def _size(owed: Owed) -> int:
    """The bytes that something to be routed takes."""
    return owed.message.size + (0 if owed.foreseen is None else 8 * len(owed.foreseen))


def _applying(message: Message, route: Route) -> Iterator[Grant]:
    """How the receivers on a route get a message; not those whose own it is and who do not want those."""
    for grant in route.grants:
        own = grant.for_item(message)
        if own is not None:
            yield own


def _is_wanted(message: Message, route: Route) -> bool:
    """Whether anybody would get a message now."""
    if any(True for _ in _applying(message, route)):
        return True
    return any(group.peek(message, {}) is not None for group in route.groups)


def _promising(message: Message, route: Route) -> Iterator[Receiver]:
    """Those who must keep room until the message is there."""
    for grant in _applying(message, route):
        # a session that ends for want of room promises none
        if grant.qos and grant.receiver.has_room(message):
            yield grant.receiver
    for group in route.groups:
        # one of them will take it, whoever's turn it is then
        for grant in group.members.values():
            if grant.qos and grant.receiver.has_room(message):
                yield grant.receiver
