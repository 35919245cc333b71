"""SUBSCRIBE and UNSUBSCRIBE: each filter is granted or refused on its own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import Final

from tieline.conf.schema import Settings
from tieline.core.account import Account, Event
from tieline.core.client import Again, Connection, Hold, Portions, Session
from tieline.core.durable.chronicle import Chronicle
from tieline.core.durable.journal import Journal
from tieline.core.holdings import Kind
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.questions import Questions
from tieline.core.inbound.subscription_request import (
    WHERE,
    RequestReader,
    SubscriptionRequest,
    asked_patience,
    check_spelling,
    lack_of_room,
    refusal_of,
)
from tieline.core.outbound.order import Order
from tieline.core.outbound.replay import Replays
from tieline.core.outbound.retained import Retained
from tieline.core.ports import Refused
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.route import ConditionalSubscription, subscription_bytes, weight_of
from tieline.core.routing.routes import Routes, shown
from tieline.core.work import Work
from tieline.match.change import ChangeMemory
from tieline.match.where import ExpressionError, split
from tieline.wire.encode import encode
from tieline.wire.errors import Violation
from tieline.wire.packets import Suback, Subscribe, Unsuback, Unsubscribe
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason
from tieline.wire.topics import SHARE

#: What one filter counts towards the work of a turn when it is read, each character of a condition that is parsed, and
#: one subscription that is added or removed.
WORK_PER_FILTER: Final = 30
#: What one filter of a packet takes while the packet is handled, beside its characters, about.
FILTER_BYTES: Final = 250
WORK_PER_CHARACTER: Final = 10
WORK_PER_SUBSCRIPTION: Final = 100
#: What it counts to begin to look for what is retained.
WORK_PER_WALK: Final = 50


#: Refusals that an answer tells of in words; more would not fit.
MOST_TEXTS: Final = 16


class _Refusals:
    """What is said of the refused filters of one packet; there may be thousands."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.texts: list[str] = []

    def add(self, filter_: str, refusal: Refused) -> None:
        self.names.add(refusal.reason.name.lower())
        if len(self.texts) < MOST_TEXTS:
            self.texts.append(f"{filter_[:64]}: {refusal.rule}")


