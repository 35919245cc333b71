"""From bytes to handlers: parse everything in a chunk, the common packets without building an object.

Theory of operation
-------------------
:func:`ingest` walks over the packets of one chunk.  Three of them are recognised by their first byte and handled from
the bytes themselves: PUBLISH with QoS 0 and with QoS 1 (no retain, no properties, a topic whose route is remembered)
and PUBACK.  Consecutive QoS 0 packets that agree in every byte before the payload, and therefore in topic and length,
become one :class:`~tieline.core.message.Burst`: recognising the next one is a single ``startswith``.  Everything else
is decoded and handed to the handler of its type; the outcome does not depend on which path a packet took.

A chunk that ends inside a packet leaves its beginning in ``conn.partial``; nothing is parsed again until the whole
packet is there, so a sender of single bytes costs no more than the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.connection import CLOSING, CONNECTED, OPENED, Connection, Hold
from tieline.core.errors import Again
from tieline.core.inbound import acknowledge as flow
from tieline.core.inbound import connect, foreign, publish, subscribe
from tieline.core.message import Burst, Message
from tieline.core.outbound.deliver import deliver
from tieline.core.routing.classes import ORDINARY
from tieline.core.routing.content_match import sift_all
from tieline.sched.levels import URGENT
from tieline.wire.codec import decode
from tieline.wire.errors import Violation
from tieline.wire.frames import measure
from tieline.wire.header import level_of
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

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tieline.core.broker import Broker
    from tieline.core.routing.routes import Route

_PUBLISH_QOS_0 = 0x30
#: Clears the one bit in which the first bytes of PUBLISH with QoS 0 and with QoS 1 differ.
_NOT_QOS_1 = 0xFD
_PUBACK = 0x40
#: SUBSCRIBE and UNSUBSCRIBE.
_FILTER_PACKETS = frozenset((0x82, 0xA2))
_PINGRESP = b"\xd0\x00"

#: Answers that a client leaves unread before it is no longer read itself.
MAX_UNREAD = 65_536
#: Work that one connection may cause before the others get their turn: tree nodes visited, receivers, filters.
WORK_PER_TURN = 20_000
#: SUBSCRIBE and UNSUBSCRIBE above this are refused: each filter costs, and one packet must not stop the broker.
#: One filter of the greatest legal length fits, with properties.
MAX_FILTER_BYTES = 65_535 + 1_024


def ingest(broker: Broker, conn: Connection, data: bytes, now: float) -> None:
    """Handle every complete packet in a chunk; raises ProtocolError for the first one that is wrong."""
    if conn.hold is not None:
        conn.partial += data
        return
    if conn.partial:
        if len(conn.partial) + len(data) < conn.need:
            conn.partial += data
            return
        data = b"".join((conn.partial, data))
        conn.partial = bytearray()
    pos = 0
    if conn.state is OPENED:
        if foreign.is_undecided(data):
            conn.partial = bytearray(data)
            return
        pos = _introduce(broker, conn, data, now)
    if conn.state is CONNECTED and conn.hold is None:
        converse = _converse_with_header if conn.has_header else _converse
        pos = converse(broker, conn, data, pos, now)
        if conn.control_bytes > MAX_UNREAD and conn.hold is None:
            broker.suspend(conn, Hold.NOT_READING, now)
    if pos:
        # a whole packet, not just bytes: [MQTT-3.1.2-22]
        conn.last_in = now
    if pos < len(data) and conn.state is not CLOSING:
        conn.partial = bytearray(memoryview(data)[pos:])
        if conn.hold is None:
            # a CONNECT without the extra byte must be recognised, too
            extra = conn.has_header and conn.state is CONNECTED
            conn.need = _needed(data, pos, conn.allowance.packet_bytes, conn.version) + extra


def _needed(data: bytes, pos: int, limit: int, version: int) -> int:
    """How many bytes the packet at ``pos`` takes, as far as that is known."""
    found = measure(data, pos, limit, version)
    return 0 if found is None else found[1] - pos


def _introduce(broker: Broker, conn: Connection, data: bytes, now: float) -> int:
    """Handle the first packet; where the next one begins."""
    if data[0] != 0x10:  # CONNECT
        sentence = foreign.sentence(data)
        if sentence:
            conn.say(sentence)
            broker.shut(conn, "foreign_protocol", now, text=foreign.describe(data))
            return 0
        # [MQTT-3.1.0-1] the first packet is CONNECT
        raise Violation("the first packet of a connection is not CONNECT", "MQTT-3.1.0-1")
    limit = conn.allowance.packet_bytes
    found = measure(data, 0, limit, 0)
    if found is None:
        return 0
    start, end = found
    if conn.has_header and connect.peek_version(data, start, min(end, len(data))):
        # a stock client, which sends no more than its CONNECT: refused in the words it knows, without the byte
        conn.version = connect.peek_version(data, start, end)
        conn.has_header = False
        text = "this listener expects the priority byte after the remaining length of every packet"
        connect.refuse(broker, conn, Reason.UNSUPPORTED_PROTOCOL_VERSION, text, now)
        return 0
    if end + conn.has_header > len(data):
        return 0
    if conn.has_header:
        conn.level = level_of(data[start])
        start, end = start + 1, end + 1
    conn.version = connect.peek_version(data, start, end)
    measure(data, 0, limit, conn.version)  # now that it is known, by the version's own rule
    packet = decode(data[0], data[start:end], 0)
    broker.account.packets_in += 1
    try:
        connect.on_connect(broker, conn, packet, now)  # type: ignore[arg-type]  # 0x10 decodes to nothing else
    except Again:
        return 0
    conn.verdicts.clear()
    return end


def _converse(broker: Broker, conn: Connection, data: bytes, pos: int, now: float) -> int:
    """Handle the packets of an established connection; where the first unhandled one begins."""
    session = conn.session
    assert session is not None
    size = len(data)
    version = conn.version
    is_v5 = version == 5
    known = broker.routes.known
    limit = max_packet = conn.allowance.packet_bytes
    # a message may have to be refused, for its topic or for its size: then the general way looks at it
    is_guarded = conn.is_guarded
    if broker.classes.has_bounds:
        limit = min(limit, broker.classes.least_bound)
    has_levels = broker.has_levels
    has_rates = broker.claims.has_rates
    witness = broker.witness
    is_plain_heat = not broker.heat_deliveries
    default_level = broker.default_level
    #: Messages below urgent that are dispatched when the chunk has been parsed: the more urgent ones first, and those
    #: that have to be looked into together, with whatever comes behind them.
    pending: list[tuple[Burst, Route]] = []
    packets = publishes = 0
    enough = broker.routes.work + WORK_PER_TURN
    try:
        while pos < size:
            if broker.routes.work > enough:
                broker.postpone(conn, now)
                break
            first = data[pos]
            if first & _NOT_QOS_1 == _PUBLISH_QOS_0 and pos + 4 <= size:
                # -- the fixed header, one or two bytes of length; rarer shapes take the general path below
                body = pos + 2
                length = data[pos + 1]
                if length > 127:
                    more = data[body]
                    length = (length & 127) | more << 7 if 0 < more < 128 else 0
                    body += 1
                end = body + length
                if 4 < length <= limit - 3:
                    if end > size:
                        break
                    top = body + 2 + (data[body] << 8 | data[body + 1])
                    topic = data[body + 2 : top]
                    route = known.get(topic)
                    if route is not None and not (is_guarded and topic not in conn.publishable):
                        if first == _PUBLISH_QOS_0:
                            if is_v5:
                                top += 1
                            # in MQTT 5 a zero must follow the topic: no properties
                            if top <= end and (not is_v5 or not data[top - 1]):
                                level = taxon = route.level
                                if level < 0:
                                    level, taxon = conn.level, default_level
                                stride = end - pos
                                prefix = data[pos:top]
                                messages = 1
                                # where a rate is limited, each message is judged on its own: a run that is too long
                                # must not lose its level while a later message of its flow keeps it
                                last = size - stride if level <= ORDINARY or not has_rates else 0
                                sifting = route.sifting
                                if sifting is not None:
                                    # one run must not cost more than a turn
                                    last = min(last, pos + stride * (WORK_PER_TURN // sifting.effort))
                                while end <= last and data.startswith(prefix, end):
                                    end += stride
                                    messages += 1
                                publishes += messages
                                if has_levels:
                                    level = _judge(broker, conn, topic, level, messages, now)
                                if sifting is not None:
                                    broker.routes.work += messages * sifting.effort
                                if route.has_receivers or witness is not None:
                                    burst = Burst(
                                        data[pos:end],
                                        messages,
                                        top - pos,
                                        topic,
                                        version,
                                        session.client_id,
                                        level,
                                        now,
                                        route.heat if is_plain_heat else broker.heat(route, messages, now),
                                        taxon,
                                    )
                                    if witness is not None:
                                        witness.burst(session, burst)
                                    if (has_levels or route.is_sifted or pending) and level < URGENT:
                                        pending.append((burst, route))
                                    elif route.has_receivers:
                                        deliver(broker, burst, route, now)
                                pos = end
                                continue
                        elif broker.allows_qos_1:
                            payload = top + 3 if is_v5 else top + 2
                            packet_id = data[top] << 8 | data[top + 1] if payload <= end else 0
                            if packet_id and (not is_v5 or not data[top + 2]):
                                level = taxon = route.level
                                if level < 0:
                                    level, taxon = conn.level, default_level
                                if has_levels:
                                    level = _judge(broker, conn, topic, level, 1, now)
                                message = Message(
                                    topic,
                                    data[payload:end],
                                    1,
                                    False,
                                    b"",
                                    None,
                                    session.client_id,
                                    level,
                                    now,
                                    route.heat if is_plain_heat else broker.heat(route, 1, now),
                                    taxon,
                                )
                                # what goes out again stands here already: only the packet id will differ
                                if is_v5:
                                    message.parts5 = (data[pos + 1 : top], data[top + 2 : end])
                                else:
                                    message.parts4 = (data[pos + 1 : top], message.payload)
                                if pending and (route.is_sifted or not has_levels):
                                    _dispatch(broker, pending, now)  # what came first is asked about first
                                try:
                                    publish.accept(broker, conn, message, route, packet_id, now)
                                except Again:
                                    # parsed again later, and counts once
                                    broker.account.received_by_level[level] -= has_levels
                                    break
                                publishes += 1
                                pos = end
                                continue
            elif first == _PUBACK and data.startswith(b"\x40\x02", pos) and pos + 4 <= size:
                packet_id = data[pos + 2] << 8 | data[pos + 3]
                flight = session.inflight.get(packet_id)
                if flight is not None and flight[2] == 1:
                    del session.inflight[packet_id]
                    flow.landed(broker, session, flight[0])
                    if conn.quota < conn.window:
                        conn.quota += 1
                    if not broker.journal.is_volatile:
                        flow.settled(broker, session, packet_id)
                    packets += 1
                    pos += 4
                    continue
            found = measure(data, pos, max_packet, version)
            if found is None or found[1] > size:
                break
            start, end = found
            _check_filters(first, end - start)
            packet = decode(first, data[start:end], version)
            if pending:
                # a message of the same flow may be among them, or this packet changes who their receivers are
                _dispatch(broker, pending, now)
            try:
                _HANDLERS[packet.__class__](broker, conn, packet, now)
            except Again:
                break
            if conn.verdicts:
                conn.verdicts.clear()
            packets += 1
            pos = end
            if conn.state is not CONNECTED or conn.hold is not None:
                break
    finally:
        if pending:
            _dispatch(broker, pending, now)
        # also when a later packet of the chunk is refused: the numbers do not depend on how the bytes were cut
        broker.account.packets_in += packets + publishes
        broker.account.publishes_in += publishes
        if not has_levels:
            broker.account.received_by_level[conn.level] += publishes
    if (conn.control or session.queue.messages or conn.resend or session.blocked_publishers) and not conn.is_dirty:
        broker.mark(conn)
    return pos


def _check_filters(first: int, size: int) -> None:
    if first in _FILTER_PACKETS and size > MAX_FILTER_BYTES:
        text = f"a SUBSCRIBE or UNSUBSCRIBE of {size} bytes; {MAX_FILTER_BYTES} are allowed"
        raise Violation(text, "4.13", Reason.QUOTA_EXCEEDED)


def _converse_with_header(broker: Broker, conn: Connection, data: bytes, pos: int, now: float) -> int:
    """The same where every packet carries the extra byte: no shortcuts."""
    size = len(data)
    enough = broker.routes.work + WORK_PER_TURN
    while pos < size and conn.state is CONNECTED and conn.hold is None:
        if broker.routes.work > enough:
            broker.postpone(conn, now)
            break
        found = measure(data, pos, conn.allowance.packet_bytes, conn.version)
        if found is None or found[1] + 1 > size:
            break
        start, end = found
        _check_filters(data[pos], end - start)
        packet = decode(data[pos], data[start + 1 : end + 1], conn.version)
        try:
            if isinstance(packet, Publish):
                publish.on_publish(broker, conn, packet, now, level_of(data[start]))
            else:
                _HANDLERS[packet.__class__](broker, conn, packet, now)
        except Again:
            break
        if conn.verdicts:
            conn.verdicts.clear()
        broker.account.packets_in += 1
        pos = end + 1
    session = conn.session
    if session is not None and (conn.control or session.queue.messages or conn.resend or session.blocked_publishers):
        broker.mark(conn)
    return pos


def _judge(broker: Broker, conn: Connection, topic: bytes, level: int, messages: int, now: float) -> int:
    """The level that messages really get, counted."""
    if not broker.claims.is_open:
        level = broker.claims.judge(conn, topic.decode(), level, messages, now)
    broker.account.received_by_level[level] += messages
    if level == URGENT:
        conn.urgent_at = now
    return level


def _dispatch(broker: Broker, pending: list[tuple[Burst, Route]], now: float) -> None:
    """The more urgent first; a topic has one level here, so the order inside a flow is kept."""
    if broker.has_levels:
        pending.sort(key=_urgency)
    bursts = sift_all(broker, pending) if broker.routes.asking else pending
    for burst, route in bursts:
        deliver(broker, burst, route, now)
    pending.clear()


def _urgency(dispatched: tuple[Burst, Route]) -> int:
    return -dispatched[0].level


def _on_connect(broker: Broker, conn: Connection, packet: Connect, now: float) -> None:  # noqa: ARG001
    # [MQTT-3.1.0-2]
    raise Violation("a second CONNECT on one connection", "MQTT-3.1.0-2")


def _on_pingreq(broker: Broker, conn: Connection, packet: Pingreq, now: float) -> None:  # noqa: ARG001
    # [MQTT-3.12.4-1]
    conn.say(_PINGRESP)


def _on_auth(broker: Broker, conn: Connection, packet: Auth, now: float) -> None:  # noqa: ARG001
    # [MQTT-4.12.0-6], [MQTT-4.12.0-7]: only after a CONNECT with an authentication method, and those are refused
    raise Violation("AUTH without an authentication method in CONNECT", "MQTT-4.12.0-7")


def _not_for_servers(broker: Broker, conn: Connection, packet: object, now: float) -> None:  # noqa: ARG001
    raise Violation(f"a client does not send {type(packet).__name__.upper()}", "2.1.2")


class _Handlers(dict[type, "Callable[[Broker, Connection, Any, float], None]"]):
    """What is legal on an established connection; anything else only a server sends."""

    def __missing__(self, packet: type) -> Callable[[Broker, Connection, Any, float], None]:
        return _not_for_servers


_HANDLERS = _Handlers(
    {
        Connect: _on_connect,
        Publish: publish.on_publish,
        Puback: flow.on_puback,
        Pubrec: flow.on_pubrec,
        Pubrel: flow.on_pubrel,
        Pubcomp: flow.on_pubcomp,
        Subscribe: subscribe.on_subscribe,
        Unsubscribe: subscribe.on_unsubscribe,
        Pingreq: _on_pingreq,
        Disconnect: connect.on_disconnect,
        Auth: _on_auth,
    }
)
