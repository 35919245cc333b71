"""The subscribers of one message that is only asked about: who would get it, who would not, and why.

Who is on the route, whose conditions hold, whose turn it is in a group, and what stands in the way of a queue are asked
of the code that acts (:mod:`tieline.core.routing`, :mod:`tieline.core.outbound`); nothing is remembered, counted or
moved on by asking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tieline.core.account import Drop
from tieline.core.answers.steps import may_not_read
from tieline.core.broker import Broker
from tieline.core.client import Session
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.packets import packet_size
from tieline.core.receiver import Grant, Held, Receiver
from tieline.core.routing.conditional import Conditionals
from tieline.core.routing.groups import Group
from tieline.core.routing.route import Conditional, Route, grant_for
from tieline.match.change import holds
from tieline.match.events import Reading
from tieline.match.where import understood

#: Conditions that are evaluated one by one, on topics that no index covers: a question must not stop the broker.
LOOKED_AT: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """A subscriber of the topic, and what the message comes to there."""

    client: str
    #: ``sent``, ``waits``, ``squeezes`` (queued, and something else is dropped for it), ``dropped`` or ``passed_over``.
    fate: str
    text: str
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

    def __init__(self, broker: Broker, message: Message, now: float, *, limit: int) -> None:
        self._broker = broker
        self._message = message
        self._topic = message.topic.decode()
        self._now = now
        self._limit = limit
        #: What the message says; None if its payload cannot be read.
        self._reading = broker.events.look(self._topic, message.payload, message.properties)
        self.fates: list[Fate] = []
        #: Those beyond the limit.
        self.unlisted = 0
        #: Plain, shared and conditional subscriptions that match the topic, and conditions that hold.
        self.plain = self.groups = self.conditions = self.met = 0
        #: Conditions that were not evaluated.
        self.unasked = 0
        #: The message's route.
        self.route = Route((), (), -1)
        #: Copies that each receiver gets.
        self._copies: Counter[Receiver] = Counter()
        self._find()

    def summary(self) -> str:
        """How many there are, in words."""
        parts = [f"{self.plain} plain", f"{self.groups} shared groups", f"{self.conditions} with a condition"]
        text = f"{', '.join(parts)}; {self.met} conditions hold"
        return f"{text}; {self.unasked} were not evaluated" if self.unasked else text

    def _find(self) -> None:
        """Look at every subscription that matches the topic."""
        matched: dict[Receiver, list[Held]] = {}
        groups: dict[Group, dict[Receiver, Conditional]] = {}
        unmet: list[Conditional] = []
        for bucket in self._broker.routes.buckets(self._topic):
            self.plain += len(bucket.members)
            for receiver, held in bucket.members.items():
                matched.setdefault(receiver, []).append(held)
            for group in bucket.groups.values():
                if group.members:
                    groups.setdefault(group, {})
            if bucket.conditionals is not None:
                for conditional in self._met(bucket.conditionals, unmet):
                    if conditional.group is None:
                        matched.setdefault(conditional.receiver, []).append(conditional)
                    else:
                        groups.setdefault(conditional.group, {}).setdefault(conditional.receiver, conditional)
        self.groups = len(groups)
        grants = self._tell_receivers(matched)
        parts = self._tell_groups(groups)
        for conditional in unmet:
            if self._is_described():
                text = "its condition does not hold" if self._reading is not None else "the payload cannot be read"
                self._pass_over(conditional.receiver, text, [conditional], asked=[conditional])
        self.route = Route(tuple(grants), tuple(parts), -1)

    def _met(self, conditionals: Conditionals, unmet: list[Conditional]) -> list[Conditional]:
        """The subscriptions of one filter whose conditions hold; of the others, as many as can be listed are noted."""
        self.conditions += len(conditionals)
        some = list(islice(conditionals, LOOKED_AT))
        met: list[Conditional] = []
        reading, key = self._reading, self._message.topic
        if reading is not None:
            event = self._broker.events.of(self._topic)
            table = conditionals.known(event)
            if table is not None:
                met = table.match(reading, key)
            else:
                met = [one for one in some if holds(understood(one.predicate, event), reading.get, one.last, key)]
                self.unasked += len(conditionals) - len(some)
        self.met += len(met)
        known = set(met)
        unmet += [conditional for conditional in some if conditional not in known]
        return met

    # -- what is told

    def _is_described(self) -> bool:
        """Whether one more is described and not only counted: a crowd must not stop the broker."""
        if len(self.fates) < self._limit:
            return True
        self.unlisted += 1
        return False

    def _tell_receivers(self, matched: dict[Receiver, list[Held]]) -> list[Grant]:
        grants: list[Grant] = []
        may_read = self._broker.routes.readers(self._topic)
        for receiver, subscriptions in matched.items():
            if may_read is not None and not may_read(receiver):
                if self._is_described():
                    why = may_not_read(self._broker, receiver, self._topic)
                    self._pass_over(receiver, f"it may not read this topic: {why}", subscriptions)
                continue
            grant = grant_for(receiver, subscriptions)
            grants.append(grant)
            if not self._is_described():
                continue
            own = grant.for_item(self._message)
            if own is None:
                # [MQTT-3.8.3-3]
                text = "it published the message itself, and asked for No Local"
                self._pass_over(receiver, text, subscriptions)
                continue
            asked = [held for held in subscriptions if isinstance(held, Conditional)]
            if own is not grant:
                subscriptions = [held for held in subscriptions if not held.options.no_local]
            self._tell(own, subscriptions, asked)
        return grants

    def _tell_groups(self, groups: dict[Group, dict[Receiver, Conditional]]) -> list[Group]:
        parts: list[Group] = []
        may_read = self._broker.routes.readers(self._topic)
        for group, conditionals in groups.items():
            part = group.readers(may_read)
            if group.conditionals:
                readable = {one: held for one, held in conditionals.items() if may_read is None or may_read(one)}
                part = part.part({one: grant_for(one, [held]) for one, held in readable.items()})
            parts.append(part)
            self._tell_group(part, conditionals)
        return parts

    def _tell_group(self, group: Group, conditionals: dict[Receiver, Conditional]) -> None:
        name = str(group)
        chosen = group.peek(self._message, self._copies)
        if chosen is None:
            if self._is_described():
                text = "no member can take it"
                self.fates.append(Fate(client=name, fate="dropped", why="no_member", text=text, group=name))
            return
        if self._is_described():
            asked = conditionals.get(chosen.receiver)
            self._tell(chosen, [], [] if asked is None else [asked], group=name)
        for receiver in group.members:
            if receiver is not chosen.receiver and self._is_described():
                self._pass_over(receiver, f"it is the turn of {chosen.receiver.client_id}", [], group=name)

    def _tell(self, grant: Grant, held: Iterable[Held], asked: Iterable[Conditional], *, group: str = "") -> None:
        """What becomes of the message for a receiver that is to get it, after the copies that it gets already."""
        session = grant.receiver
        assert isinstance(session, Session)
        copies = self._copies[session]
        self._copies[session] += 1
        kind, why, text = _outcome(session, self._message, grant, self._now, copies)
        condition, values = self._compared(asked)
        self.fates.append(
            Fate(
                client=session.client_id,
                fate=kind,
                text=text,
                qos=min(self._message.qos, grant.qos),
                why="" if why is None else why.value,
                filters=tuple(one.options.filter for one in held),
                group=group,
                condition=condition,
                values=values,
                queued=session.queue.messages,
                queued_bytes=session.queue.bytes,
            )
        )

    def _pass_over(
        self,
        receiver: Receiver,
        text: str,
        held: Iterable[Held],
        *,
        group: str = "",
        asked: Iterable[Conditional] = (),
    ) -> None:
        assert isinstance(receiver, Session)
        condition, values = self._compared(asked)
        self.fates.append(
            Fate(
                client=receiver.client_id,
                fate="passed_over",
                text=text,
                filters=tuple(one.options.filter for one in held),
                group=group,
                condition=condition,
                values=values,
                queued=receiver.queue.messages,
                queued_bytes=receiver.queue.bytes,
            )
        )

    def _compared(self, asked: Iterable[Conditional]) -> tuple[str, dict[str, object]]:
        """The conditions of some subscriptions, and what they were compared with."""
        texts: list[str] = []
        values: dict[str, object] = {}
        reading: Reading | None = self._reading
        for conditional in asked:
            texts.append(conditional.predicate.text)
            for name in conditional.predicate.names:
                values[name] = None if reading is None else reading.get(name)
            before = None if conditional.last is None else conditional.last.before(self._message.topic)
            for name in conditional.predicate.watched:
                values[f"{name} before"] = None if before is None else before.get(name)
        return " or ".join(texts), values


#: Why a message is not queued at all, in words.
_OBSTACLES: Final = {
    Drop.OFFLINE: "its client is away, and QoS 0 does not wait for it",
    Drop.MEMORY_FULL: "all queues together are full, and this one is behind",
}


def _outcome(session: Session, message: Message, grant: Grant, now: float, copies: int) -> tuple[str, Drop | None, str]:
    """What becomes of a message at one session that gets so many copies of it before this one."""
    conn, queue = session.connection, session.queue
    qos = min(message.qos, grant.qos)
    obstacle = Delivery.obstacle(session, message, grant, copies)
    if obstacle is not None:
        return "dropped", obstacle, _OBSTACLES[obstacle]
    if conn is not None and (packet := packet_size(message, grant, qos, conn.version, now)) > conn.max_packet:
        return "dropped", Drop.TOO_LARGE, f"the packet has {packet} bytes, the client takes {conn.max_packet}"
    waiting, size = queue.messages + copies, queue.bytes + copies * message.size
    if waiting + 1 > queue.max_messages or size + message.size > queue.max_bytes:
        text = f"{waiting} messages, {size} bytes wait: the queue is full, and one of them or this one goes"
        return "squeezes", Drop.QUEUE_FULL, text
    if conn is None:
        return "waits", None, "its client is away; the session keeps it"
    if queue.messages:
        return "waits", None, f"behind {queue.messages} messages" + (", by class" if session.backlog else "")
    if conn.is_blocked:
        return "waits", None, "the network has not taken what was sent before"
    if qos and not conn.quota:
        return "waits", None, f"for the acknowledgement of one of {len(session.inflight)} messages in flight"
    return "sent", None, "at once"
