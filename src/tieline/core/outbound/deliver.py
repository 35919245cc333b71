"""One message to its receivers' queues; nothing is encoded here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.message import Burst, Message
from tieline.core.outbound.backlog import engage
from tieline.core.routing.content_match import sift

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.message import Item
    from tieline.core.routing.routes import Route
    from tieline.core.session import Entry, Grant, Session

#: A session that holds no more than this keeps up, and is served even when the broker's memory is full.
KEEPS_UP = 65_536


def deliver(broker: Broker, item: Item, route: Route, now: float) -> int:
    """Queue a message for everyone on its route; the number of receivers ([MQTT-4.5.0-1], [MQTT311-4.5.0-1])."""
    if route.is_simple:
        messages, size = item.messages, item.size
        is_stored = item.qos > 0 and not broker.journal.is_volatile
        for grant in route.grants:
            session = grant.session
            conn = session.connection
            if (
                conn is None
                or broker.queued_bytes > broker.max_queued_bytes
                or (is_stored and session.is_kept and grant.qos)
            ):
                offer(broker, item, grant, now)
                continue
            # what offer() comes to for a connected client; this loop is the hot path of every fan-out
            broker.queued_bytes += size
            if not session.queue.push((item, grant), messages, size):
                make_room(broker, session, now)
            if not conn.is_dirty:
                conn.is_dirty = True
                broker.dirty.append(conn)
        broker.routes.work += len(route.grants)
        return len(route.grants)
    receivers = 0
    if route.is_sifted:
        for part, narrowed in sift(broker, item, route):
            receivers += deliver(broker, part, narrowed, now)
        return receivers
    publisher = item.publisher
    for grant in route.grants:
        if grant.no_local and grant.session.client_id == publisher:
            # [MQTT-3.8.3-3] not back to its publisher, unless another of its subscriptions asks for it
            if grant.others is None:
                continue
            offer(broker, item, grant.others, now)
        else:
            offer(broker, item, grant, now)
        receivers += 1
    for group in route.groups:
        # [MQTT-4.8.2-3]; a burst is dealt out, or the turns would be as long as the bursts
        for part in item.deal(len(group.members)) if isinstance(item, Burst) else (item,):
            chosen = group.pick(part)
            if chosen is None:
                name = f"$share/{group.name}/{group.filter}"
                broker.account.drop(
                    now, Drop.NO_MEMBER, name, part.topic, part.messages, level=part.level, since=part.at
                )
            else:
                offer(broker, part, chosen, now)
                receivers += 1
        broker.routes.work += len(group.members)
    broker.routes.work += len(route.grants)
    return receivers


def offer(broker: Broker, item: Item, grant: Grant, now: float) -> None:
    """Queue a message for one session; a full queue names its victim."""
    session = grant.session
    conn = session.connection
    if conn is None and not (item.qos and grant.qos):
        turn_away(broker, session, item, Drop.OFFLINE, now)
        return
    queue = session.queue
    size = item.size
    if broker.queued_bytes > broker.max_queued_bytes and queue.bytes > KEEPS_UP and item is not broker.unrouted.in_hand:
        turn_away(broker, session, item, Drop.MEMORY_FULL, now)
        return
    for last, topic, values in grant.marks:
        last.note(topic, values)
    broker.queued_bytes += size
    if session.is_kept and grant.qos and item.qos and isinstance(item, Message):
        # before the push, which may discard it again
        broker.journal.queued(session, item, grant)
    if not queue.push((item, grant), item.messages, size):
        make_room(broker, session, now)
    if conn is not None and not conn.is_dirty:
        conn.is_dirty = True
        broker.dirty.append(conn)


def make_room(broker: Broker, session: Session, now: float) -> None:
    """Drop from a queue until it is within its bounds.

    With levels in use the victim comes from the lowest class, by that class's rule; otherwise it is the oldest QoS 0
    message, else the newest one, else the oldest.
    """
    if session.backlog is not None or broker.has_levels:
        _make_room_by_policy(broker, session, now)
        return
    queue = session.queue
    keep_oldest = broker.settings.mqtt.full != "oldest"
    while queue.is_over and queue.messages:
        if queue.entries and not _is_assured(queue.entries[0]):
            item, grant = queue.entries.popleft()
            if isinstance(item, Burst):
                excess = _excess(session, item)
                if excess < item.messages:
                    # only a part of it has to go: the older part
                    item, rest = item.cut(excess)
                    queue.entries.appendleft((rest, grant))
        elif queue.entries and (keep_oldest or not _is_assured(queue.entries[-1])):
            item, grant = queue.entries.pop()
        elif queue.blocked:
            item, grant = queue.blocked.popleft()
        else:
            item, grant = queue.entries.popleft()
        forgo(broker, session, item, grant)
        discard(broker, (item, grant), Drop.QUEUE_FULL, now)


def _make_room_by_policy(broker: Broker, session: Session, now: float) -> None:
    backlog = engage(broker, session)
    backlog.absorb(session, now)
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
                if broker.classes.rules.classes[item.level].full == "newest":
                    rest, item = item.cut(item.messages - excess)
                else:
                    item, rest = item.cut(excess)
                backlog.keep(victim, rest, grant)
        forgo(broker, session, item, grant)
        discard(broker, (item, grant), Drop.QUEUE_FULL, now)


def _excess(session: Session, burst: Burst) -> int:
    """How many packets of a burst have to go for the queue to be within its bounds."""
    queue = session.queue
    return max(queue.messages - queue.max_messages, -((queue.max_bytes - queue.bytes) // burst.stride))


def forgo(broker: Broker, session: Session, item: Item, grant: Grant) -> None:
    """Let the store know that a session will not get what it keeps for it."""
    if session.is_kept and grant.qos and item.qos and isinstance(item, Message):
        broker.journal.dropped(session, item, grant)


def discard(broker: Broker, entry: Entry, why: Drop, now: float) -> None:
    """Account for an entry that left a queue without being sent."""
    item, grant = entry
    session = grant.session
    grant.unmark()
    session.queue.taken(item.messages, item.size)
    broker.queued_bytes -= item.size
    turn_away(broker, session, item, why, now)


def turn_away(broker: Broker, session: Session, item: Item, why: Drop, now: float) -> None:
    """Name what a session should have got and is not in its queue."""
    session.dropped += item.messages
    broker.account.drop(
        now,
        why,
        session.client_id,
        item.topic,
        item.messages,
        len(session.queue),
        level=item.level,
        since=item.at,
    )


def _is_assured(entry: tuple[Item, Grant]) -> bool:
    """Whether the entry will be sent with QoS 1 or 2."""
    item, grant = entry
    return bool(item.qos and grant.qos)


def find_full(broker: Broker, item: Item, route: Route) -> Session | None:
    """A session on the route that would have to drop this QoS 1 or 2 message; None when all have room."""
    is_short = broker.queued_bytes > broker.max_queued_bytes
    size = item.size
    for grant in route.grants:
        if grant.no_local and grant.session.client_id == item.publisher and grant.others is None:
            continue
        if grant.qos:
            queue = grant.session.queue
            if not queue.has_room(size) or (is_short and queue.bytes > KEEPS_UP):
                return grant.session
    for group in route.groups:
        assured = [grant for grant in group.members.values() if grant.qos]
        if assured and not any(grant.session.queue.has_room(item.size) for grant in group.members.values()):
            return assured[0].session
    return None
