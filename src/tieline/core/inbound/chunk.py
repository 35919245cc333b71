"""From bytes to handlers: everything in a chunk is parsed, the common packets without building an object.

Theory of operation
-------------------
:meth:`Chunks.take` walks over the packets of one chunk.  Three of them are recognised by their first byte and handled
from the bytes themselves: PUBLISH with QoS 0 and with QoS 1 (no retain, no properties, a topic whose route is
remembered) and PUBACK.  Consecutive QoS 0 packets that agree in every byte before the payload, and therefore in topic
and length, become one :class:`~tieline.core.message.Burst`: recognising the next one is a single ``startswith``.
Everything else is decoded and handed to the handler of its type; the outcome does not depend on which way a packet
took.

A chunk that ends inside a packet leaves its beginning in ``conn.partial``; nothing is parsed again until the whole
packet is there, so a sender of single bytes costs no more than the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final  # Any: each handler takes its own packet

from tieline.core.account import Account
from tieline.core.client import CLOSING, CONNECTED, OPENED, Again, Connection, Hold, Session
from tieline.core.durable.arrivals import Arrivals
from tieline.core.inbound.acknowledge import Acknowledging
from tieline.core.inbound.connect import Connecting
from tieline.core.inbound.first_packet import FirstPacket, is_undecided
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.publish import Publishing
from tieline.core.inbound.subscribe import Subscribing
from tieline.core.message import Bundle, Burst, Message
from tieline.core.outbound.deliver import WORK_PER_GROUP, Delivery
from tieline.core.routing.classes import ORDINARY
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.core.routing.routes import Routes
from tieline.core.work import SLOW_BYTES, WORK_PER_TURN, Work
from tieline.sched.levels import URGENT
from tieline.wire.decode import decode
from tieline.wire.errors import ProtocolError, Violation
from tieline.wire.fields import decode_varint
from tieline.wire.frames import level_of, measure, publish_head
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import (
    Auth,
    Connect,
    Disconnect,
    Pingreq,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Subscribe,
    Unsubscribe,
)
from tieline.wire.reason import Reason

_PUBLISH_QOS_0: Final = 0x30
_PUBLISH_QOS_1: Final = 0x32
_PUBACK: Final = 0x40
#: SUBSCRIBE and UNSUBSCRIBE.
_FILTER_PACKETS: Final = frozenset((0x82, 0xA2))
_PINGRESP: Final = b"\xd0\x00"

#: Answers that a client leaves unread before it is no longer read itself.
MAX_UNREAD: Final = 65_536
#: Longer packets are handled one by one: what a run of them saves is little beside the copies that are made where a
#: write has no room for all of it, one for each receiver.
LONG_PACKET: Final = 8_192
#: What a packet that is decoded counts towards the work of a turn, beside what its handler finds to do; how many of its
#: bytes count for one unit more; and what the packets of the short ways count.
WORK_PER_PACKET: Final = 40
BYTES_PER_WORK: Final = 32
WORK_PER_ASSURED: Final = 30
WORK_PER_PUBACK: Final = 10
#: Messages of one topic that count for one unit, and what each change of topic counts.
SAME_PER_WORK: Final = 8
WORK_PER_KIND: Final = 10
#: Most PUBACKs, and most changes of topic, that are handled without looking at the work that was done.
MOST_PUBACKS: Final = 200
MOST_KINDS: Final = 500
#: SUBSCRIBE and UNSUBSCRIBE above this are refused: each filter costs, and one packet must not stop the broker.
#: One filter of the greatest legal length fits, with properties.
MAX_FILTER_BYTES: Final = 65_535 + 1_024


class _Run:
    """QoS 0 packets, back to back, that go to the same receivers and are handled together."""

    __slots__ = (
        "conn",
        "head",
        "is_mixing",
        "kinds",
        "largest",
        "may_mix",
        "messages",
        "now",
        "route",
        "session",
        "start",
        "topic",
    )

    def __init__(self, conn: Connection, session: Session, now: float, *, may_mix: bool) -> None:
        self.conn = conn
        self.session = session
        self.now = now
        #: Packets of several topics may be handled together.
        self.may_mix = may_mix
        #: Where they go; None while there are none.
        self.route: Route | None = None

    def begin(self, route: Route, topic: bytes, start: int, head: int, *, is_long: bool) -> None:
        """The first packet begins at ``start`` and has so many bytes before its payload; a long one stays alone."""
        self.route = route
        self.is_mixing = self.may_mix and not is_long and route.is_simple and route.level < 0
        #: The topic of the last packet, and how many kinds there were, each with its own topic or length.
        self.topic = topic
        self.kinds = 1
        self.start = start
        self.head = head
        self.messages = self.largest = 0


class Chunks:
    """Parses what connections send, and hands each packet to whoever handles its kind."""

    def __init__(  # every handler, and what the short ways need
        self,
        first_packet: FirstPacket,
        connecting: Connecting,
        publishing: Publishing,
        acknowledging: Acknowledging,
        subscribing: Subscribing,
        routes: Routes,
        content: ContentMatch,
        priorities: Priorities,
        delivery: Delivery,
        arrivals: Arrivals,
        holds: Holds,
        account: Account,
        work: Work,
        *,
        allows_qos_1: bool,
        has_chronicle: bool,
    ) -> None:
        self._first_packet = first_packet
        self._connecting = connecting
        self._publishing = publishing
        self._acknowledging = acknowledging
        self._routes = routes
        self._content = content
        self._priorities = priorities
        self._delivery = delivery
        self._arrivals = arrivals
        self._holds = holds
        self._account = account
        self._work = work
        self._allows_qos_1 = allows_qos_1
        self._has_chronicle = has_chronicle
        #: Messages of the current chunk below urgent that are dispatched when it has been parsed: the more urgent ones
        #: first, and those that have to be looked into together, with whatever comes behind them.
        self._pending: list[tuple[Burst, Route]] = []
        #: What is legal on an established connection; anything else only a server sends.
        self._handlers: dict[type, Callable[[Connection, Any, float], None]] = {
            Connect: _on_connect,
            Publish: publishing.on_publish,
            Puback: acknowledging.on_puback,
            Pubrec: acknowledging.on_pubrec,
            Pubrel: acknowledging.on_pubrel,
            Pubcomp: acknowledging.on_pubcomp,
            Subscribe: subscribing.on_subscribe,
            Unsubscribe: subscribing.on_unsubscribe,
            Pingreq: _on_pingreq,
            Disconnect: connecting.on_disconnect,
            Auth: _on_auth,
        }

    def take(self, conn: Connection, data: bytes, now: float) -> None:
        """Handle every complete packet in a chunk; raises ProtocolError for the first one that is wrong."""
        partial, pos = conn.partial, 0
        if _is_held(conn):
            partial.add(data)
            return
        if partial:
            missing = conn.need - len(partial)
            if len(data) < missing:
                partial.add(data)
                return
            if conn.need > LONG_PACKET and missing and conn.state is CONNECTED:
                # a long packet is completed alone: with the rest of the chunk behind it, it would be copied once more
                self._parse(conn, partial.take(data[:missing]), 0, now)
                if conn.closing:
                    return
                if partial:
                    partial.add(data[missing:])
                    return
                pos = missing
            else:
                data = partial.take(data)
        if pos < len(data) or conn.unfinished is not None:
            self._parse(conn, data, pos, now)

    def _parse(self, conn: Connection, data: bytes, pos: int, now: float) -> None:
        """Handle what can be handled from ``pos`` on, and keep the rest."""
        begin = pos
        if conn.state is OPENED:
            if is_undecided(data):
                conn.partial.add(data)
                return
            try:
                pos = self._first_packet.take(conn, data, now)
            except Again:
                pos = 0
        if conn.state is CONNECTED and not _is_held(conn):
            pos = self._converse(conn, data, pos, now)
            if conn.control_bytes > MAX_UNREAD and conn.hold is None:
                self._holds.suspend(conn, Hold.NOT_READING, now)
        if pos > begin:
            # a whole packet, not just bytes: [MQTT-3.1.2-22]
            conn.last_in = now
        if pos < len(data) and conn.state is not CLOSING:
            conn.partial.add(data[pos:])
            if conn.hold is None:
                conn.need = _needed(conn, data, pos)

    def _converse(self, conn: Connection, data: bytes, pos: int, now: float) -> int:
        """Handle the packets of an established connection; where the first unhandled one begins."""
        session = conn.session
        assert session is not None
        size = len(data)
        work = self._work
        enough = work.enough()
        has_shortcuts = not conn.has_header
        if conn.unfinished is not None and not self._go_on(conn, now):
            return pos
        try:
            while pos < size:
                if work.done > enough:
                    self._holds.postpone(conn)
                    break
                if conn.control_bytes > MAX_UNREAD:
                    break
                after = pos
                if has_shortcuts:
                    first = data[pos]
                    if first == _PUBLISH_QOS_0:
                        after = self._take_bursts(conn, session, data, pos, now, enough)
                    elif first == _PUBLISH_QOS_1:
                        after = self._take_assured(conn, session, data, pos, now)
                    elif first == _PUBACK:
                        after = self._take_puback(conn, session, data, pos)
                if after == pos:
                    after = self._take_packet(conn, data, pos, now)
                    if after == pos:
                        break
                    if conn.state is not CONNECTED or conn.hold is not None:
                        pos = after
                        break
                pos = after
        except Again:
            pass  # the packet stays where it is, and is parsed again
        finally:
            if self._pending:
                self._dispatch(now)
        if conn.control or conn.resend or session.queue.messages or session.is_awaited:
            self._delivery.changed.mark(conn)
        return pos

    # -- the short ways

    def _take_bursts(  # the chunk, and where the walk over it stands
        self, conn: Connection, session: Session, data: bytes, pos: int, now: float, enough: int
    ) -> int:
        """Handle QoS 0 messages as they came; where the first packet begins that is not one for this way."""
        size = len(data)
        is_v5 = conn.version == 5
        known, learn = self._routes.known, self._routes.learn
        levels = conn.allowance.topic_levels
        limit = min(conn.allowance.packet_bytes, self._priorities.classes.least_bound)
        run = _Run(conn, session, now, may_mix=self._may_mix(conn))
        while pos < size and data[pos] == _PUBLISH_QOS_0:
            head = publish_head(data, pos, size)
            if head is None:
                break
            start, top, end = head
            topic = data[start:top]
            if is_v5:
                top += 1
            if (
                end > size
                or end - pos > limit
                or top > end
                # in MQTT 5 a zero must follow the topic: no properties
                or (is_v5 and data[top - 1])
                # a message may have to be refused for its topic: then the general way looks at it
                or (conn.is_guarded and topic not in conn.publishable)
            ):
                break
            route = known.get(topic)
            if route is None:
                route = learn(data, start, start + len(topic), levels)
                if route is None or self._work.done > enough:
                    break
            if route.conditions is not None:
                route.conditions.weigh()
            if route.is_heavy or route.is_for_many:
                break
            is_long = end - pos > LONG_PACKET
            if route is run.route and run.is_mixing and not is_long and run.kinds < MOST_KINDS:
                run.kinds += 1
                if topic != run.topic:
                    run.topic = topic
                    run.messages += 1
                    if end - pos > run.largest:
                        run.largest = end - pos
                    pos = end
                    continue
            else:
                if run.route is not None:
                    self._end_run(run, data, pos)
                    if self._work.done > enough:
                        return pos
                run.begin(route, topic, pos, top - pos, is_long=is_long)
            after, messages = self._same(data, pos, top, end, route, conn.level)
            run.messages += messages
            if end - pos > run.largest:
                run.largest = end - pos
            pos = after
        if run.route is not None:
            self._end_run(run, data, pos)
        return pos

    def _may_mix(self, conn: Connection) -> bool:
        """Whether messages of several topics may be handled as one: nobody wants to know more of them."""
        priorities = self._priorities
        return (
            conn.level == priorities.default_level
            and not priorities.is_ruled
            and not priorities.heat_deliveries
            and not self._arrivals.is_watched
            and not self._has_chronicle
        )

    def _same(self, data: bytes, pos: int, top: int, end: int, route: Route, level: int) -> tuple[int, int]:
        """How far the packets go that agree with the one at ``pos`` up to its payload, and how many there are."""
        stride = end - pos
        if stride > LONG_PACKET:
            return end, 1
        last = len(data) - stride
        if (route.level > ORDINARY or level > ORDINARY) and self._priorities.claims.has_rates:
            # where a rate is limited, each message is judged on its own: a run that is too long must not lose its level
            # while a later message of its flow keeps it
            return end, 1
        if route.conditions is not None:
            # one run must not cost more than a turn
            last = min(last, pos + stride * (WORK_PER_TURN // route.conditions.effort))
        if route.groups:
            # each group takes part of a run, and what of it has no room is dropped one by one
            last = min(last, pos + stride * (WORK_PER_TURN // (WORK_PER_GROUP * len(route.groups))))
        if end > last:
            return end, 1
        prefix = data[pos:top]
        while end <= last and data.startswith(prefix, end):
            end += stride
        return end, (end - pos) // stride

    def _end_run(self, run: _Run, data: bytes, end: int) -> None:
        """Packets that were found to go together go on their way."""
        route, conn, now = run.route, run.conn, run.now
        assert route is not None
        self._work.did(run.kinds * WORK_PER_KIND + run.messages // SAME_PER_WORK)
        run.route = None
        priorities = self._priorities
        level = taxon = route.level
        if level < 0:
            level, taxon = conn.level, priorities.default_level
        level = priorities.judge(conn, run.topic, level, run.messages, now)
        self._account.arrived(run.messages, level)
        if route.conditions is not None:
            self._work.did(run.messages * route.conditions.effort)
        elif not route.has_receivers and not self._arrivals.is_watched:
            return
        packets, origin = data[run.start : end], run.session.origin
        heat = priorities.heat(route, run.messages, now)
        if run.kinds > 1:
            bundle = Bundle(packets, run.messages, run.largest, conn.version, origin, level, now, heat)
            if self._pending:
                # an earlier message of one of the topics may be among those that wait
                self._pending += [(burst, route) for burst in bundle.bursts()]
            else:
                self._delivery.deliver_plainly(bundle, route, now)
        else:
            version = conn.version
            burst = Burst(packets, run.messages, run.head, run.topic, version, origin, level, now, heat, taxon)
            self._pass(burst, route, now)

    def _pass(self, burst: Burst, route: Route, now: float) -> None:
        """Give messages to those who watch, and to their receivers, now or when the chunk has been parsed."""
        if self._arrivals.is_watched:
            self._arrivals.burst(burst)
        is_late = route.is_conditional or self._pending or self._priorities.is_ruled
        if is_late and burst.level < URGENT:
            self._pending.append((burst, route))
        elif route.has_receivers:
            self._delivery.deliver(burst, route, now)

    def _dispatch(self, now: float) -> None:
        """Deliver what has waited: the more urgent first.

        A topic has one level here, so the order inside a flow is kept.
        """
        pending, self._pending = self._pending, []
        if self._priorities.is_ruled:
            pending.sort(key=_urgency)
        bursts = self._content.parts_of_all(pending) if self._routes.conditional else pending
        for burst, route in bursts:
            self._delivery.deliver(burst, route, now)

    def _take_assured(self, conn: Connection, session: Session, data: bytes, pos: int, now: float) -> int:
        """Handle a QoS 1 message without retain and properties; where the next packet begins, ``pos`` if not here."""
        head = publish_head(data, pos, len(data))
        if head is None or not self._allows_qos_1:
            return pos
        start, top, end = head
        priorities = self._priorities
        topic = data[start:top]
        is_v5 = conn.version == 5
        payload = top + 3 if is_v5 else top + 2
        if (
            end > len(data)
            or end - pos > min(conn.allowance.packet_bytes, priorities.classes.least_bound)
            or payload > end
            or (is_v5 and data[top + 2])
            or (conn.is_guarded and topic not in conn.publishable)
        ):
            return pos
        packet_id = data[top] << 8 | data[top + 1]
        routes = self._routes
        route = routes.known.get(topic) or routes.learn(data, start, top, conn.allowance.topic_levels)
        if route is None or not packet_id or route.is_heavy or route.is_for_many:
            return pos
        level = taxon = route.level
        if level < 0:
            level, taxon = conn.level, priorities.default_level
        level = priorities.judge(conn, topic, level, 1, now)
        heat = priorities.heat(route, 1, now)
        body = data[payload:end]
        message = Message(topic, body, 1, False, b"", None, session.origin, level, now, heat, taxon)
        # what goes out again stands here already: only the packet id will differ
        if is_v5:
            message.parts5 = (data[pos + 1 : top], body)
        else:
            message.parts4 = (data[pos + 1 : top], body)
        if self._pending and (route.is_conditional or not priorities.is_ruled):
            self._dispatch(now)  # what came first is asked about first
        self._publishing.accept(conn, message, route, packet_id, now)
        self._account.arrived(1, level)
        self._work.did(WORK_PER_ASSURED)
        return end

    def _take_puback(self, conn: Connection, session: Session, data: bytes, pos: int) -> int:
        """Handle PUBACKs without a reason; where the first packet begins that is not one for this way."""
        size = min(len(data), pos + 4 * MOST_PUBACKS)
        before = pos
        while data.startswith(b"\x40\x02", pos) and pos + 4 <= size:
            if not self._acknowledging.acknowledge(session, conn, data[pos + 2] << 8 | data[pos + 3]):
                break
            pos += 4
        acknowledged = (pos - before) >> 2
        self._account.packets_in += acknowledged
        self._work.did(acknowledged * WORK_PER_PUBACK)
        return pos

    # -- the general way

    def _take_packet(self, conn: Connection, data: bytes, pos: int, now: float) -> int:
        """Decode a packet and hand it to its handler; where the next one begins, ``pos`` if it is not complete."""
        extra = 1 if conn.has_header else 0
        found = measure(data, pos, conn.allowance.packet_bytes, conn.version)
        if found is None or found[1] + extra > len(data):
            return pos
        start, end = found
        first = data[pos]
        slow = _slow_bytes(first, data, start + extra, end + extra, conn.version)
        if first in _FILTER_PACKETS and end - start > MAX_FILTER_BYTES:
            text = f"a SUBSCRIBE or UNSUBSCRIBE of {end - start} bytes; {MAX_FILTER_BYTES} are allowed"
            raise Violation(text, "4.13", Reason.QUOTA_EXCEEDED)
        if slow > SLOW_BYTES and not self._work.is_going_on:
            # to decode it takes milliseconds: one in a turn, not one of each connection
            self._holds.postpone(conn)
            return pos
        effort = WORK_PER_PACKET + (end - start) // BYTES_PER_WORK + slow
        packet = decode(first, data[start + extra : end + extra], conn.version)
        self._work.did(effort)
        if self._pending:
            # a message of the same flow may be among them, or this packet changes who their receivers are
            self._dispatch(now)
        if isinstance(packet, Publish):
            # with the extra byte, which gives the level of this message and no more: a node that sends both urgent and
            # other messages would otherwise lose its place with each of the others
            self._publishing.on_publish(conn, packet, now, level_of(data[start]) if extra else None)
        else:
            if extra and isinstance(packet, Subscribe):
                self._connecting.claim_node_level(conn, level_of(data[start]), now)
            self._handlers.get(packet.__class__, _not_for_servers)(conn, packet, now)
            self._account.packets_in += 1
            if conn.unfinished is not None:
                self._go_on(conn, now)
                return end + extra
        if conn.verdicts:
            conn.verdicts.clear()
        return end + extra

    def _go_on(self, conn: Connection, now: float) -> bool:
        """Handle the next portion of a packet; whether it was the last.  The connection is held while it was not."""
        unfinished = conn.unfinished
        assert unfinished is not None
        try:
            unfinished.send(now)
        except StopIteration:
            conn.unfinished, conn.unfinished_bytes = None, 0
        except Exception:
            conn.unfinished, conn.unfinished_bytes = None, 0
            raise
        else:
            if not _is_held(conn):
                self._holds.postpone(conn)
            return False
        if conn.verdicts:
            conn.verdicts.clear()
        return True


def _is_held(conn: Connection) -> bool:
    """Whether packets wait; a call, because what one packet causes changes it behind the back of a type checker."""
    return conn.hold is not None


def _needed(conn: Connection, data: bytes, pos: int) -> int:
    """How many bytes the packet at ``pos`` takes, as far as that is known."""
    found = measure(data, pos, conn.allowance.packet_bytes, conn.version)
    # a CONNECT without the extra byte must be recognised, too
    extra = conn.has_header and conn.state is CONNECTED
    return (0 if found is None else found[1] - pos) + extra


def _slow_bytes(first: int, data: bytes, start: int, end: int, version: int) -> int:
    """How many bytes of a packet are read one by one: filters and properties, but no payload."""
    if first >> 4 != PacketType.PUBLISH:
        return end - start
    if version != 5 or start + 2 > end:
        return 0
    pos = start + 2 + (data[start] << 8 | data[start + 1]) + (2 if first & 0x06 else 0)
    try:
        return decode_varint(data, pos, end)[0]
    except ProtocolError:
        return 0  # it is refused when it is decoded


def _urgency(dispatched: tuple[Burst, Route]) -> int:
    return -dispatched[0].level


def _on_connect(conn: Connection, packet: Connect, now: float) -> None:  # noqa: ARG001 - as handlers are called
    # [MQTT-3.1.0-2]
    raise Violation("a second CONNECT on one connection", "MQTT-3.1.0-2")


def _on_pingreq(conn: Connection, packet: Pingreq, now: float) -> None:  # noqa: ARG001 - as handlers are called
    # [MQTT-3.12.4-1]
    conn.say(_PINGRESP)


def _on_auth(conn: Connection, packet: Auth, now: float) -> None:  # noqa: ARG001 - as handlers are called
    # [MQTT-4.12.0-6], [MQTT-4.12.0-7]: only after a CONNECT with an authentication method, and those are refused
    raise Violation("AUTH without an authentication method in CONNECT", "MQTT-4.12.0-7")


def _not_for_servers(conn: Connection, packet: object, now: float) -> None:  # noqa: ARG001 - as handlers are called
    raise Violation(f"a client does not send {type(packet).__name__.upper()}", "2.1.2")
