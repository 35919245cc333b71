"""A message arrives: is it allowed, where does it go, what is answered."""

from __future__ import annotations

from tieline.conf.schema import Settings
from tieline.core.account import NO_LEVEL, Account, Drop
from tieline.core.client import Again, Connection, Portions, Session
from tieline.core.durable.arrivals import Arrivals
from tieline.core.durable.journal import Journal
from tieline.core.holdings import MOST_RIGHTS, TOPIC_BYTES, Holdings, Kind
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.objections import Objection, Objections, Shortage
from tieline.core.inbound.producers import Numbered, Producers, go_on, stop
from tieline.core.inbound.questions import Questions
from tieline.core.inbound.taken_over import TakenOver
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.retained import Retained
from tieline.core.ports import Refused
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.classes import UNKNOWN
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.core.routing.routes import RESERVED, Routes
from tieline.wire.encode import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Puback, Publish, Pubrec
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import check_name

#: What one connection remembers of the topics that it is allowed; a client that publishes to more is asked about again.
MAX_RIGHT_BYTES = 1_048_576


class Publishing:
    """Takes messages from clients: acts upon what speaks against them, and upon what does not."""

    def __init__(  # a message passes every room
        self,
        settings: Settings,
        objections: Objections,
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
        holdings: Holdings,
        journal: Journal,
        account: Account,
    ) -> None:
        self.settings = settings
        self._holdings = holdings
        self._objections = objections
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

    def on_publish(self, conn: Connection, packet: Publish, now: float, header_level: int | None = None) -> None:
        """Handle a PUBLISH that took the general way; ``header_level`` is what the extra header byte says."""
        session = conn.session
        assert session is not None
        violation = self._objections.to_packet(packet)
        if violation is not None:
            raise violation
        topic, key = self._resolve_topic(conn, packet)
        level = NO_LEVEL
        if packet.qos == 2 and packet.packet_id in session.inbound:
            # [MQTT-4.3.3-10]: a message we already have; only the answer is repeated
            self._account.refusals["packet_identifier_in_use"] += 1
            self._journal.acknowledge(conn, _answer(conn, 2, packet.packet_id, Reason.SUCCESS, ""))
        else:
            try:
                level = self._take(conn, session, packet, topic, key, now, header_level)
            except Objection as objection:
                self._account.drop(now, objection.why, session.client_id, key, level=objection.level)
                self._refuse(conn, packet, objection.refused)
        conn.foreseen = None
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
        """Accept a message that nothing speaks against; its level.  Raises Objection if something does."""
        objections, priorities = self._objections, self._priorities
        route = self._routes.known.get(key)
        if route is None:
            check_name(topic, conn.allowance.topic_levels)
            route = self._routes.find(topic, key)
        refused = self._may_publish(conn, topic, key, now)
        if refused is not None:
            raise Objection(Drop.DENIED, refused)
        foreseen = self._foresee(conn, route, key, packet, now)
        claimed = priorities.claimed(packet.properties, header_level)
        if claimed == UNKNOWN:
            self._account.unknown_levels += 1
            objection = objections.to_claim(claimed)
            if objection is not None:
                raise objection
        level = priorities.judge(conn, topic, priorities.of_message(claimed, route, conn.level), 1, now)
        objection = objections.to_size(len(key) + len(packet.payload) + len(packet.forward), level)
        if objection is not None:
            raise objection
        numbered = objections.number_of(packet, session.user, level)
        if isinstance(numbered, Objection):
            raise numbered
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
            heat=priorities.heat(route, 1, now),
            taxon=priorities.of_topic(route),
        )
        is_taken = self.accept(
            conn, message, route, packet.packet_id, now, dup=packet.dup, numbered=numbered, foreseen=foreseen
        )
        if numbered is not None and not is_taken:
            stop(conn, numbered)
        return level

    def _foresee(
        self, conn: Connection, route: Route, key: bytes, packet: Publish, now: float
    ) -> list[ActiveSubscription] | None:
        """Whose conditions a message meets, where that is much to ask; raises Again while it is not known yet."""
        conditions = route.conditions
        if conditions is None:
            if route.is_for_many and self._delivery.late.rest:
                # another message for very many is being queued, and this one comes after it
                self._holds.postpone(conn)
                raise Again
            return None
        conditions.weigh()
        if not conditions.is_heavy:
            return None
        foreseen, conn.foreseen = conn.foreseen, None
        if foreseen is not None:
            return foreseen
        foreseen = []
        portions = self._content.foresee(route, key, packet.payload, packet.forward, foreseen)
        next(portions)
        try:
            portions.send(now)
        except StopIteration:
            return foreseen
        conn.foreseen, conn.unfinished = foreseen, portions
        self._holds.postpone(conn)
        raise Again

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
        foreseen: list[ActiveSubscription] | None = None,
    ) -> bool:
        """Take responsibility for a valid message: keep it if retained, queue it for its receivers, acknowledge it.

        False if it was refused for want of room.
        """
        qos = message.qos
        is_conditional = route.is_conditional
        if is_conditional:
            route = self._content.route_of(message, route, foreseen)
        journal = self._journal
        noted = 0 if journal.is_volatile else journal.noted
        if qos:
            if qos == 2 or conn.unacknowledged:
                self._check_receive_maximum(conn)
            shortage = self._objections.to_taking(message, route, conn.version)
            if shortage is not None:
                self._meet_shortage(conn, message, packet_id, shortage, now)
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
                    is_wanted = self._taken_over.take(message, route, is_conditional=is_conditional, foreseen=foreseen)
                    reason = self._reason(conn, is_wanted=is_wanted, is_conditional=is_conditional)
                    journal.acknowledge(conn, _answer(conn, 2, packet_id, reason, ""))
                    return True
        if self._arrivals.is_watched:
            self._arrivals.message(message, packet_id, dup=dup)
        if message.retain:
            self._retained.keep(message, now)
        delivery = self._delivery
        is_late = False
        if not route.has_receivers:
            receivers = 0
        elif (
            route.is_for_many
            and not delivery.late.rest
            # a number is known to be taken as soon as it is permanent, and then all must have the message
            and (numbered is None or journal.is_volatile)
        ):
            receivers = delivery.late.put_off(message, route, now)
            is_late = delivery.late.is_under_way(message)
        else:
            receivers = delivery.deliver(message, route, now)
        if qos:
            reason = self._reason(conn, is_wanted=receivers > 0, is_conditional=is_conditional)
            answer = _answer(conn, qos, packet_id, reason, "")
            if is_late:
                conn.unfinished = self._answer_late(conn, message, answer)
                next(conn.unfinished)
                self._holds.postpone(conn)
            elif journal.is_volatile or (qos == 1 and not conn.unacknowledged and journal.noted == noted):
                # nothing of it has to survive, and no earlier answer waits ([MQTT-4.6.0-2])
                conn.say(answer)
            else:
                # [MQTT-3.3.4-1]: PUBACK for QoS 1, PUBREC for QoS 2, which is counted in ``inbound`` until its release
                journal.acknowledge(conn, answer, counts=qos == 1)
        return True

    def _answer_late(self, conn: Connection, message: Message, answer: bytes) -> Portions:
        """Acknowledge a message when it is in all queues; nothing behind it is handled before."""
        yield
        while self._delivery.late.is_under_way(message):
            yield
        self._journal.acknowledge(conn, answer, counts=message.qos == 1)

    def _hold(self, session: Session, packet_id: int) -> None:
        """A QoS 2 packet id of theirs is taken until they release it."""
        session.hold_id(packet_id)
        if session.is_kept:
            self._journal.taken(session, packet_id)

    # -- numbered messages

    def _is_due(  # as above
        self, conn: Connection, packet: Publish, numbered: Numbered, key: bytes, level: int, now: float
    ) -> bool:
        """Whether a numbered message is to be accepted now; if it was accepted before, it is answered."""
        session = conn.session
        assert session is not None
        if self._objections.is_repeated(numbered):
            self._account.drop(now, Drop.REPEATED, session.client_id, key, level=level)
            if packet.qos == 2:
                self._check_receive_maximum(conn)
                self._hold(session, packet.packet_id)
            # when what was accepted before is permanent, and not earlier
            self._journal.acknowledge(conn, _answer(conn, packet.qos, packet.packet_id, Reason.SUCCESS, ""))
            return False
        objection = self._objections.to_turn(conn, numbered, level)
        if objection is not None:
            raise objection
        go_on(conn, numbered)
        return True

    # -- what a connection remembers, and may not exceed

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
            self._set_alias(conn, alias, key)
            return packet.topic, key
        known = conn.alias_in.get(alias)
        if known is None:
            raise Violation(f"topic alias {alias} was never set", "3.3.2.3.4", Reason.PROTOCOL_ERROR)
        return known.decode(), known

    @staticmethod
    def _set_alias(conn: Connection, alias: int, key: bytes) -> None:
        old = conn.alias_in.get(alias)
        if old == key:
            return
        more = len(key) - len(old) if old is not None else len(key) + TOPIC_BYTES
        text = conn.owner.refusal(more)
        if text is not None and more > 0:
            raise Violation(text, "4.13", Reason.QUOTA_EXCEEDED)
        conn.alias_in[alias] = key
        conn.alias_bytes += more
        conn.owner.take(Kind.CONNECTIONS, more)

    def _may_publish(self, conn: Connection, topic: str, key: bytes, now: float) -> Refused | None:
        """Why this client may not publish to a topic; None when it may."""
        if key in conn.publishable or not (conn.is_guarded or topic.startswith(RESERVED)):
            return None
        # a remembered topic may be deeper than this client's may be
        check_name(topic, conn.allowance.topic_levels)
        verdict = self._questions.ask(conn, "publish", topic, now)
        if isinstance(verdict, Refused):
            return verdict
        self._remember(conn, key)
        return None

    def _remember(self, conn: Connection, key: bytes) -> None:
        """A topic is known to be allowed: it takes the short way from now on, as long as there is room to know it."""
        size = len(key) + TOPIC_BYTES
        if conn.right_bytes + size > MAX_RIGHT_BYTES or self._holdings.kept[Kind.RIGHTS] + size > MOST_RIGHTS:
            self._questions.forget_rights(conn)
        if size <= MAX_RIGHT_BYTES and self._holdings.kept[Kind.RIGHTS] + size <= MOST_RIGHTS:
            conn.publishable.add(key)
            conn.right_bytes += size
            conn.owner.take(Kind.RIGHTS, size)

    def _check_receive_maximum(self, conn: Connection) -> None:
        most = self.settings.limits.receive_maximum
        if conn.version == 5 and conn.session and len(conn.session.inbound) + conn.unacknowledged >= most:
            # [MQTT-3.3.4-7]
            text = f"more than {most} unacknowledged messages"
            raise Violation(text, "MQTT-3.3.4-7", Reason.RECEIVE_MAXIMUM_EXCEEDED)

    # -- how a publisher learns of it

    def _reason(self, conn: Connection, *, is_wanted: bool, is_conditional: bool) -> Reason:
        """What an acknowledgement says of the receivers.

        Whether conditions hold is kept from the publisher: with one message after the other it could find out what
        numbers others wait for.
        """
        if is_wanted or conn.version == 4:
            return Reason.SUCCESS
        told = self.settings.mqtt.tell_unwanted
        is_told = told == "content" or (told == "topic" and not is_conditional)
        return Reason.NO_MATCHING_SUBSCRIBERS if is_told else Reason.SUCCESS

    def _refuse(self, conn: Connection, packet: Publish, refused: Refused) -> None:
        """Tell the publisher no, where its protocol can say so; 3.1.1 gets the usual answer ([MQTT311-3.3.5-2])."""
        if packet.qos:
            reason = refused.reason if conn.version == 5 else Reason.SUCCESS
            if packet.qos == 2 and conn.version == 4:
                assert conn.session is not None
                conn.session.hold_id(packet.packet_id)
            self._journal.acknowledge(conn, _answer(conn, packet.qos, packet.packet_id, reason, refused.rule))

    def _meet_shortage(  # as above
        self, conn: Connection, message: Message, packet_id: int, shortage: Shortage, now: float
    ) -> None:
        """Somebody has no room: the publisher is told, or waits for it."""
        text, full, is_told = shortage
        if full is None:
            self._meet_trouble(conn, message, packet_id, shortage, now)
            return
        if not is_told:
            self._holds.wait_for_room(conn, full, now)
            raise Again
        full.turn_away(message, Drop.REFUSED, now)
        if not self._questions.access.is_open:
            # where there are rules, who else is there is not every publisher's business
            text = "the queue of a receiver is full"
        self._journal.acknowledge(conn, _answer(conn, message.qos, packet_id, Reason.QUOTA_EXCEEDED, text))

    def _meet_trouble(  # as above
        self, conn: Connection, message: Message, packet_id: int, shortage: Shortage, now: float
    ) -> None:
        """The store has no room: nothing is acknowledged that is not permanent.  As with a full queue."""
        if not shortage.is_told:
            self._holds.wait_for_store(conn, now)
            raise Again
        self._account.drop(now, Drop.REFUSED, message.origin.client, message.topic, level=message.level)
        answer = _answer(conn, message.qos, packet_id, Reason.QUOTA_EXCEEDED, shortage.text)
        if conn.unacknowledged:
            # [MQTT-4.6.0-2] not before the answers to earlier messages, which wait for the store
            self._journal.acknowledge(conn, answer)
        else:
            conn.say(answer)


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