class Subscribing:
    """Grants and ends subscriptions, in their session, on the routes and in the store alike."""

    def __init__(  # a subscription is known in every room
        self,
        settings: Settings,
        routes: Routes,
        references: ChangeMemory,
        questions: Questions,
        retained: Retained,
        replays: Replays,
        order: Order,
        holds: Holds,
        journal: Journal,
        account: Account,
        work: Work,
        chronicle: Chronicle | None,
    ) -> None:
        self.settings = settings
        self._routes = routes
        self._references = references
        self._questions = questions
        self._retained = retained
        self._replays = replays
        self._order = order
        self._holds = holds
        self._journal = journal
        self._account = account
        self._work = work
        self._chronicle = chronicle

    # -- SUBSCRIBE

    def on_subscribe(self, conn: Connection, packet: Subscribe, now: float) -> None:
        """Grant what can be granted, answer with one code per filter, then send what was retained.

        It is left as the connection's unfinished packet: a long one takes several turns.
        """
        session = conn.session
        assert session is not None
        _check_answer_fits(conn, len(packet.subscriptions))
        asked = packet.properties.get("user_property", ())
        if asked:
            patience = asked_patience(self.settings.priority, asked, session.patience)
            self._order.heed(session, patience)
            if session.is_kept:
                self._journal.session(session)
        conditions = [text for name, text in asked if name == WHERE]
        filters = [subscription.filter for subscription in packet.subscriptions]
        self._begin(conn, self._subscribe(conn, session, packet, conditions), filters)

    def _begin(self, conn: Connection, portions: Portions, filters: Sequence[str]) -> None:
        next(portions)  # to where it waits for the time
        conn.unfinished = portions
        conn.unfinished_bytes = sum(FILTER_BYTES + 2 * len(filter_) for filter_ in filters)

    def _subscribe(self, conn: Connection, session: Session, packet: Subscribe, conditions: Sequence[str]) -> Portions:
        """Judge all filters, then grant them; it pauses wherever its share of the work is spent."""
        now = yield
        work, questions = self._work, self._questions
        identifiers = packet.properties.get("subscription_identifier")
        identifier = identifiers[0] if identifiers else 0
        reader = RequestReader(conditions, question_mark=self._takes_question_marks)
        # verdicts first: what the rules of 3.1.1 forbid ends the connection before anything has changed
        judged: list[tuple[SubscriptionRequest, Refused | None]] = []
        judgement = questions.judgement
        for options in packet.subscriptions:
            request = reader.read(options)
            work.did(WORK_PER_FILTER + reader.take_parsed() * WORK_PER_CHARACTER)
            judged.append((request, (yield from self._verdict(conn, request, now))))
            if work.is_spent():
                now = yield
        reasons: list[int] = []
        refused = _Refusals()
        #: Subscriptions that are to get what is retained, once others know of them.
        curious: list[tuple[ActiveSubscription, SubscriptionRequest]] = []
        for request, verdict in judged:
            if judgement != questions.judgement:
                # others may do what they could not, and the other way round
                verdict = yield from self._verdict(conn, request, now)
            refusal = verdict or self._lack_of_room(conn, session, request)
            if refusal is None:
                reasons.append(self._grant(session, request, identifier, conditions, curious))
            else:
                reasons.append(refusal.reason)
                self._account.refusals[refusal.reason.name.lower()] += 1
                refused.add(request.options.filter, refusal)
                work.did(WORK_PER_FILTER)
            if work.is_spent():
                now = yield
        if self._routes.neighbours.wait(lambda: self._holds.resume_soon(conn, Hold.PEERS), now):
            # what any broker accepts after the SUBACK arrives
            self._replays.expect(conn, [request.filter for _, request in curious])
            self._holds.suspend(conn, Hold.PEERS, now)
            now = yield
        for subscription, request in curious if len(self._retained) else ():
            # what others had retained before they knew of it has come by now
            if session.subscriptions.get(request.options.filter) is subscription:
                self._replays.begin(session, subscription, request.filter)
                work.did(WORK_PER_WALK)
                if work.is_spent():
                    now = yield
        self._answer_subscribe(conn, session, packet, reasons, refused, now)

    def _verdict(
        self, conn: Connection, request: SubscriptionRequest, now: float
    ) -> Generator[None, float, Refused | None]:
        """Why a filter is refused; the connection is held while that is not known yet."""
        while True:
            try:
                return self._may_subscribe(conn, request, now)
            except Again:
                now = yield

    def _lack_of_room(self, conn: Connection, session: Session, request: SubscriptionRequest) -> Refused | None:
        total = self.settings.limits.subscriptions_total
        share, predicate = request.share, request.predicate
        if share is not None and request.options.filter not in session.subscriptions:
            condition = None if predicate is None else shown(predicate)
            text = self._routes.neighbours.refusal(request.filter, condition, share, session.groups)
            if text is not None:
                return Refused(text, Reason.QUOTA_EXCEEDED)
        return lack_of_room(request.options.filter, session, conn.allowance.subscriptions, self._routes.weight, total)

    def _answer_subscribe(  # what was asked, and what came of it
        self,
        conn: Connection,
        session: Session,
        packet: Subscribe,
        reasons: list[int],
        refused: _Refusals,
        now: float,
    ) -> None:
        """One code for each filter, in order, then what was retained ([MQTT-3.8.4-1], [MQTT-3.8.4-6])."""
        if refused.texts:
            names = sorted(refused.names)
            self._tell_refusal(conn, f"SUBSCRIBE: {', '.join(names)}: {refused.texts[0]}", now, why=names[0])
        suback = Suback(packet_id=packet.packet_id, reasons=tuple(reasons))
        self._say(conn, session, _answer(conn, suback, refused.texts))
        if self._chronicle is not None:
            for options, reason in zip(packet.subscriptions, reasons, strict=True):
                self._chronicle.happened(now, "subscribe", session.client_id, options.filter, reason=reason)
        self._retained.expire(now)
        if session.is_replaying:
            self._replays.refill(session, now)
            if session.is_kept:
                self._replays.note_unfinished(session)

    @property
    def _takes_question_marks(self) -> bool:
        return self.settings.content.question_mark == "on"

    def _may_subscribe(self, conn: Connection, request: SubscriptionRequest, now: float) -> Refused | None:
        """Why a filter is refused, as far as rules and abilities go; None when it is not."""
        refusal = refusal_of(request, self.settings.mqtt, conn.allowance.topic_levels, conn.version)
        if refusal is not None or self._questions.access.is_open:
            return refusal
        verdict = self._questions.ask(conn, "subscribe", request.filter, now)
        return verdict if isinstance(verdict, Refused) else None

    def _grant(  # what was asked, and who is still to get something
        self,
        session: Session,
        request: SubscriptionRequest,
        identifier: int,
        conditions: Sequence[str],
        curious: list[tuple[ActiveSubscription, SubscriptionRequest]],
    ) -> int:
        """Add or replace one subscription, and note whether it is to get what is retained; the QoS granted."""
        options = request.options
        if options.qos > self.settings.mqtt.maximum_qos:
            # [MQTT-3.2.2-9] granted with what we have
            options.qos = self.settings.mqtt.maximum_qos
        # [MQTT-3.8.4-3] an existing subscription is replaced
        is_new = options.filter not in session.subscriptions
        subscription = self.keep(session, request, identifier, conditions)
        if session.is_kept:
            self._journal.subscribed(session, subscription)
        # [MQTT-3.3.1-9], [MQTT-3.3.1-10], [MQTT-3.3.1-11]; nothing retained for shared ones (4.8.2)
        self._replays.stop(session, options.filter)
        is_wanted = options.retain_handling == 0 or (options.retain_handling == 1 and is_new)
        if request.share is None and is_wanted:
            curious.append((subscription, request))
        return options.qos

    def keep(
        self, session: Session, request: SubscriptionRequest, identifier: int, conditions: Sequence[str]
    ) -> ActiveSubscription:
        """Add a subscription to its session and to the routes, in place of the one before it."""
        options, share, filter_ = request.options, request.share, request.filter
        subscription: ActiveSubscription = ActiveSubscription(options, identifier)
        if request.predicate is not None:
            subscription = ConditionalSubscription(
                options, identifier, session, share, filter_, request.predicate, self._references
            )
        subscription.conditions = tuple(conditions)
        self._work.did(WORK_PER_SUBSCRIPTION)
        old = session.subscriptions.get(options.filter)
        if old is None:
            session.groups += share is not None
            session.weight += weight_of(options.filter)
            session.owner.weight += weight_of(options.filter)
        elif isinstance(subscription, ConditionalSubscription) or isinstance(old, ConditionalSubscription):
            self._routes.cancel(session, options.filter, old)
        self._routes.subscribe(session, share, filter_, subscription)
        session.subscriptions[options.filter] = subscription
        self._count(session, subscription_bytes(subscription) - (0 if old is None else subscription_bytes(old)))
        return subscription

    @staticmethod
    def _count(session: Session, size: int) -> None:
        session.subscription_bytes += size
        session.owner.take(Kind.SUBSCRIPTIONS, size)

    # -- UNSUBSCRIBE

    def on_unsubscribe(self, conn: Connection, packet: Unsubscribe, now: float) -> None:
        """Remove subscriptions; what is already queued is still delivered.  In portions, as above."""
        session = conn.session
        assert session is not None
        _check_answer_fits(conn, len(packet.filters))
        self._begin(conn, self._unsubscribe(conn, session, packet), packet.filters)

    def _unsubscribe(self, conn: Connection, session: Session, packet: Unsubscribe) -> Portions:
        now = yield
        work = self._work
        # verdicts first: a 3.1.1 client that breaks the rules is closed before anything has changed
        refusals: dict[str, Refused] = {}
        for filter_ in packet.filters:
            if filter_ not in session.subscriptions:
                refusal = self._cannot_exist(conn, filter_)
                if refusal is not None:
                    refusals[filter_] = refusal
            work.did(WORK_PER_FILTER)
            if work.is_spent():
                now = yield
        reasons: list[Reason] = []
        for filter_ in packet.filters:
            reasons.append(self._end(session, filter_, refusals.get(filter_)))
            if work.is_spent():
                now = yield
        refused = _Refusals()
        if refusals:
            for filter_, refusal in islice(refusals.items(), MOST_TEXTS):
                refused.add(filter_, refusal)
            self._account.refusals["topic_filter_invalid"] += len(refusals)
            text = f"UNSUBSCRIBE: topic_filter_invalid: {refused.texts[0]}"
            self._tell_refusal(conn, text, now, why="topic_filter_invalid")
        # [MQTT-3.10.4-4], [MQTT-3.10.4-5], [MQTT-3.10.4-6], [MQTT-3.11.3-1]: one code for each filter, in order
        unsuback = Unsuback(packet_id=packet.packet_id, reasons=tuple(reasons))
        self._say(conn, session, _answer(conn, unsuback, refused.texts))
        if self._chronicle is not None:
            for filter_, reason in zip(packet.filters, reasons, strict=True):
                self._chronicle.happened(now, "unsubscribe", session.client_id, filter_, reason=int(reason))

    def _cannot_exist(self, conn: Connection, filter_: str) -> Refused | None:
        """Why there can be no subscription with this filter; None when there could be."""
        try:
            share, bare, _ = split(filter_, question_mark=self._takes_question_marks)
        except ExpressionError as error:
            return Refused(f"condition: {error}", Reason.TOPIC_FILTER_INVALID)
        # more levels than we keep: no subscription, but nothing wrong with the filter
        return check_spelling(filter_, share, bare, filter_.count("/") + 2, conn.version)

    def _end(self, session: Session, filter_: str, refusal: Refused | None) -> Reason:
        # [MQTT-3.10.4-1] compared character by character
        subscription = session.subscriptions.pop(filter_, None)
        if subscription is None:
            return Reason.NO_SUBSCRIPTION_EXISTED if refusal is None else refusal.reason
        self._routes.cancel(session, filter_, subscription)
        self._work.did(WORK_PER_SUBSCRIPTION)
        session.groups -= filter_.startswith(SHARE)
        session.weight -= weight_of(filter_)
        session.owner.weight -= weight_of(filter_)
        self._count(session, -subscription_bytes(subscription))
        # [MQTT-3.10.4-2] nothing new is added; what is queued is still delivered
        self._replays.stop(session, filter_)
        if session.is_kept:
            self._journal.unsubscribed(session, filter_)
        return Reason.SUCCESS

    # -- answers

    def _say(self, conn: Connection, session: Session, answer: bytes) -> None:
        """Answer when what was granted is permanent, if it is to be."""
        if session.is_kept:
            self._journal.acknowledge(conn, answer)
        else:
            conn.say(answer)

    def _tell_refusal(self, conn: Connection, text: str, now: float, *, why: str) -> None:
        """Add a refusal to the story, at most once a second for one connection."""
        if now >= conn.told_refusal + 1.0:
            conn.told_refusal = now
            self._account.tell(Event("refused", conn.client_id, conn.peer, text, is_trouble=True, why=why))


def _check_answer_fits(conn: Connection, filters: int) -> None:
    """[MQTT-3.1.2-24]: a client whose maximum packet size is below one code per filter cannot be answered."""
    # type, up to four bytes of length, packet id, no properties, one code per filter
    if filters + 8 > conn.max_packet:
        raise Violation("the answer is larger than the client allows", "MQTT-3.1.2-24", Reason.PACKET_TOO_LARGE)


def _answer(conn: Connection, packet: Suback | Unsuback, texts: list[str]) -> bytes:
    """The answer with a reason string, if there is something to say, the client wants it and it fits."""
    if texts and conn.version == 5 and conn.problem_information:
        packet.properties = Properties(reason_string="; ".join(texts)[:1_024])
        data = encode(packet, conn.version)
        if len(data) <= conn.max_packet:
            return data
        # [MQTT-3.9.2-1], [MQTT-3.11.2-1] no reason string if the packet became too large by it
        packet.properties = Properties()
    return encode(packet, conn.version)
