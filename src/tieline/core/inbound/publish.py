"""A message arrives: is it allowed, where does it go, what is answered."""

from __future__ import annotations

from tieline.conf.schema import Settings
from tieline.core.account import NO_LEVEL, Account, Drop
from tieline.core.client import Again, Connection, Session
from tieline.core.durable.arrivals import Arrivals
from tieline.core.durable.journal import Journal
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.producers import RULE, MalformedNumber, Numbered, Producers, is_out_of_turn, read_number, stop
from tieline.core.inbound.questions import Questions
from tieline.core.inbound.taken_over import TakenOver
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.retained import Retained
from tieline.core.ports import Refused
from tieline.core.receiver import Receiver
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.core.routing.routes import Routes
from tieline.wire.codec import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Puback, Publish, Pubrec
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_name

#: Topics that only the broker publishes (4.7.2).
RESERVED = "$SYS/"
#: Topics remembered per connection as allowed; a client that publishes to more is asked about again.
MAX_PUBLISHABLE = 10_000


class _Refusal(Exception):
    """A message is refused, and its publisher is told; nothing has happened."""

    def __init__(self, why: Drop, refused: Refused, level: int = NO_LEVEL) -> None:
        super().__init__(refused.rule)
        self.why = why
        self.refused = refused
        self.level = level


