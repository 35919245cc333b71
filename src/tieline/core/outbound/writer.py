"""From a queue to bytes: what one connection writes next.

This is where everything is bound that must be bound late: packet ids, topic aliases, subscription identifiers, what
is left of the expiry.  The shell calls :meth:`Writer.fill` only when the connection can take bytes.

There is one writer for all connections.  While it fills one write, its fields say for whom and how far it has come;
the steps of :meth:`Writer.fill` share them.
"""

from __future__ import annotations

from collections.abc import Callable

from tieline.core.account import Account, Drop
from tieline.core.backlog import split
from tieline.core.client import CONNECTED, Connection, Hold, Session
from tieline.core.durable.chronicle import Chronicle
from tieline.core.durable.journal import Journal
from tieline.core.message import Bundle, Burst, Item, Message, Queued
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.order import Order
from tieline.core.outbound.packets import DUP, assured_pieces, bound_packet, flags_of
from tieline.core.outbound.replay import Replays
from tieline.core.outbound.spills import Spills
from tieline.core.outbound.window import Window
from tieline.core.receiver import Grant
from tieline.sched.levels import URGENT
from tieline.wire.frames import stamp

_COMMIT = Hold.COMMIT


class Writer:
    """Fills one write after the other, for whichever connection can take bytes."""

    __slots__ = (
        "_account",
        "_chronicle",
        "_conn",
        "_delivery",
        "_journal",
        "_limit",
        "_now",
        "_on_room",
        "_order",
        "_out",
        "_replays",
        "_sent",
        "_session",
        "_size",
        "_spills",
        "_window",
    )

    def __init__(  # everything that a message leaves behind when it goes
        self,
        delivery: Delivery,
        order: Order,
        window: Window,
        replays: Replays,
        spills: Spills,
        journal: Journal,
        account: Account,
        chronicle: Chronicle | None,
        on_room: Callable[[Session, float], None],
    ) -> None:
        self._delivery = delivery
        self._order = order
        self._window = window
        self._replays = replays
        self._spills = spills
        self._journal = journal
        self._account = account
        self._chronicle = chronicle
        #: Called when publishers wait for a queue in which there is room again.
        self._on_room = on_room
        #: The pieces of the write that is being filled, the sum of their lengths, and how long it may get, about.
        self._out: list[bytes] = []
        self._size = self._limit = 0
        #: Messages in it.
        self._sent = 0
        self._now = 0.0

    def fill(self, conn: Connection, limit: int, now: float) -> list[bytes]:
        """The next bytes to write, in pieces, about ``limit`` of them; fewer when nothing more may be sent now."""
        # the answers that wait go before any message
        out, conn.control = conn.control, []
        self._out = out
        self._size, conn.control_bytes = conn.control_bytes, 0
        account = self._account
        account.packets_out += len(out)
        session = conn.session
        if session is not None and conn.state is CONNECTED and conn.hold is not _COMMIT:
            self._conn, self._session = conn, session
            self._limit, self._now = limit, now
            self._sent = 0
            if conn.resend:
                self._resend()
            if conn.departing and not conn.resend:
                self._depart()
            queue = session.queue
            if queue.messages and self._size < limit:
                self._drain()
            if session.is_replaying and self._size < limit and not queue.messages:
                self._replays.refill(session, now)
                self._drain()
            account.publishes_out += self._sent
            if queue.messages or session.oldest or session.is_awaited or session.spill is not None:
                self._look_after(session, now)
        account.bytes_out += self._size
        return out

    def _look_after(self, session: Session, now: float) -> None:
        """Keep the age of the head, and let waiting publishers go on once there is room again."""
        queue = session.queue
        if not queue.messages:
            session.oldest = 0.0
        elif not session.oldest:
            session.oldest = now
        if session.is_awaited and session.is_half_empty:
            self._on_room(session, now)
        if session.spill is not None:
            self._spills.look(session)

    # -- what waits in the queue

    def _drain(self) -> None:
        """Pop entries until the write is full or nothing more may be sent."""
        session, conn, limit = self._session, self._conn, self._limit
        if self._order.is_due(session, conn, self._now):
            self._drain_by_policy()
            return
        queue = session.queue
        entries = queue.entries
        blocked = queue.blocked
        messages = taken = 0
        is_urgent_stopped = False
        while blocked and self._size < limit and not self._order.stops(session, conn, blocked[0][0]):
            item, grant = blocked.popleft()
            messages += item.messages
            taken += item.size
            self._send(item, grant)
        while entries and self._size < limit:
            entry = entries.popleft()
            item, grant = entry
            if not item.qos:
                if item.messages > 1 and self._size + item.size > limit:
                    item = self._cut(item, grant)
            elif grant.qos and (blocked or self._order.stops(session, conn, item)):
                if item.level == URGENT and self._order.matters_in(queue):
                    # never behind bulk that the window stops: let the policy find the way
                    entries.appendleft(entry)
                    is_urgent_stopped = True
                    break
                blocked.append(entry)
                continue
            messages += item.messages
            taken += item.size
            self._send(item, grant)
        queue.taken(messages, taken)
        if is_urgent_stopped:
            self._drain_by_policy()

    def _drain_by_policy(self) -> None:
        """The same for a congested subscriber: the policy says what goes next, and how much of a burst."""
        session, conn, now = self._session, self._conn, self._now
        backlog = self._order.engage(session, now)
        policy, congestion = backlog.policy, backlog.congestion
        messages = taken = 0
        while self._size < self._limit:
            waiting = policy.pop(now, self._order.window_of(session, conn))
            if waiting is None:
                break
            item, grant = waiting.entry
            if isinstance(item, Burst):
                item, rest = split(item, self._limit - self._size, policy.most)
                if rest is not None:
                    backlog.put_back(waiting, rest, grant)
            waited_s = now - waiting.since
            self._account.waited(item.level, waited_s, item.messages)
            congestion.observe(item.level, waited_s, conn.path.delay_s(item.size))
            messages += item.messages
            taken += item.size
            self._send(item, grant)
            if not policy.waits(item.level):
                congestion.calm(item.level)
                if item.level == URGENT and conn.is_wrapped and len(policy):
                    # what is wrapped together is read together: an urgent message does not wait for bulk behind it
                    self._delivery.changed.mark(conn)
                    break
        session.queue.taken(messages, taken)
        if not len(policy):
            # nothing waits any more: first in, first out again
            session.backlog = None

    # -- one entry

    def _cut(self, item: Queued, grant: Grant) -> Burst:
        """As much of an entry of several messages as the write still takes; the rest stays at the head of the queue."""
        entries = self._session.queue.entries
        if isinstance(item, Bundle):
            entries.extendleft((burst, grant) for burst in reversed(list(item.bursts())))
            item, _ = entries.popleft()
        assert isinstance(item, Burst)
        burst, rest = split(item, self._limit - self._size)
        if rest is not None:
            entries.appendleft((rest, grant))
        return burst

    def _send(self, item: Queued, grant: Grant) -> None:
        """Add a queue entry to the write, or name why it cannot be sent."""
        if not isinstance(item, Message):
            if self._conn.takes_raw(item.version, item.largest, grant):
                # the common case: the bytes go out as they came in
                self._out.append(item.packets)
                self._count(item.size, item, item.messages)
            else:
                for burst in item.bursts():
                    for payload in burst.payloads():
                        self._bind(burst, grant, payload, 0, 0)
        elif item.expires is not None and item.expires <= self._now:
            # [MQTT-3.3.2-5] its time is over and nothing of it was sent yet
            self._give_up(item, grant, Drop.EXPIRED)
            self._delivery.forgo(self._session, item, grant)
        else:
            self._send_message(item, grant)

    def _send_message(self, item: Message, grant: Grant) -> None:
        qos = item.qos if item.qos < grant.qos else grant.qos
        flags = flags_of(item, grant, qos)
        if not qos:
            self._bind(item, grant, item.payload, flags, 0)
            return
        session, conn = self._session, self._conn
        packet_id = session.next_id()
        # QoS 2 is written when the store has its packet id: after a crash it must be sent again with the same one
        is_later = qos == 2 and session.is_kept
        if is_later or self._bind_assured(item, grant, flags, packet_id):
            self._window.take(session, conn, item, grant, packet_id, qos)
            if is_later:
                self._journal.depart(conn, packet_id)
        else:
            self._delivery.forgo(session, item, grant)

    def _depart(self) -> None:
        """QoS 2 messages whose packet ids are permanent by now go out, in the order in which they got them."""
        conn, session = self._conn, self._session
        while conn.departing and self._size < self._limit:
            packet_id = conn.departing.popleft()
            flight = session.inflight.get(packet_id)
            if flight is not None:
                item, grant, qos = flight
                if not self._bind_assured(item, grant, flags_of(item, grant, qos), packet_id):
                    self._window.withdraw(session, packet_id)
                    conn.quota += 1

    def _resend(self) -> None:
        """After a reconnection: what was in flight goes again, in its original order.

        [MQTT-4.4.0-1], [MQTT-4.6.0-1], [MQTT-3.3.1-1] (DUP), [MQTT-4.3.3-6], [MQTT311-4.4.0-1], [MQTT311-4.6.0-1].
        """
        conn, session = self._conn, self._session
        while conn.resend and self._size < self._limit:
            packet_id = conn.resend[0]
            if packet_id in session.inflight:
                flight = session.inflight[packet_id]
                if flight is None:
                    data = b"\x62\x02" + packet_id.to_bytes(2, "big")
                    if conn.has_header:
                        data = stamp(data, conn.level)
                    self._out.append(data)
                    self._size += len(data)
                elif not conn.quota:
                    break  # [MQTT-3.3.4-9], [MQTT-4.9.0-2]
                else:
                    item, grant, qos = flight
                    if self._bind_assured(item, grant, DUP | flags_of(item, grant, qos), packet_id):
                        conn.quota -= 1
                    else:
                        self._window.withdraw(session, packet_id)
            conn.resend.popleft()

    # -- bytes

    def _bind_assured(self, item: Message, grant: Grant, flags: int, packet_id: int) -> bool:
        """Add a QoS 1 or 2 message under its packet id; False when it was discarded instead."""
        pieces = assured_pieces(self._conn, item, grant, flags, packet_id)
        if pieces is None:
            return self._bind(item, grant, item.payload, flags, packet_id)
        size = len(pieces[1]) + len(pieces[2]) + len(pieces[3]) + 1
        if size > self._conn.max_packet:
            self._give_up(item, grant, Drop.TOO_LARGE)
            return False
        self._out += pieces
        self._count(size, item, 1, is_repeated=flags & DUP != 0)
        return True

    def _bind(self, item: Item, grant: Grant, payload: bytes, flags: int, packet_id: int) -> bool:
        """Add one message with everything a receiver may need bound; False when it was discarded instead."""
        data = bound_packet(self._conn, item, grant, payload, flags, packet_id, self._now)
        if data is None:
            # [MQTT-3.1.2-24], [MQTT-3.1.2-25] discarded as if it had been sent
            self._give_up(item, grant, Drop.TOO_LARGE)
            return False
        self._out.append(data)
        self._count(len(data), item, 1, is_repeated=flags & DUP != 0)
        return True

    def _count(self, size: int, item: Queued, messages: int, *, is_repeated: bool = False) -> None:
        """Messages go out: the one place that counts them."""
        self._size += size
        self._sent += messages
        if self._chronicle is not None and not is_repeated:
            assert not isinstance(item, Bundle), "nothing is bundled where deliveries are written down"
            self._chronicle.delivered(item, self._session.client_id, messages, size, self._now)

    def _give_up(self, item: Item, grant: Grant, why: Drop) -> None:
        """Name a message that was popped and cannot be sent."""
        session = self._session
        session.dropped += 1
        grant.unmark()
        queued = len(session.queue)
        self._account.drop(self._now, why, session.client_id, item.topic, 1, queued, level=item.level, since=item.at)
