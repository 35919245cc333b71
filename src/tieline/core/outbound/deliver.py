"""One message to its receivers' queues; nothing is encoded here."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from tieline.conf.schema import Absent
from tieline.core.account import Account, Drop
from tieline.core.client import Changed, Session
from tieline.core.durable.journal import Journal
from tieline.core.message import Bundle, Burst, Item, Message, Queued
from tieline.core.outbound.late import Late
from tieline.core.outbound.order import Order
from tieline.core.outbound.spills import Spills
from tieline.core.receiver import Entry, Grant, Receiver
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.core.work import Work
from tieline.sched.queue import Pool

#: What each broker with members counts towards the work of a turn, where one of them is picked.
WORK_PER_BROKER: Final = 4


class Beyond(Enum):
    """What becomes of a QoS 1 or 2 message for which a session has no room in memory."""

    SPILL = "spill"  # it waits in the store alone
    END = "end"  # its client is away, and the session ends
    TURN_AWAY = "turn_away"  # it is dropped by name: nobody could be refused, and the session stays


#: What a group counts towards the work of a turn that chooses a member, a receiver whose condition was met, a message
#: that is dropped for want of room, and one that is queued with care, in hundreds of nanoseconds.
WORK_PER_GROUP: Final = 25
WORK_PER_NARROWED: Final = 40
WORK_PER_VICTIM: Final = 15
WORK_PER_CARE: Final = 25


class Delivery:
    """Puts messages into queues, and names what does not fit."""

    __slots__ = (
        "_account",
        "_content",
        "_journal",
        "_keeps_oldest",
        "_order",
        "_priorities",
        "_spills",
        "_work",
        "absent",
        "changed",
        "default_level",
        "late",
        "on_overflow",
        "pool",
    )

    def __init__(  # what a delivery touches
        self,
        pool: Pool,
        content: ContentMatch,
        priorities: Priorities,
        order: Order,
        journal: Journal,
        account: Account,
        work: Work,
        spills: Spills,
        *,
        keeps_oldest: bool,
        absent: Absent,
    ) -> None:
        #: What happens when a queue of an absent client is full, where neither user nor class says it.
        self.absent: Absent = absent
        #: Told of a session that is to end for want of room.
        self.on_overflow: Callable[[Session], None]
        #: What waits in all queues together.
        self.pool = pool
        #: A message for very many who are away.
        self.late = Late(work)
        self._content = content
        self._priorities = priorities
        self._order = order
        self._journal = journal
        self._account = account
        self._work = work
        self._spills = spills
        #: A full queue keeps its oldest QoS 1 and 2 messages, not its newest.
        self._keeps_oldest = keeps_oldest
        #: Connections on which something changed.
        self.changed = Changed()
        self.default_level = priorities.default_level

    # -- to everybody on a route

    def deliver_plainly(self, item: Queued, route: Route, now: float) -> int:
        """Queue messages for everyone on a simple route, in one go; the number of receivers."""
        for grant in route.grants:
            grant.receiver.offer(item, grant, now)
        route.count_away()
        self._work.did(len(route.grants))
        return len(route.grants)

    def deliver(self, item: Item, route: Route, now: float) -> int:
        """Queue a message for everyone on its route; the number of receivers ([MQTT-4.5.0-1], [MQTT311-4.5.0-1])."""
        if route.is_simple:
            return self.deliver_plainly(item, route, now)
        grants = route.grants
        receivers = 0
        if route.is_conditional:
            for part, narrowed in self._content.parts(item, route):
                self._work.did(WORK_PER_NARROWED * len(narrowed.grants))
                receivers += self.deliver(part, narrowed, now)
            return receivers
        if route.is_spanning and isinstance(item, Burst) and item.messages > 1:
            # cut for all groups alike: a broker gets each part once, with the names of all groups that it is for
            for part in item.deal(item.messages):
                receivers += self.deliver(part, route, now)
            return receivers
        for grant in grants:
            own = grant.for_item(item)
            if own is not None:
                own.receiver.offer(item, own, now)
                receivers += 1
        for group in route.groups:
            # [MQTT-4.8.2-3]; a burst is dealt out, or the turns would be as long as the bursts
            self._work.did(WORK_PER_GROUP)
            for part in item.deal(len(group.members)) if isinstance(item, Burst) else (item,):
                chosen = group.pick(part)
                if chosen is None:
                    drop = Drop.NO_MEMBER
                    self._account.drop(
                        now, drop, str(group), part.topic, part.messages, level=part.level, since=part.at
                    )
                else:
                    chosen.receiver.offer(part, chosen, now)
                    receivers += 1
            self._work.did(len(group.members) + WORK_PER_BROKER * len(group.brokers or ()))
        self._work.did(len(grants))
        return receivers

    @staticmethod
    def find_full(item: Item, route: Route) -> Receiver | None:
        """A receiver on the route that would have to drop this QoS 1 or 2 message; None when all have room."""
        for grant in route.grants:
            if grant.qos and grant.for_item(item) is not None and grant.receiver.lacks_room(item):
                return grant.receiver
        for group in route.groups:
            grants = group.grants
            assured = [grant for grant in grants if grant.qos]
            if assured and not any(grant.receiver.has_room(item) for grant in grants):
                lacking = [grant.receiver for grant in assured if grant.receiver.lacks_room(item)]
                if lacking:
                    return lacking[0]
        return None

    # -- to one session

    def queue_with_care(self, session: Session, item: Queued, grant: Grant, now: float) -> None:
        """Queue a message for one session; a full queue names its victim."""
        self._work.did(WORK_PER_CARE)
        if self.late.rest:
            self.late.settle(session)
        if session.is_over:
            return  # its subscriptions are being cancelled
        if isinstance(item, Bundle):
            for burst in item.bursts():
                self.queue_with_care(session, burst, grant, now)
            return
        conn = session.connection
        beyond = self.beyond(session, item, grant)
        is_overflowing = beyond is Beyond.END
        if is_overflowing and not session.is_doomed:
            session.is_doomed = True
            self.on_overflow(session)
        why = self.obstacle(session, item, grant) if beyond is None else None
        if beyond is Beyond.TURN_AWAY:
            why = Drop.QUEUE_FULL
        if why is not None:
            self.turn_away(session, item, why, now)
            return
        for last, topic, values in grant.marks:
            last.note(topic, values)
        if beyond is Beyond.SPILL or (is_overflowing and session.spill is not None):
            assert isinstance(item, Message), "bursts have QoS 0"
            self._spills.put(session, item, grant)
            if conn is not None:
                self.changed.mark(conn)
            return
        queue = session.queue
        if _is_stored(session, item, grant):
            # before the push, which may discard it again
            self._journal.queued(session, item, grant)  # type: ignore[arg-type]  # bursts have QoS 0
        if item.level != self.default_level:
            queue.is_mixed = True
        # a session that is about to end keeps everything until it does: what was acknowledged is in the store until the
        # end is, and then handed on to others of its group, or named
        if not queue.push((item, grant), item.messages, item.size) and not is_overflowing:
            self.make_room(session, now)
        if conn is not None:
            self.changed.mark(conn)

    def settle(self, session: Session) -> None:
        """Queue what was put off for a session whose client is away."""
        if self.late.rest:
            self.late.settle(session)

    # -- what finds no room in memory

    def _choice(self, session: Session, item: Item) -> Absent:
        """What was chosen for a message that has no room in memory while the client of its session is away."""
        return session.owner.bounds.absent or self._priorities.classes.absent[item.level] or self.absent

    def refuses(self, session: Session, item: Item) -> bool:
        """Whether somebody is refused when a session has no room in memory for a message: it is away, or spills."""
        if session.is_over:
            return False
        if not self._keeps_oldest:
            return True
        if session.connection is None:
            return self._choice(session, item) == "refuse"
        return not self._spills.has_room(session, item)

    def is_half_empty(self, session: Session) -> bool:
        """Whether there is room worth telling those who wait for it."""
        return session.queue.is_half_empty and self._spills.is_half_empty(session)

    def beyond(self, session: Session, item: Item, grant: Grant, copies: int = 0) -> Beyond | None:
        """What becomes of a message that has no room in memory, once so many copies of it were queued; None if it has.

        A session that spills takes nothing into memory that would be before what was spilled.
        """
        if not (item.qos and grant.qos):
            return None
        if session.is_doomed:
            return Beyond.END
        is_away = session.connection is None
        if session.spill is None:
            has_room = session.has_room(item, copies) and not session.queue.is_squeezed(copies * item.size)
            if not is_away or has_room or not self._keeps_oldest:
                return None
        elif self._spills.lets_pass(session, item, grant):
            return None
        choice = self._choice(session, item) if is_away else "spill"
        if session.spill is None and choice == "refuse":
            # it was not asked before it was taken: then the queue says what goes
            return None
        can_spill = choice != "end" and self._spills.can_take(session, item)
        if can_spill and (item.is_owed or self._spills.has_room(session, item, copies)):
            return Beyond.SPILL
        return Beyond.END if is_away and choice != "refuse" else Beyond.TURN_AWAY

    def requeue(self, session: Session, message: Message, grant: Grant) -> None:
        """A message waited for a session when the broker ended; it does so again."""
        queue = session.queue
        queue.is_mixed = queue.is_mixed or message.level != self.default_level
        queue.push((message, grant), 1, message.size)

    @staticmethod
    def obstacle(session: Session, item: Item, grant: Grant, copies: int = 0) -> Drop | None:
        """Why a message is not queued for a session at all, once so many copies of it were; None when it is."""
        if session.connection is None and not (item.qos and grant.qos):
            return Drop.OFFLINE
        if session.queue.is_squeezed(copies * item.size) and not item.is_owed:
            return Drop.MEMORY_FULL
        return None

    # -- what does not fit

    def make_room(self, session: Session, now: float) -> None:
        """Drop from a queue until it is within its bounds.

        Where order matters the victim comes from the lowest class, by that class's rule; otherwise it is the oldest
        QoS 0 message, else the newest one, else the oldest.
        """
        if session.queue.may_hold():
            return
        if session.backlog is not None or self._order.matters_in(session.queue):
            self._make_room_by_policy(session, now)
            return
        queue = session.queue
        while queue.is_over and queue.messages:
            # only the ends: to look through all that waits takes milliseconds, and a full queue gets here with each
            # message
            session.unbundle_ends()
            if queue.entries and not _is_assured(queue.entries[0]):
                item, grant = queue.entries.popleft()
                if isinstance(item, Burst):
                    excess = _excess(session, item)
                    if excess < item.messages:
                        # only a part of it has to go: the older part
                        item, rest = item.cut(excess)
                        queue.entries.appendleft((rest, grant))
            elif queue.entries and (self._keeps_oldest or not _is_assured(queue.entries[-1])):
                item, grant = queue.entries.pop()
            elif queue.blocked:
                item, grant = queue.blocked.popleft()
            else:
                item, grant = queue.entries.popleft()
            self._evict(session, item, grant, now)

    def _make_room_by_policy(self, session: Session, now: float) -> None:
        backlog = self._order.engage(session, now)
        queue = session.queue
        while queue.is_over and queue.messages:
            # QoS 0 first; what is left are messages that may only go where the operator said so
            victim = backlog.policy.evict() or backlog.policy.evict_assured()
            if victim is None:
                break
            item, grant = victim.entry
            if isinstance(item, Burst):
                excess = _excess(session, item)
                if excess < item.messages:
                    if self._priorities.classes.rules.classes[item.level].full == "newest":
                        rest, item = item.cut(item.messages - excess)
                    else:
                        item, rest = item.cut(excess)
                    backlog.keep(victim, rest, grant)
            self._evict(session, item, grant, now)

    def _evict(self, session: Session, item: Queued, grant: Grant, now: float) -> None:
        assert not isinstance(item, Bundle), "they were taken apart"
        self._work.did(WORK_PER_VICTIM)
        self.forgo(session, item, grant)
        self.discard(session, item, grant, Drop.QUEUE_FULL, now)

    def forgo(self, session: Session, item: Item, grant: Grant) -> None:
        """Let the store know that a session will not get what it keeps for it."""
        if _is_stored(session, item, grant):
            self._journal.dropped(session, item, grant)  # type: ignore[arg-type]  # bursts have QoS 0

    def discard(self, session: Session, item: Item, grant: Grant, why: Drop, now: float) -> None:
        """Account for an entry that left a queue without being sent."""
        grant.unmark()
        session.queue.taken(item.messages, item.size)
        self.turn_away(session, item, why, now)

    def turn_away(self, session: Session, item: Item, why: Drop, now: float) -> None:
        """Name what a session should have got and is not in its queue."""
        session.dropped += item.messages
        queued = len(session.queue)
        client = session.client_id
        self._account.drop(now, why, client, item.topic, item.messages, queued, level=item.level, since=item.at)

    def hand_on(self, item: Item, heir: Grant, now: float) -> None:
        """Offer what waited for a session that is gone to another one; the store may have forgotten the message."""
        heir.receiver.offer(item.afresh() if isinstance(item, Message) and item.number else item, heir, now)


def _excess(session: Session, burst: Burst) -> int:
    """How many packets of a burst have to go for the queue to be within its bounds."""
    queue = session.queue
    excess = max(queue.messages - queue.max_messages, -((queue.max_bytes - queue.bytes) // burst.stride))
    # a queue that is within its bounds could not borrow what it holds
    return excess if excess > 0 else burst.messages


def _is_stored(session: Session, item: Item, grant: Grant) -> bool:
    """Whether the store keeps the message for the session."""
    return bool(session.is_kept and grant.qos and item.qos)


def _is_assured(entry: Entry) -> bool:
    """Whether the entry will be sent with QoS 1 or 2."""
    item, grant = entry
    return bool(item.qos and grant.qos)
