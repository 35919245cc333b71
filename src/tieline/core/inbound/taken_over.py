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
from typing import TYPE_CHECKING, NamedTuple

from tieline.core.inbound.publish import keep_retained
from tieline.core.outbound.deliver import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tieline.core.broker import Broker
    from tieline.core.message import Message
    from tieline.core.routing.routes import Route
    from tieline.core.session import Entry, Grant
    from tieline.sched.queue import Queue

#: What routing may cost before clients get their turn, as for the packets of one connection.
WORK_PER_TURN = 20_000
#: Bytes of messages to be routed above which clients are not read.
BEHIND = 8_388_608


class Owed(NamedTuple):
    """A message that was taken over, and the queues that promised room for it."""

    message: Message
    queues: Sequence[Queue[Entry]]


class Unrouted:
    """What was taken over and is to be routed."""

    __slots__ = ("_broker", "_ready", "bytes", "in_hand")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: Permanent by now; in the order of arrival.
        self._ready: deque[Owed] = deque()
        #: The sum of their sizes.
        self.bytes = 0
        #: The message that is being routed, where it was acknowledged on condition that there is room for it.
        self.in_hand: Message | None = None

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def is_behind(self) -> bool:
        """There is more to be routed than there should be: nothing more should be read from clients."""
        return self.bytes > BEHIND

    def take(self, message: Message, route: Route, *, is_sifted: bool) -> bool:
        """Take a message over; whether anybody on its route, as it is now, wants it.

        Who gets it is found out when it is routed.  Where conditions are asked (``is_sifted``), that may be somebody
        else: what one compares with is what was delivered before.
        """
        broker = self._broker
        broker.routes.work += len(route.grants)
        is_wanted = _is_wanted(message, route)
        if is_wanted or message.retain or is_sifted:
            queues: list[Queue[Entry]] = []
            if broker.refuses_when_full:
                for queue in _promising(message, route):
                    queue.promise(message.size)
                    queues.append(queue)
            broker.journal.unrouted(Owed(message, queues))
        return is_wanted

    def ready(self, owed: Iterable[Owed]) -> None:
        """These are permanent: they are routed when the timers are looked at, not from inside a write."""
        if not self._ready:
            self._broker.timers.at(0.0, self.route)
        for each in owed:
            self._ready.append(each)
            self.bytes += each.message.size

    def route(self, now: float) -> None:
        """Route what is permanent; a part of it if it is much."""
        broker = self._broker
        enough = broker.routes.work + WORK_PER_TURN
        was_behind = self.is_behind
        try:
            while self._ready and broker.routes.work <= enough:
                message, queues = self._ready.popleft()
                self.bytes -= message.size
                for queue in queues:
                    queue.redeem(message.size)
                self.route_one(message, now)
        finally:
            # also after a fault of our own: the others go on, and the next start tries that one again
            if self._ready:
                broker.timers.at(now, self.route)
        if was_behind:
            broker.catch_up()

    def route_one(self, message: Message, now: float) -> None:
        """Keep a message if it is retained, queue it for its receivers, and note that this has happened."""
        broker = self._broker
        topic = message.topic
        route = broker.routes.known.get(topic) or broker.routes.find(topic.decode(), topic)
        self.in_hand = message if broker.refuses_when_full else None
        try:
            if message.retain:
                keep_retained(broker, message, now)
            deliver(broker, message, route, now)
        finally:
            self.in_hand = None
        broker.journal.routed(message)


def _applying(message: Message, route: Route) -> Iterator[Grant]:
    """How the sessions on a route get a message; not those whose own it is and who do not want those."""
    for grant in route.grants:
        if not (grant.no_local and grant.session.client_id == message.publisher):
            yield grant
        elif grant.others is not None:
            yield grant.others


def _is_wanted(message: Message, route: Route) -> bool:
    """Whether anybody would get a message now."""
    if any(True for _ in _applying(message, route)):
        return True
    return any(group.peek(message, {}) is not None for group in route.groups)


def _promising(message: Message, route: Route) -> Iterator[Queue[Entry]]:
    """The queues that must not be filled before the message is there."""
    for grant in _applying(message, route):
        if grant.qos:
            yield grant.session.queue
    for group in route.groups:
        # one of them will take it, whoever's turn it is then
        for grant in group.members.values():
            if grant.qos and grant.session.queue.has_room(message.size):
                yield grant.session.queue
