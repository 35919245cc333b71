"""Wills: what is published when a connection ends without a farewell."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

from tieline.core.account import Account, Drop
from tieline.core.client import Session
from tieline.core.durable.arrivals import Arrivals
from tieline.core.durable.journal import Journal
from tieline.core.holdings import Kind, will_bytes
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.retained import Retained
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timers
from tieline.core.work import Work
from tieline.wire.fields import decode_varint
from tieline.wire.packets import Will
from tieline.wire.properties import Properties, encode_properties

#: Will properties that travel with the published message (3.1.3.2); the delay and the expiry do not travel as they are.
_FORWARDED = ("payload_format_indicator", "content_type", "response_topic", "correlation_data", "user_property")


def delay_s(session: Session) -> int:
    """How long after its client has left the will of a session is published, but no later than the session's end."""
    return 0 if session.will is None else min(session.will.properties.get("will_delay_interval", 0), session.expiry_s)


class Wills:
    """Publishes wills, at once or after their delay."""

    __slots__ = (
        "_account",
        "_arrivals",
        "_content",
        "_delivery",
        "_journal",
        "_priorities",
        "_retained",
        "_routes",
        "_timers",
        "_waiting",
        "_work",
    )

    def __init__(  # a will goes the way of every message
        self,
        routes: Routes,
        content: ContentMatch,
        priorities: Priorities,
        arrivals: Arrivals,
        retained: Retained,
        delivery: Delivery,
        journal: Journal,
        timers: Timers,
        work: Work,
        account: Account,
    ) -> None:
        self._routes = routes
        self._content = content
        self._priorities = priorities
        self._arrivals = arrivals
        self._retained = retained
        self._delivery = delivery
        self._journal = journal
        self._timers = timers
        self._work = work
        self._account = account
        #: Wills on topics with so many conditions that it takes turns to find their receivers, and how far that is.
        self._waiting: deque[tuple[Message, list[ActiveSubscription], Generator[None, float, None]]] = deque()

    def schedule(self, session: Session, now: float, left: float | None = None) -> None:
        """The client has gone, at ``left`` if not just now: publish the will now, or when its delay is over.

        [MQTT-3.1.3-9]: a reconnection before cancels it.
        """
        wait_s = delay_s(session)
        if wait_s:
            when = (now if left is None else left) + wait_s
            will = session.will
            session.will_timer = self._timers.at(
                when, lambda now: self._work.due(lambda due: self._publish_due(session, will, due), now)
            )
        else:
            self.publish(session, now)

    @staticmethod
    def adopt(session: Session, will: Will | None) -> None:
        """A session has this will from now on, in place of none."""
        session.will = will
        if will is not None:
            session.owner.take(Kind.WILLS, will_bytes(will))

    def forget(self, session: Session) -> None:
        """[MQTT-3.1.2-10]: after DISCONNECT, or once a new connection has taken over, the will is not published."""
        if session.will is not None:
            session.owner.give(Kind.WILLS, will_bytes(session.will))
        session.will = None
        self._timers.cancel(session.will_timer)
        session.will_timer = None

    def _publish_due(self, session: Session, will: Will | None, now: float) -> None:
        """The delay of a will is over; its client may have come back in the same moment."""
        if session.will is will:
            self.publish(session, now)

    def publish(self, session: Session, now: float) -> None:
        """[MQTT-3.1.2-8]: publish the will, once."""
        will = session.will
        if will is None:
            return
        self.forget(session)
        if session.is_known:
            self._journal.session(session)
        topic = will.topic.encode()
        judge = self._routes.judge
        if judge is not None and not judge.may("write", session.user, session.client_id, will.topic):
            # it was allowed when the client connected; the rules have changed since
            self._account.drop(now, Drop.DENIED, session.client_id, topic)
            return
        expiry = will.properties.get("message_expiry_interval")
        route = self._routes.of(topic)
        level = self._priorities.of_topic(route)
        message = Message(
            topic,
            will.payload,
            will.qos,
            retain=will.retain,
            properties=_forwarded(will.properties),
            expires=None if expiry is None else now + expiry,
            origin=session.origin,
            level=level,
            at=now,
            heat=self._priorities.heat(route, 1, now),
            taxon=level,
        )
        if self._arrivals.is_watched:
            self._arrivals.message(message)
        if will.retain:
            # [MQTT-3.1.2-15]
            self._retained.keep(message, now)
        conditions = route.conditions
        if conditions is not None:
            conditions.weigh()
            if conditions.is_heavy:
                self._foresee(message, route)
                return
        self._delivery.deliver(message, route, now)

    # -- where many conditions are to be asked

    def _foresee(self, message: Message, route: Route) -> None:
        """Find the receivers of a will in portions; until then it counts as one that is kept."""
        foreseen: list[ActiveSubscription] = []
        portions = self._content.foresee(route, message.topic, message.payload, message.properties, foreseen)
        next(portions)
        if message.origin.owner is not None:
            message.origin.owner.take(Kind.WILLS, message.size)
        self._waiting.append((message, foreseen, portions))
        if len(self._waiting) == 1:
            self._work.later(self._go_on)

    def _go_on(self, now: float) -> None:
        if not self._waiting:
            return  # they were finished
        message, foreseen, portions = self._waiting[0]
        self._work.enough()
        try:
            portions.send(now)
        except StopIteration:
            self._waiting.popleft()
            if message.origin.owner is not None:
                message.origin.owner.give(Kind.WILLS, message.size)
            route = self._routes.of(message.topic)
            if route.is_conditional:
                route = self._content.route_of(message, route, foreseen)
            self._delivery.deliver(message, route, now)
        if self._waiting:
            self._work.later(self._go_on)

    def finish(self, now: float) -> None:
        """The broker ends: what is under way is published before it does."""
        while self._waiting:
            self._go_on(now)


def _forwarded(properties: Properties) -> bytes:
    """Those properties of a will that travel with its message, encoded without their length."""
    kept: Properties = {}
    for name in _FORWARDED:
        if name in properties:
            kept[name] = properties[name]  # type: ignore[literal-required]  # one of a fixed list
    encoded = encode_properties(kept)
    return encoded[decode_varint(encoded, 0, len(encoded))[1] :]