class Publishing:
    """Takes messages from clients."""

    def __init__(  # a message passes every room
        self,
        settings: Settings,
        routes: Routes,
        content: ContentMatch,
        priorities: Priorities,
        questions: Questions,
        producers: Producers,
        taken_over: TakenOver,
        arrivals: Arrivals,
        retained: Retained,
        delivery: Delivery,
        holds: Holds,
        journal: Journal,
        account: Account,
    ) -> None:
        self.settings = settings
        self._routes = routes
        self._content = content
        self._priorities = priorities
        self._questions = questions
        self._producers = producers
        self._taken_over = taken_over
        self._arrivals = arrivals
        self._retained = retained
        self._delivery = delivery
        self._holds = holds
        self._journal = journal
        self._account = account
        self._refuses_when_full = settings.mqtt.full != "oldest"

    def on_publish(self, conn: Connection, packet: Publish, now: float, header_level: int | None = None) -> None:
        """Handle a PUBLISH that took the general way; ``header_level`` is what the extra header byte says."""
        session = conn.session
        assert session is not None
        self._check_abilities(packet)
        topic, key = self._resolve_topic(conn, packet)
        level = NO_LEVEL
        if packet.qos == 2 and packet.packet_id in session.inbound:
            # [MQTT-4.3.3-10]: a message we already have; only the answer is repeated
            self._account.refusals["packet_identifier_in_use"] += 1
            self._journal.acknowledge(conn, _answer(conn, 2, packet.packet_id, Reason.SUCCESS, ""))
        else:
            try:
                level = self._take(conn, session, packet, topic, key, now, header_level)
            except _Refusal as refusal:
                self._account.drop(now, refusal.why, session.client_id, key, level=refusal.level)
                self._refuse(conn, packet, refusal.refused)
        # last: a packet that has to wait is parsed again, and counts once
        self._account.arrived(1, level)

    def _take(  # the packet, and what is known of it
        self,
        conn: Connection,
        session: Session,
        packet: Publish,
        topic: str,
        key: bytes,
        now: float,
        header_level: int | None,
    ) -> int:
        """Accept a message that nothing speaks against; its level.  Raises _Refusal if something does."""
        route = self._routes.known.get(key)
        if route is None:
            check_name(topic, self.settings.limits.topic_levels)
            route = self._routes.find(topic, key)
        refused = self._may_publish(conn, topic, key, now)
        if refused is not None:
            raise _Refusal(Drop.DENIED, refused)
        claimed = self._priorities.claimed(conn, route, packet.properties, header_level)
        if claimed is None:
            text = "the priority is no level"
            raise _Refusal(Drop.UNKNOWN_LEVEL, Refused(text, Reason.IMPLEMENTATION_SPECIFIC_ERROR))
        level = self._priorities.judge(conn, topic, claimed, 1, now)
        self._check_size(packet, key, level)
        numbered = self._read_number(session, packet, level)
        if numbered is not None and not self._is_due(conn, packet, numbered, key, level, now):
            return NO_LEVEL
        expiry = packet.properties.get("message_expiry_interval")
        message = Message(
            key,
            packet.payload,
            packet.qos,
            retain=packet.retain,
            properties=packet.forward,
            expires=None if expiry is None else now + expiry,
            origin=session.origin,
            level=level,
            at=now,
            heat=self._priorities.heat(route, 1, now),
            taxon=self._priorities.of_topic(route),
        )
        is_taken = self.accept(conn, message, route, packet.packet_id, now, dup=packet.dup, numbered=numbered)
        if numbered is not None and not is_taken:
            stop(conn, numbered)
        return level

    def accept(  # the hot path's own arguments
        self,
        conn: Connection,
        message: Message,
        route: Route,
        packet_id: int,
        now: float,
        *,
        dup: bool = False,
        numbered: Numbered | None = None,
    ) -> bool:
        """Take responsibility for a valid message: keep it if retained, queue it for its receivers, acknowledge it.

        False if it was refused for want of room.
        """
        qos = message.qos
        is_conditional = route.is_conditional
        if is_conditional:
            route = self._content.route_of(message, route)
        journal = self._journal
        noted = 0 if journal.is_volatile else journal.noted
        if qos:
            if not self._has_room(conn, message, route, packet_id, now):
                return False
            session = conn.session
            assert session is not None
            if numbered is not None:
                self._producers.accept(numbered, now)
            if qos == 2:
                self._hold(session, packet_id)
                if session.is_kept:
                    # it and its packet id become permanent, then it is routed
                    if self._arrivals.is_watched:
                        self._arrivals.message(message, packet_id, dup=dup)
                    is_wanted = self._taken_over.take(message, route, is_conditional=is_conditional)
                    journal.acknowledge(conn, _answer(conn, 2, packet_id, _reason(conn, is_wanted), ""))
                    return True
        if self._arrivals.is_watched:
            self._arrivals.message(message, packet_id, dup=dup)
        if message.retain:
            self._retained.keep(message, now)
        receivers = self._delivery.deliver(message, route, now) if route.has_receivers else 0
        if qos:
            answer = _answer(conn, qos, packet_id, _reason(conn, receivers > 0), "")
            if journal.is_volatile or (qos == 1 and not conn.unacknowledged and journal.noted == noted):
                # nothing of it has to survive, and no earlier answer waits ([MQTT-4.6.0-2])
                conn.say(answer)
            else:
                # [MQTT-3.3.4-1]: PUBACK for QoS 1, PUBREC for QoS 2, which is counted in ``inbound`` until its release
                journal.acknowledge(conn, answer, counts=qos == 1)
        return True

    def _has_room(self, conn: Connection, message: Message, route: Route, packet_id: int, now: float) -> bool:
        """Whether everybody can take a QoS 1 or 2 message; if not, its publisher is told or held."""
        if message.qos == 2 or conn.unacknowledged:
            self._check_receive_maximum(conn)
        if self._journal.trouble:
            self._meet_trouble(conn, message, packet_id, now)
            return False
        if self._refuses_when_full:
            full = self._delivery.find_full(message, route)
            if full is not None:
                self._meet_full_queue(conn, message, packet_id, full, now)
                return False
        return True

    def _hold(self, session: Session, packet_id: int) -> None:
        """A QoS 2 packet id of theirs is taken until they release it."""
        session.inbound.add(packet_id)
        if session.is_kept:
            self._journal.held(session, packet_id)

    # -- numbered messages

    def _read_number(self, session: Session, packet: Publish, level: int) -> Numbered | None:
        if not packet.properties or not packet.qos:
            return None
        try:
            return read_number(packet.properties, session.user)
        except MalformedNumber:
            refused = Refused(RULE, Reason.IMPLEMENTATION_SPECIFIC_ERROR)
            raise _Refusal(Drop.MALFORMED_ONCE, refused, level) from None

    def _is_due(  # as above
        self, conn: Connection, packet: Publish, numbered: Numbered, key: bytes, level: int, now: float
    ) -> bool:
        """Whether a numbered message is to be accepted now; if it was accepted before, it is answered."""
        session = conn.session
        assert session is not None
        if self._producers.has(numbered):
            self._account.drop(now, Drop.REPEATED, session.client_id, key, level=level)
            if packet.qos == 2:
                self._check_receive_maximum(conn)
                self._hold(session, packet.packet_id)
            # when what was accepted before is permanent, and not earlier
            self._journal.acknowledge(conn, _answer(conn, packet.qos, packet.packet_id, Reason.SUCCESS, ""))
            return False
        if is_out_of_turn(conn, numbered):
            text = "an earlier number of this producer was refused and comes first"
            raise _Refusal(Drop.OUT_OF_TURN, Refused(text, Reason.QUOTA_EXCEEDED), level)
        return True

    # -- what speaks against a message

    def _check_abilities(self, packet: Publish) -> None:
        """What a client must not send, and what the CONNACK said this server does not do."""
        if "subscription_identifier" in packet.properties:
            # [MQTT-3.3.4-6]
            raise Violation("a client's PUBLISH has a subscription identifier", "MQTT-3.3.4-6")
        if packet.qos > self.settings.mqtt.maximum_qos:
            # [MQTT-3.2.2-11]
            raise Violation(f"QoS {packet.qos} is not supported", "MQTT-3.2.2-11", Reason.QOS_NOT_SUPPORTED)
        if packet.retain and not self.settings.mqtt.retain_available:
            # [MQTT-3.2.2-14]
            raise Violation("retained messages are not supported", "MQTT-3.2.2-14", Reason.RETAIN_NOT_SUPPORTED)

    def _resolve_topic(self, conn: Connection, packet: Publish) -> tuple[str, bytes]:
        """The topic, from the packet or from its alias."""
        alias = packet.properties.get("topic_alias")
        if alias is None:
            return packet.topic, packet.topic.encode()
        if not 0 < alias <= self.settings.limits.topic_alias_maximum:
            # [MQTT-3.3.2-8], [MQTT-3.3.2-9]
            raise Violation(f"topic alias {alias} is out of range", "MQTT-3.3.2-9", Reason.TOPIC_ALIAS_INVALID)
        if packet.topic:
            key = packet.topic.encode()
            conn.alias_in[alias] = key
            return packet.topic, key
        known = conn.alias_in.get(alias)
        if known is None:
            raise Violation(f"topic alias {alias} was never set", "3.3.2.3.4", Reason.PROTOCOL_ERROR)
        return known.decode(), known

    def _may_publish(self, conn: Connection, topic: str, key: bytes, now: float) -> Refused | None:
        """Why this client may not publish to a topic; None when it may."""
        if topic.startswith(RESERVED):
            return Refused("$SYS belongs to the broker")
        if not conn.is_guarded or key in conn.publishable:
            return None
        # a remembered topic may be deeper than this client's may be
        check_name(topic, conn.allowance.topic_levels)
        verdict = self._questions.ask(conn, "publish", topic, now)
        if isinstance(verdict, Refused):
            return verdict
        if len(conn.publishable) >= MAX_PUBLISHABLE:
            conn.publishable.clear()
        conn.publishable.add(key)
        return None

    def _check_size(self, packet: Publish, key: bytes, level: int) -> None:
        classes = self._priorities.classes
        bound = classes.max_packet[level]
        if bound is not None and len(key) + len(packet.payload) + len(packet.forward) > bound:
            text = f"messages of class {classes.names[level]} have at most {bound} bytes"
            raise _Refusal(Drop.CLASS_TOO_LARGE, Refused(text, Reason.QUOTA_EXCEEDED), level)

    def _check_receive_maximum(self, conn: Connection) -> None:
        most = self.settings.limits.receive_maximum
        if conn.version == 5 and conn.session and len(conn.session.inbound) + conn.unacknowledged >= most:
            # [MQTT-3.3.4-7]
            text = f"more than {most} unacknowledged messages"
            raise Violation(text, "MQTT-3.3.4-7", Reason.RECEIVE_MAXIMUM_EXCEEDED)

    # -- how a publisher learns of it

    def _refuse(self, conn: Connection, packet: Publish, refused: Refused) -> None:
        """Tell the publisher no, where its protocol can say so; 3.1.1 gets the usual answer ([MQTT311-3.3.5-2])."""
        if packet.qos:
            reason = refused.reason if conn.version == 5 else Reason.SUCCESS
            if packet.qos == 2 and conn.version == 4:
                assert conn.session is not None
                conn.session.inbound.add(packet.packet_id)
            self._journal.acknowledge(conn, _answer(conn, packet.qos, packet.packet_id, reason, refused.rule))

    def _meet_full_queue(  # as above
        self, conn: Connection, message: Message, packet_id: int, full: Receiver, now: float
    ) -> None:
        """A receiver has no room: say so (MQTT 5), or wait for it (3.1.1 has no way to say so, or it is configured)."""
        if conn.version != 5 or self.settings.mqtt.full != "refuse":
            self._holds.wait_for_room(conn, full, now)
            raise Again
        full.turn_away(message, Drop.REFUSED, now)
        # where there are rules, who else is there is not every publisher's business
        is_open = self._questions.access.is_open
        text = f"the queue of {full.client_id} is full" if is_open else "the queue of a receiver is full"
        self._journal.acknowledge(conn, _answer(conn, message.qos, packet_id, Reason.QUOTA_EXCEEDED, text))

    def _meet_trouble(self, conn: Connection, message: Message, packet_id: int, now: float) -> None:
        """The store has no room: nothing is acknowledged that is not permanent.  As with a full queue."""
        if conn.version != 5 or self.settings.mqtt.full == "pause":
            self._holds.wait_for_store(conn, now)
            raise Again
        self._account.drop(now, Drop.REFUSED, message.origin.client, message.topic, level=message.level)
        answer = _answer(conn, message.qos, packet_id, Reason.QUOTA_EXCEEDED, self._journal.trouble)
        if conn.unacknowledged:
            # [MQTT-4.6.0-2] not before the answers to earlier messages, which wait for the store
            self._journal.acknowledge(conn, answer)
        else:
            conn.say(answer)


def _reason(conn: Connection, is_wanted: bool) -> Reason:
    return Reason.SUCCESS if is_wanted or conn.version == 4 else Reason.NO_MATCHING_SUBSCRIBERS


def _answer(conn: Connection, qos: int, packet_id: int, reason: Reason, text: str) -> bytes:
    """PUBACK or PUBREC, the short form where nothing has to be said."""
    if reason is Reason.SUCCESS or conn.version == 4:
        return (b"\x40\x02" if qos == 1 else b"\x50\x02") + packet_id.to_bytes(2, "big")
    properties: Properties = {}
    if text and conn.problem_information:
        properties["reason_string"] = text
    kind = Puback if qos == 1 else Pubrec
    data = encode(kind(packet_id=packet_id, reason=reason, properties=properties), 5)
    if len(data) > conn.max_packet:
        # [MQTT-3.4.2-2], [MQTT-3.5.2-2] no reason string if the packet became too large by it
        data = encode(kind(packet_id=packet_id, reason=reason), 5)
    return data
