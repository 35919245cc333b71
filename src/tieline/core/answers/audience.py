"""The subscribers of one message that is only asked about: who would get it, who would not, and why.

Who gets it says the route, which is found as for a real message; whose turn it is in a group, what stands in the way of
a queue and how large a packet is are asked of the code that acts.  What is added here are the words, and those whose
subscriptions match the topic and who are not on the route all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct, field

from tieline.core.account import Drop
from tieline.core.answers.steps import may_not_read
from tieline.core.broker import Broker
from tieline.core.client import Hold, Session
from tieline.core.message import Message
from tieline.core.outbound.deliver import Beyond
from tieline.core.outbound.packets import packet_size
from tieline.core.receiver import ActiveSubscription, Grant, Receiver
from tieline.core.routing.groups import Group
from tieline.core.routing.route import ConditionalSubscription, Route
from tieline.match.events import Reading

#: Receivers, and conditions of one filter, that are looked at one by one: a question must not stop the broker.
LOOKED_AT: Final = 2_000


class Fate(Struct, frozen=True, kw_only=True):
    """A subscriber of the topic, and what the message comes to there."""

    client: str
    #: ``sent``, ``carried`` (to another broker), ``waits``, ``squeezes`` (queued, and something else is dropped),
    #: ``dropped`` or ``passed_over``.
    fate: str
    text: str
    #: The other broker that this is, by its name; empty for clients.
    broker: str = ""
    #: The brokers on the way there, this one first.
    way: tuple[str, ...] = ()
    #: The QoS with which it would get it.
    qos: int = 0
    #: The name of the drop, if it is one.
    why: str = ""
    #: Its matching subscriptions, as it wrote them.
    filters: tuple[str, ...] = ()
    #: ``$share/NAME/FILTER`` if it gets it as a member of a group.
    group: str = ""
    #: The condition that decided, and the values that were compared.
    condition: str = ""
    values: dict[str, object] = field(default_factory=dict)
    #: What waits for it now, and how much may.
    queued: int = 0
    queued_bytes: int = 0


class Audience:
    """What is found out about one message."""

    def __init__(  # the message, and what is known of it
        self, broker: Broker, message: Message, route: Route, reading: Reading | None, now: float, *, limit: int
    ) -> None:
        """``route`` is that of its topic, ``reading`` what it says; None if its payload cannot be read."""
        self._broker = broker
        self._message = message
        self._topic = message.topic.decode()
        self._reading = reading
        self._now = now
        self._limit = limit
        self._buckets = broker.routes.buckets(self._topic)
        #: The message's own route.
        self.route, met = broker.content.look(route, message.topic, reading)
        #: The conditions that it meets, and whose they are.
        self._met = frozenset(met)
        self._met_by: dict[Receiver, list[ConditionalSubscription]] = {}
        for conditional in met:
            self._met_by.setdefault(conditional.receiver, []).append(conditional)
        #: Conditions on the way to it, and how many of them could be asked.
        self._conditions = sum(len(bucket.conditionals) for bucket in self._buckets if bucket.conditionals is not None)
        self._asked = 0 if route.conditions is None else sum(map(len, route.conditions.tables))
        #: More subscribe than are looked at.
        self.is_crowd = sum([len(bucket.members) for bucket in self._buckets]) > LOOKED_AT
        self.fates: list[Fate] = []
        #: Those beyond the limit.
        self.unlisted = 0
        #: Copies that each receiver gets before the next one, and how many of those wait for an acknowledgement.
        self._copies: Counter[Receiver] = Counter()
        self._assured: Counter[Receiver] = Counter()
        self._tell_receivers()
        for group in self.route.groups:
            self._tell_group(group)
        self._tell_others()

    def summary(self) -> str:
        """How many there are, in words."""
        plain = sum(len(bucket.members) for bucket in self._buckets)
        parts = [f"{plain} plain", f"{len(self.route.groups)} shared groups", f"{self._conditions} with a condition"]
        text = f"{', '.join(parts)}; {len(self._met)} conditions hold"
        unasked = 0 if self._reading is None else self._conditions - self._asked
        return f"{text}; {unasked} were not evaluated" if unasked else text

    # -- who is on the route

    def _tell_receivers(self) -> None:
        grants = self.route.grants
        if self.is_crowd:
            # of the others only their subscriptions are counted: there may be a hundred thousand
            looked_at = sum([grant.receiver in bucket.members for grant in grants for bucket in self._buckets])
            self.unlisted += sum([len(bucket.members) for bucket in self._buckets]) - looked_at
        for grant in grants:
            if grant.receiver.is_broker and self._message.origin.broker:
                continue  # whoever has accepted it sends it there
            own = grant.for_item(self._message)
            if self._is_described():
                receiver = grant.receiver
                asked = [one for one in self._met_by.get(receiver, ()) if one.group is None]
                plain = [bucket.members[receiver] for bucket in self._buckets if receiver in bucket.members]
                subscriptions = [*plain, *asked]
                if own is None:
                    # [MQTT-3.8.3-3]
                    self._add(
                        receiver,
                        "passed_over",
                        "it published the message itself, and asked for No Local",
                        subscriptions,
                    )
                elif own is grant:
                    self._tell(own, subscriptions, asked)
                else:
                    self._tell(own, [one for one in subscriptions if not one.options.no_local], asked)
            if own is not None:
                self._count(own)

    def _tell_group(self, group: Group) -> None:
        name = str(group)
        chosen = group.peek(self._message, self._copies)
        if chosen is None:
            if self._is_described():
                text = "no member can take it"
                self.fates.append(Fate(client=name, fate="dropped", why=Drop.NO_MEMBER.value, text=text, group=name))
            return
        if self._is_described():
            asked = [one for one in self._met_by.get(chosen.receiver, ()) if one.group is group.whole]
            self._tell(chosen, [], asked, group=name)
        self._count(chosen)
        text = f"it is the turn of {chosen.receiver.client_id}"
        for receiver in (*group.members, *(group.brokers or ())):
            if receiver is not chosen.receiver and self._is_described():
                self._add(receiver, "passed_over", text, group=name)

    # -- who is not

    def _tell_others(self) -> None:
        """Those who subscribed, and whom the message does not reach: they may not read it, or did not ask for it."""
        may_read = self._broker.routes.readers(self._topic)
        if may_read is not None:
            unlisted, described = self.unlisted, len(self.fates)
            for receiver, subscriptions in islice(self._matching().items(), LOOKED_AT):
                if not may_read(receiver) and self._is_described():
                    why = may_not_read(self._broker, receiver, self._topic)
                    self._add(receiver, "passed_over", f"it may not read this topic: {why}", subscriptions)
            if self.is_crowd:
                # they are among those whose subscriptions were counted
                self.unlisted = unlisted - (len(self.fates) - described)
        text = "its condition does not hold" if self._reading is not None else "the payload cannot be read"
        for bucket in self._buckets:
            for conditional in islice(bucket.conditionals or (), LOOKED_AT):
                if conditional not in self._met and self._is_described():
                    self._add(conditional.receiver, "passed_over", text, [conditional], [conditional])

    def _matching(self) -> dict[Receiver, list[ActiveSubscription]]:
        """Everybody who would get the message if all might read it: their subscriptions, but not those of groups."""
        matching: dict[Receiver, list[ActiveSubscription]] = {}
        for bucket in self._buckets:
            for receiver, subscription in islice(bucket.members.items(), LOOKED_AT):
                matching.setdefault(receiver, []).append(subscription)
            for group in bucket.groups.values():
                for receiver in islice(group.members, LOOKED_AT):
                    matching.setdefault(receiver, [])
        for receiver, met in self._met_by.items():
            matching.setdefault(receiver, []).extend(met)
        return matching

    # -- in words

    def _is_described(self) -> bool:
        """Whether one more is described and not only counted: a crowd must not stop the broker."""
        if len(self.fates) < self._limit:
            return True
        self.unlisted += 1
        return False

    def _tell(
        self,
        grant: Grant,
        subscriptions: Iterable[ActiveSubscription],
        asked: Iterable[ConditionalSubscription],
        *,
        group: str = "",
    ) -> None:
        """What becomes of the message for a receiver that is to get it, after the copies that it gets already."""
        qos = min(self._message.qos, grant.qos)
        fate, why, text = self._outcome(grant, qos)
        self._add(
            grant.receiver, fate, text, subscriptions, asked, qos=qos, why="" if why is None else why.value, group=group
        )

    def _count(self, grant: Grant) -> None:
        """A copy is on its way to a receiver."""
        self._copies[grant.receiver] += 1
        self._assured[grant.receiver] += min(self._message.qos, grant.qos) > 0

    def _add(  # as a fate has fields
        self,
        receiver: Receiver,
        fate: str,
        text: str,
        subscriptions: Iterable[ActiveSubscription] = (),
        asked: Iterable[ConditionalSubscription] = (),
        *,
        qos: int = 0,
        why: str = "",
        group: str = "",
    ) -> None:
        queue = receiver.queue if isinstance(receiver, Session) else None
        condition, values = self._compared(asked)
        way: tuple[str, ...] = ()
        if fate == "carried":
            way = self._broker.routes.neighbours.prospect(receiver.client_id, is_assured=qos > 0).way
        self.fates.append(
            Fate(
                client=receiver.client_id,
                broker=receiver.client_id.removeprefix("broker ") if receiver.is_broker else "",
                way=way,
                fate=fate,
                text=text,
                qos=qos,
                why=why,
                filters=tuple(one.options.filter for one in subscriptions),
                group=group,
                condition=condition,
                values=values,
                queued=0 if queue is None else queue.messages,
                queued_bytes=0 if queue is None else queue.bytes,
            )
        )

    def _compared(self, asked: Iterable[ConditionalSubscription]) -> tuple[str, dict[str, object]]:
        """The conditions of some subscriptions, and what they were compared with."""
        texts: list[str] = []
        values: dict[str, object] = {}
        reading = self._reading
        for conditional in asked:
            texts.append(conditional.predicate.text)
            for name in conditional.predicate.names:
                values[name] = None if reading is None else reading.get(name)
            before = None if conditional.last is None else conditional.last.before(self._message.topic)
            for name in conditional.predicate.watched:
                values[f"{name} before"] = None if before is None else before.get(name)
        return " or ".join(texts), values

    def _outcome(self, grant: Grant, qos: int) -> tuple[str, Drop | None, str]:
        """What becomes of the message at one session, after the copies that are queued for it already."""
        session, message = grant.receiver, self._message
        if not isinstance(session, Session):
            prospect = self._broker.routes.neighbours.prospect(session.client_id, is_assured=qos > 0)
            return prospect.fate, None, prospect.text
        conn, queue = session.connection, session.queue
        copies = self._copies[session]
        beyond = self._broker.delivery.beyond(session, message, grant, copies)
        if beyond is Beyond.END:
            return "dropped", Drop.SESSION_ENDED, "its client is away and its queue is full: the session ends"
        if beyond is Beyond.TURN_AWAY:
            return "dropped", Drop.QUEUE_FULL, "its queue is full, also that in the store"
        if beyond is Beyond.SPILL:
            return "waits", None, "in the store alone: its queue is full, or others wait there before it"
        obstacle = self._broker.delivery.obstacle(session, message, grant, copies)
        if obstacle is not None:
            return "dropped", obstacle, _OBSTACLES[obstacle]
        if queue.would_be_over(copies + 1, (copies + 1) * message.size):
            waiting, size = queue.messages + copies, queue.bytes + copies * message.size
            text = f"{waiting} messages, {size} bytes wait: the queue is full, and one of them or this one goes"
            return "squeezes", Drop.QUEUE_FULL, text
        if conn is None:
            return "waits", None, "its client is away; the session keeps it"
        packet = packet_size(conn, message, grant, self._now)
        if packet > conn.max_packet:
            return "dropped", Drop.TOO_LARGE, f"the packet has {packet} bytes, the client takes {conn.max_packet}"
        if conn.hold is Hold.COMMIT:
            return "waits", None, "until the session of its client is permanent"
        # what waits for acknowledgements is overtaken by QoS 0, and by urgent messages for which a place is kept
        is_stopped = qos > 0 and self._broker.order.stops(session, conn, message, self._assured[session])
        if queue.messages and (conn.is_blocked or queue.entries or is_stopped):
            return "waits", None, f"behind {queue.messages} messages" + (", by class" if session.backlog else "")
        if conn.is_blocked:
            return "waits", None, "the network has not taken what was sent before"
        if is_stopped:
            return "waits", None, f"for the acknowledgement of one of {len(session.inflight)} messages in flight"
        return "sent", None, "at once"


#: Why a message is not queued at all, in words.
_OBSTACLES: Final = {
    Drop.OFFLINE: "its client is away, and QoS 0 does not wait for it",
    Drop.MEMORY_FULL: "all queues together are full, and this one is behind",
}
