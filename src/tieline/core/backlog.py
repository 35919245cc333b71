"""What waits for a congested subscriber, in the hands of a policy.

Most of the time a queue is first in, first out, and this module has nothing to do.  When the head of the queue has
waited for more than half of the delay it would have on a free path, the whole queue is handed to the configured policy
(:mod:`tieline.sched`), and later arrivals join it, until it has run empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.core.message import Bundle, Burst, Item
from tieline.core.receiver import Entry, Grant
from tieline.sched.congestion import BEGINS, LEAST_S, Congestion, Path
from tieline.sched.policy import EVERY, Policy
from tieline.sched.queue import Queue
from tieline.sched.waiting import Waiting

#: No delay is shorter, so nothing is congested that has waited less.
_SOON_S: Final = LEAST_S * BEGINS


class Backlog:
    """The entries of one session while it is congested."""

    __slots__ = ("_is_ordered", "_order", "congestion", "policy")

    def __init__(self, policy: Policy[Entry], is_ordered: Callable[[bytes], bool]) -> None:
        self.policy = policy
        #: Whether the messages of a topic keep their order.
        self._is_ordered = is_ordered
        self.congestion = Congestion()
        self._order = 0

    def absorb(self, queue: Queue[Entry], now: float) -> None:
        """Take over what the queue has collected; its counters stay as they are, because all of it still waits."""
        for waiting in (queue.blocked, queue.entries):
            while waiting:
                item, grant = waiting.popleft()
                for part in item.bursts() if isinstance(item, Bundle) else (item,):
                    self.push(part, grant, now)

    def push(self, item: Item, grant: Grant, now: float) -> None:
        """Take over one entry that has come since; a policy may let it go before those that came earlier."""
        self._order += 1
        is_ordered = self._is_ordered(item.topic)
        self.policy.push(_waiting(item, grant, self._order, now, is_ordered=is_ordered), now)

    def put_back(self, waiting: Waiting[Entry], rest: Item, grant: Grant) -> None:
        """Return the part of an entry that could not be sent."""
        self.policy.put_back(_rest(waiting, rest, grant))

    def keep(self, victim: Waiting[Entry], rest: Item, grant: Grant) -> None:
        """Return the part of a victim that need not go."""
        self.policy.keep(_rest(victim, rest, grant))


def _rest(waiting: Waiting[Entry], rest: Item, grant: Grant) -> Waiting[Entry]:
    left = _waiting(rest, grant, waiting.order, waiting.since)
    left.flow = waiting.flow
    return left


def _waiting(item: Item, grant: Grant, order: int, now: float, *, is_ordered: bool = True) -> Waiting[Entry]:
    qos = min(item.qos, grant.qos)
    return Waiting(
        (item, grant),
        order=order,
        level=item.level,
        since=now if grant.set_retain else item.at,
        size=item.size,
        messages=item.messages,
        # what MQTT keeps in order; an operator may say that a topic need not be
        flow=(item.origin.client, item.topic, qos, 0 if is_ordered else order),
        heat=item.heat,
        depth=item.topic.count(b"/"),
        is_assured=qos > 0,
        taxon=item.taxon,
    )


def is_congested(path: Path, entry: Entry, now: float) -> bool:
    """WT / DT > 0.5 for the head of a queue, on this path to its receiver."""
    item, grant = entry
    waited_s = now - item.at
    # a retained message has waited for its subscriber, not in the queue
    return not grant.set_retain and waited_s > _SOON_S and waited_s > BEGINS * path.delay_s(item.size)


def split(burst: Burst, room: int, most: int = EVERY) -> tuple[Burst, Burst | None]:
    """As much of a burst as fits and may go, at least one packet, and the rest."""
    if (burst.size <= room and burst.messages <= most) or burst.messages == 1:
        return burst, None
    return burst.cut(max(1, min(most, room // burst.stride)))
