"""From a queue to bytes: what one connection writes next.

This is where everything is bound that must be bound late: packet ids, topic aliases, subscription identifiers, what
is left of the expiry.  The shell calls :func:`fill` only when the connection can take bytes.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.connection import CONNECTED, Hold
from tieline.core.inbound.acknowledge import landed, settled
from tieline.core.message import Burst, Message, publish_bytes
from tieline.core.outbound.backlog import disengage, engage, is_congested, is_kept_for_urgent, split, window_of
from tieline.core.outbound.deliver import forgo
from tieline.core.outbound.replay import refill
from tieline.core.session import Grant
from tieline.sched.levels import URGENT
from tieline.wire.header import stamp

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection
    from tieline.core.session import Session

#: The first byte of each PUBLISH, by flags.
_FIRST = [bytes((0x30 | flags,)) for flags in range(16)]
_DUP = 0x08
_PACKET_IDS = 65_535
_COMMIT = Hold.COMMIT


def fill(broker: Broker, conn: Connection, limit: int, now: float) -> bytes:
    """The next bytes to write, about ``limit`` of them; fewer when nothing more may be sent now."""
    session = conn.session
    if conn.state is not CONNECTED or session is None or conn.hold is _COMMIT:
        return _join(broker, *_take_control(broker, conn))
    queue = session.queue
    if (
        len(queue.entries) == 1
        and session.backlog is None
        and not conn.control
        and not conn.resend
        and not conn.departing
    ):
        # one thing to send, as it came: what a paced client gets most of the time
        item, grant = queue.entries[0]
        if (
            isinstance(item, Burst)
            and item.version == conn.raw_version
            and not (grant.identifiers or queue.blocked or session.replays or session.oldest)
            and item.stride <= conn.max_packet
            and item.size <= limit
        ):
            queue.entries.clear()
            queue.messages -= item.messages
            queue.bytes -= item.size
            broker.queued_bytes -= item.size
            broker.account.publishes_out += item.messages
            broker.account.bytes_out += item.size
            if broker.chronicle is not None:
                broker.chronicle.delivered(item, session, item.messages, item.size, now)
            return item.packets
    out, size = _take_control(broker, conn)
    if conn.resend:
        size = _resend(broker, conn, session, out, size, limit, now)
    if conn.departing and not conn.resend:
        size = _depart(broker, conn, session, out, size, limit, now)
    if queue.messages or session.replays:
        if size < limit:
            size = _drain(broker, conn, session, out, size, limit, now)
        if session.replays and size < limit and not queue.messages:
            refill(broker, session, now)
            size = _drain(broker, conn, session, out, size, limit, now)
    if queue.messages or session.oldest or session.blocked_publishers:
        _drained(broker, session, now)
    return _join(broker, out, size)


def _take_control(broker: Broker, conn: Connection) -> tuple[list[bytes], int]:
    """The answers that wait, which go before any message."""
    out, conn.control = conn.control, []
    broker.account.packets_out += len(out)
    size, conn.control_bytes = conn.control_bytes, 0
    return out, size


def _join(broker: Broker, out: list[bytes], size: int) -> bytes:
    if not out:
        return b""
    broker.account.bytes_out += size
    return out[0] if len(out) == 1 else b"".join(out)


def _drain(  # the loop's whole state, passed once
    broker: Broker, conn: Connection, session: Session, out: list[bytes], size: int, limit: int, now: float
) -> int:
    """Pop entries until the limit is reached or nothing more may be sent."""
    queue = session.queue
    entries = queue.entries
    blocked = queue.blocked
    if session.backlog is not None or (
        broker.has_levels and (blocked or entries) and is_congested(conn, (blocked or entries)[0], now)
    ):
        return _drain_by_policy(broker, conn, session, out, size, limit, now)
    raw_version = conn.raw_version
    max_packet = conn.max_packet
    sent = messages = taken = 0
    is_urgent_stopped = False
    while blocked and size < limit and conn.quota and len(session.inflight) < _PACKET_IDS:
        item, grant = blocked[0]
        if is_kept_for_urgent(broker, conn, item):
            break
        blocked.popleft()
        messages += 1
        if isinstance(item, Message):  # always: a burst has QoS 0 and never steps aside
            done = _send(broker, conn, session, item, grant, out, now)
            sent += done > 0
            size += done
            taken += item.size
    while entries and size < limit:
        entry = entries.popleft()
        item, grant = entry
        if isinstance(item, Burst):
            if size + item.size > limit:
                item, rest = split(item, limit - size)
                if rest is not None:
                    entries.appendleft((rest, grant))
            messages += item.messages
            taken += item.size
            if item.version == raw_version and not grant.identifiers and item.stride <= max_packet:
                # the common case: the bytes go out as they came in
                out.append(item.packets)
                size += item.size
                sent += item.messages
                if broker.chronicle is not None:
                    broker.chronicle.delivered(item, session, item.messages, item.size, now)
                continue
            for payload in item.payloads():
                done = _send_general(broker, conn, item, grant, payload, 0, 0, out, now)
                sent += done > 0
                size += done
                if done and broker.chronicle is not None:
                    broker.chronicle.delivered(item, session, 1, done, now)
        elif (
            item.qos
            and grant.qos
            and (
                blocked
                or not conn.quota
                or len(session.inflight) >= _PACKET_IDS
                or is_kept_for_urgent(broker, conn, item)
            )
        ):
            if item.level == URGENT and broker.has_levels:
                # never behind bulk that the window stops: let the policy find the way
                entries.appendleft(entry)
                is_urgent_stopped = True
                break
            blocked.append(entry)
        else:
            messages += 1
            done = _send(broker, conn, session, item, grant, out, now)
            sent += done > 0
            size += done
            taken += item.size
    queue.messages -= messages
    queue.bytes -= taken
    broker.queued_bytes -= taken
    broker.account.publishes_out += sent
    return _drain_by_policy(broker, conn, session, out, size, limit, now) if is_urgent_stopped else size


def _drain_by_policy(  # as above
    broker: Broker, conn: Connection, session: Session, out: list[bytes], size: int, limit: int, now: float
) -> int:
    """The same for a congested subscriber: the policy says what goes next, and bursts are cut to what fits."""
    backlog = engage(broker, session)
    backlog.absorb(session, now)
    policy, congestion = backlog.policy, backlog.congestion
    account = broker.account
    messages = taken = 0
    while size < limit:
        waiting = policy.pop(now, window_of(broker, conn, len(session.inflight)))
        if waiting is None:
            break
        grant = waiting.entry[1]
        item = waiting.entry[0]
        if isinstance(item, Burst):
            item, rest = split(item, limit - size)
            if rest is not None:
                backlog.put_back(waiting, rest, grant)
        waited_s = now - waiting.since
        account.waited(item.level, waited_s, item.messages)
        congestion.observe(item.level, waited_s, conn.path.delay_s(item.size))
        messages += item.messages
        taken += item.size
        if isinstance(item, Message):
            done = _send(broker, conn, session, item, grant, out, now)
            account.publishes_out += done > 0
            size += done
        elif item.version == conn.raw_version and not grant.identifiers and item.stride <= conn.max_packet:
            out.append(item.packets)
            size += item.size
            account.publishes_out += item.messages
            if broker.chronicle is not None:
                broker.chronicle.delivered(item, session, item.messages, item.size, now)
        else:
            for payload in item.payloads():
                done = _send_general(broker, conn, item, grant, payload, 0, 0, out, now)
                account.publishes_out += done > 0
                size += done
                if done and broker.chronicle is not None:
                    broker.chronicle.delivered(item, session, 1, done, now)
        if not policy.waits(item.level):
            congestion.calm(item.level)
            if item.level == URGENT and conn.is_sealed and len(policy):
                # what is sealed together is read together: an urgent message does not wait for bulk behind it
                broker.mark(conn)
                break
    session.queue.taken(messages, taken)
    broker.queued_bytes -= taken
    if not len(policy):
        disengage(session)
    return size


def _send(  # as above
    broker: Broker, conn: Connection, session: Session, item: Message, grant: Grant, out: list[bytes], now: float
) -> int:
    """Encode one message; 0 when it was discarded instead."""
    if item.expires is not None and item.expires <= now:
        # [MQTT-3.3.2-5] its time is over and nothing of it was sent yet
        _give_up(broker, item, grant, Drop.EXPIRED, now)
        forgo(broker, session, item, grant)
        return 0
    qos = item.qos if item.qos < grant.qos else grant.qos
    flags = qos << 1
    # DUP is 0 on the first attempt ([MQTT-3.3.1-2], [MQTT-3.3.1-3], [MQTT311-4.3.1-1]); QoS as granted ([MQTT-3.8.4-8],
    # [MQTT311-3.8.4-6]); RETAIN for what was retained ([MQTT311-3.3.1-8]) or as published ([MQTT-3.3.1-13]), else 0
    # ([MQTT-3.3.1-12], [MQTT311-3.3.1-9])
    if grant.set_retain or (item.retain and grant.keep_retain):
        flags |= 1
    if not qos:
        done = _encode(broker, conn, item, grant, flags, 0, out, now)
        if done and broker.chronicle is not None:
            broker.chronicle.delivered(item, session, 1, done, now)
        return done
    packet_id = session.next_id()
    # QoS 2 is written when the store has its packet id: after a crash it must be sent again with the same one
    is_later = qos == 2 and session.is_kept
    done = 0 if is_later else _encode(broker, conn, item, grant, flags, packet_id, out, now)
    if done and broker.chronicle is not None:
        broker.chronicle.delivered(item, session, 1, done, now)
    if done or is_later:
        session.inflight[packet_id] = (item, grant, qos)
        conn.quota -= 1
        # on the account until it is acknowledged: flow.landed()
        session.queue.sent_bytes += item.size
        broker.queued_bytes += item.size
        if session.is_kept:
            broker.journal.sent(session, item, grant, packet_id)
            if is_later:
                broker.journal.depart(conn, packet_id)
    else:
        forgo(broker, session, item, grant)
    return done


def _depart(  # as above
    broker: Broker, conn: Connection, session: Session, out: list[bytes], size: int, limit: int, now: float
) -> int:
    """QoS 2 messages whose packet ids are permanent by now go out, in the order in which they got them."""
    while conn.departing and size < limit:
        packet_id = conn.departing.popleft()
        flight = session.inflight.get(packet_id)
        if flight is None:
            continue
        item, grant, qos = flight
        flags = qos << 1 | (grant.set_retain or (item.retain and grant.keep_retain))
        done = _encode(broker, conn, item, grant, flags, packet_id, out, now)
        if done:
            size += done
            broker.account.publishes_out += 1
            if broker.chronicle is not None:
                broker.chronicle.delivered(item, session, 1, done, now)
        else:
            _withdraw(broker, session, packet_id, item)
            conn.quota += 1
    return size


def _withdraw(broker: Broker, session: Session, packet_id: int, item: Message) -> None:
    """What had a packet id cannot be sent: the id is free."""
    del session.inflight[packet_id]
    landed(broker, session, item)
    settled(broker, session, packet_id)


def _encode(  # as above
    broker: Broker,
    conn: Connection,
    item: Message,
    grant: Grant,
    flags: int,
    packet_id: int,
    out: list[bytes],
    now: float,
) -> int:
    """Encode a message for this connection: from its ready-made parts where nothing else has to be bound."""
    version = conn.version
    if not packet_id or not conn.raw_version or (version == 5 and (item.expires is not None or grant.identifiers)):
        return _send_general(broker, conn, item, grant, item.payload, flags, packet_id, out, now)
    head, tail = item.parts(version)
    size = len(head) + len(tail) + 3
    if size > conn.max_packet:
        _give_up(broker, item, grant, Drop.TOO_LARGE, now)
        return 0
    out += (_FIRST[flags], head, packet_id.to_bytes(2, "big"), tail)
    return size


def _send_general(  # as above
    broker: Broker,
    conn: Connection,
    item: Message | Burst,
    grant: Grant,
    payload: bytes,
    flags: int,
    packet_id: int,
    out: list[bytes],
    now: float,
) -> int:
    """Encode a message with everything a receiver may need bound; 0 when it was discarded instead."""
    topic = item.topic
    properties: bytes | None = None
    new_alias = 0
    if conn.version == 5:
        properties = item.properties + grant.identifiers
        if item.expires is not None:
            # [MQTT-3.3.2-6] what is left of the interval; an unacknowledged message may be sent again after its end
            left = max(0, ceil(item.expires - now))
            properties += b"\x02" + left.to_bytes(4, "big")
        alias = conn.alias_out.get(topic)
        if alias is not None:
            topic = b""
            properties += b"\x23" + alias.to_bytes(2, "big")
        elif len(conn.alias_out) < conn.alias_out_max:
            new_alias = len(conn.alias_out) + 1
            properties += b"\x23" + new_alias.to_bytes(2, "big")
    data = publish_bytes(0x30 | flags, topic, packet_id, properties, payload)
    if conn.has_header:
        data = stamp(data, item.level)
    if len(data) > conn.max_packet:
        # [MQTT-3.1.2-24], [MQTT-3.1.2-25] discarded as if it had been sent
        _give_up(broker, item, grant, Drop.TOO_LARGE, now)
        return 0
    if new_alias:
        conn.alias_out[item.topic] = new_alias
    out.append(data)
    return len(data)


def _give_up(broker: Broker, item: Message | Burst, grant: Grant, why: Drop, now: float) -> None:
    """Name a message that was popped and cannot be sent."""
    session = grant.session
    session.dropped += 1
    grant.unmark()
    broker.account.drop(now, why, session.client_id, item.topic, 1, len(session.queue), level=item.level, since=item.at)


def _resend(  # as above
    broker: Broker, conn: Connection, session: Session, out: list[bytes], size: int, limit: int, now: float
) -> int:
    """After a reconnection: what was in flight goes again, in its original order.

    [MQTT-4.4.0-1], [MQTT-4.6.0-1], [MQTT-3.3.1-1] (DUP), [MQTT-4.3.3-6], [MQTT311-4.4.0-1], [MQTT311-4.6.0-1].
    """
    while conn.resend and size < limit:
        packet_id = conn.resend[0]
        if packet_id not in session.inflight:
            conn.resend.popleft()
            continue
        flight = session.inflight[packet_id]
        if flight is None:
            data = b"\x62\x02" + packet_id.to_bytes(2, "big")
            if conn.has_header:
                data = stamp(data, conn.level)
            out.append(data)
            size += len(data)
        else:
            if not conn.quota:
                break  # [MQTT-3.3.4-9], [MQTT-4.9.0-2]
            item, grant, qos = flight
            flags = _DUP | qos << 1 | (grant.set_retain or (item.retain and grant.keep_retain))
            done = _encode(broker, conn, item, grant, flags, packet_id, out, now)
            if done:
                conn.quota -= 1
                size += done
                broker.account.publishes_out += 1
            else:
                _withdraw(broker, session, packet_id, item)
        conn.resend.popleft()
    return size


def _drained(broker: Broker, session: Session, now: float) -> None:
    """Keep the age of the head, and let waiting publishers go on once there is room again."""
    queue = session.queue
    if not queue.messages:
        session.oldest = 0.0
    elif not session.oldest:
        session.oldest = now
    if session.blocked_publishers and queue.is_half_empty:
        broker.release_publishers(session, now)
