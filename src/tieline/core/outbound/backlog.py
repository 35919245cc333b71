"""What waits for a congested subscriber, in the hands of a policy.

Most of the time a queue is first in, first out, and this module has nothing to do.  When the head of the queue has
waited for more than half of the delay it would have on a free path, the whole queue is handed to the configured policy
(:mod:`tieline.sched`), and later arrivals join it, until it has run empty.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tieline.core.message import Burst
from tieline.sched import feedback, orders  # noqa: F401 - they register themselves
from tieline.sched.congestion import BEGINS, LEAST_S, Congestion
from tieline.sched.levels import URGENT
from tieline.sched.policy import Policy, Window, make
from tieline.sched.waiting import Waiting

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.message import Item
    from tieline.core.routing.classes import Classes
    from tieline.core.session import Entry, Grant, Session

#: No delay is shorter, so nothing is congested that has waited less.
_SOON_S = LEAST_S * BEGINS
#: One place in the in-flight window of eight is kept for urgent messages.
_RESERVE = 8


class Backlog:
    """The entries of one session while it is congested."""

    __slots__ = ("_classes", "_order", "congestion", "policy")

    def __init__(self, policy: Policy[Entry], classes: Classes) -> None:
        self.policy = policy
        self._classes = classes
        self.congestion = Congestion()
        self._order = 0

    def absorb(self, session: Session, now: float) -> None:
        """Take over what the queue has collected."""
        queue = session.queue
        for waiting in (queue.blocked, queue.entries):
            while waiting:
                self.push(waiting.popleft(), now)

    def push(self, entry: Entry, now: float) -> None:
        """Take one entry over."""
        self._order += 1
        is_ordered = self._classes.is_ordered(entry[0].topic)
        self.policy.push(_waiting(entry, self._order, now, is_ordered=is_ordered), now)

    def put_back(self, waiting: Waiting[Entry], rest: Item, grant: Grant) -> None:
        """Return the part of an entry that could not be sent."""
        self.policy.put_back(_rest(waiting, rest, grant))

    def keep(self, victim: Waiting[Entry], rest: Item, grant: Grant) -> None:
        """Return the part of a victim that need not go."""
        self.policy.keep(_rest(victim, rest, grant))


def _rest(waiting: Waiting[Entry], rest: Item, grant: Grant) -> Waiting[Entry]:
    left = _waiting((rest, grant), waiting.order, waiting.since)
    left.flow = waiting.flow
    return left


def _waiting(entry: Entry, order: int, now: float, *, is_ordered: bool = True) -> Waiting[Entry]:
    item, grant = entry
    qos = min(item.qos, grant.qos)
    return Waiting(
        entry,
        order=order,
        level=item.level,
        since=now if grant.set_retain else item.at,
        size=item.size,
        messages=item.messages,
        # what MQTT keeps in order; an operator may say that a topic need not be
        flow=(item.publisher, item.topic, qos, 0 if is_ordered else order),
        heat=item.heat,
        depth=item.topic.count(b"/"),
        is_assured=qos > 0,
        taxon=item.taxon,
    )


def is_congested(conn: Connection, entry: Entry, now: float) -> bool:
    """WT / DT > 0.5 for the head of a queue."""
    item, grant = entry
    waited_s = now - item.at
    # a retained message has waited for its subscriber, not in the queue
    return not grant.set_retain and waited_s > _SOON_S and waited_s > BEGINS * conn.path.delay_s(item.size)


def engage(broker: Broker, session: Session) -> Backlog:
    """Hand a session's queue to the policy."""
    if session.backlog is None:
        rules = broker.classes.rules
        if session.patience is not None:
            rules = replace(rules, patience=session.patience)
        session.backlog = Backlog(make(broker.settings.priority.policy, rules), broker.classes)
        broker.account.congestions += 1
    return session.backlog


def disengage(session: Session) -> None:
    """Nothing waits any more: first in, first out again."""
    session.backlog = None


def reserve_of(broker: Broker, conn: Connection) -> int:
    """Places in the in-flight window that only urgent messages may take, so that bulk never takes the last."""
    return max(1, conn.window // _RESERVE) if broker.has_levels and conn.window > 1 else 0


def window_of(broker: Broker, conn: Connection, in_flight: int) -> Window:
    """What the in-flight window still takes."""
    if not conn.quota or in_flight >= 65_535:
        return Window.CLOSED
    return Window.OPEN if conn.quota > reserve_of(broker, conn) else Window.URGENT_ONLY


def split(burst: Burst, room: int) -> tuple[Burst, Burst | None]:
    """As much of a burst as fits, at least one packet, and the rest."""
    if burst.size <= room or burst.messages == 1:
        return burst, None
    return burst.cut(max(1, room // burst.stride))


def is_kept_for_urgent(broker: Broker, conn: Connection, item: Item) -> bool:
    """Whether only an urgent message may take what is left of the window."""
    return broker.has_levels and item.level < URGENT and conn.quota <= reserve_of(broker, conn)
