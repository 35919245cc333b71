"""The subscribers of one message that is only asked about: who would get it, who would not, and why."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from tieline.core.answers.fate import Receiver, fate
from tieline.core.answers.verdict import may_not_read
from tieline.core.routing.conditional import Asking
from tieline.core.routing.routes import Route, grant_for
from tieline.match.conditions import wants
from tieline.match.where import understood

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tieline.core.broker import Broker
    from tieline.core.message import Message
    from tieline.core.routing.conditional import Askers
    from tieline.core.routing.groups import Group
    from tieline.core.session import Grant, Held, Session
    from tieline.match.events import Reading

#: Conditions that are evaluated one by one, on topics that no index covers: a question must not stop the broker.
LOOKED_AT: Final = 2_000


class Audience:
    """What was found."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.receivers: list[Receiver] = []
        #: Those beyond the limit.
        self.unlisted = 0
        #: Plain, shared and conditional subscriptions that match the topic, and conditions that hold.
        self.plain = self.groups = self.conditions = self.met = 0
        #: Conditions that were not evaluated.
        self.unasked = 0
        self.route = Route((), (), -1)
        #: Copies that each session gets.
        self.copies: Counter[Session] = Counter()

    def copy_for(self, session: Session) -> int:
        """One more copy for a session; how many it gets before that."""
        ahead = self.copies[session]
        self.copies[session] = ahead + 1
        return ahead

    @property
    def is_full(self) -> bool:
        """Whoever comes now is only counted, not described: a crowd must not stop the broker."""
        return len(self.receivers) >= self._limit

    def add(self, receiver: Receiver) -> None:
        """One more to tell of."""
        if self.is_full:
            self.unlisted += 1
        else:
            self.receivers.append(receiver)

    def summary(self) -> str:
        """How many there are, in words."""
        parts = [f"{self.plain} plain", f"{self.groups} shared groups", f"{self.conditions} with a condition"]
        text = f"{', '.join(parts)}; {self.met} conditions hold"
        return f"{text}; {self.unasked} were not evaluated" if self.unasked else text


def audience(broker: Broker, message: Message, now: float, *, limit: int) -> Audience:
    """Everybody whose subscription matches the topic of a message."""
    found = Audience(limit)
    topic = message.topic.decode()
    may_read = broker.routes.readers(topic)
    reading = broker.events.look(topic, message.payload, message.properties)
    matched: dict[Session, list[Held]] = {}
    groups: dict[Group, dict[Session, tuple[Asking, Grant]]] = {}
    unmet: list[Asking] = []
    for bucket in broker.routes.buckets(topic):
        found.plain += len(bucket.members)
        for session, held in bucket.members.items():
            matched.setdefault(session, []).append(held)
        for group in bucket.groups.values():
            if group.members:
                groups.setdefault(group, {})
        if bucket.askers is not None:
            for asking in _met(broker, found, bucket.askers, message, reading, unmet):
                if asking.group is None:
                    matched.setdefault(asking.session, []).append(asking)
                else:
                    grant = grant_for(asking.session, [asking])
                    groups.setdefault(asking.group, {}).setdefault(asking.session, (asking, grant))
    found.groups = len(groups)
    grants: list[Grant] = []
    for session, subscriptions in matched.items():
        if may_read is not None and not may_read(session):
            why = may_not_read(broker, session, topic)
            found.add(_passed_over(session, f"it may not read this topic: {why}", subscriptions))
            continue
        grant = grant_for(session, subscriptions)
        grants.append(grant)
        if found.is_full:
            found.unlisted += 1
        else:
            _tell(broker, found, message, grant, subscriptions, reading, now)
    parts = []
    for group, askers in groups.items():
        readable = {one: pair for one, pair in askers.items() if may_read is None or may_read(one)}
        part = group.readers(may_read)
        if group.askers:
            part = part.part({session: grant for session, (_, grant) in readable.items()})
        parts.append(part)
        _tell_group(broker, found, message, parts[-1], readable, reading, now)
    for asking in unmet:
        if found.is_full:
            found.unlisted += 1
        else:
            _tell_unmet(found, asking, message, reading)
    found.route = Route(tuple(grants), tuple(parts), -1)
    return found


def _met(  # what is asked, of whom, and where the answer goes
    broker: Broker, found: Audience, askers: Askers, message: Message, reading: Reading | None, unmet: list[Asking]
) -> list[Asking]:
    """The subscriptions of one filter whose conditions hold; of the others, as many as can be listed are noted."""
    found.conditions += len(askers)
    some = list(islice(askers, LOOKED_AT))
    met: list[Asking] = []
    if reading is not None:
        event = broker.events.of(message.topic.decode())
        table = askers.known(event)
        if table is not None:
            met = table.match(reading, message.topic)
        else:
            met = [
                asking for asking in some if wants(asking, understood(asking.predicate, event), reading, message.topic)
            ]
            found.unasked += len(askers) - len(some)
    found.met += len(met)
    holds = set(met)
    unmet += [asking for asking in some if asking not in holds]
    return met


def _tell(  # as above
    broker: Broker,
    found: Audience,
    message: Message,
    grant: Grant,
    subscriptions: list[Held],
    reading: Reading | None,
    now: float,
) -> None:
    askings = [held for held in subscriptions if isinstance(held, Asking)]
    condition, values = _values(askings, message, reading)
    if grant.no_local and grant.session.client_id == message.publisher:
        if grant.others is None:
            # [MQTT-3.8.3-3]
            found.add(
                _passed_over(grant.session, "it published the message itself, and asked for No Local", subscriptions)
            )
            return
        grant = grant.others
        subscriptions = [held for held in subscriptions if not held.options.no_local]
    ahead = found.copy_for(grant.session)
    found.add(fate(broker, message, grant, subscriptions, now, condition=condition, values=values, ahead=ahead))


def _tell_group(  # as above
    broker: Broker,
    found: Audience,
    message: Message,
    group: Group,
    askers: dict[Session, tuple[Asking, Grant]],
    reading: Reading | None,
    now: float,
) -> None:
    name = f"$share/{group.name}/{group.filter}"
    chosen = group.peek(message, found.copies)
    if chosen is None:
        found.add(Receiver(client=name, fate="dropped", why="no_member", text="no member can take it", group=name))
        return
    asking = askers.get(chosen.session)
    condition, values = _values([asking[0]] if asking else [], message, reading)
    ahead = found.copy_for(chosen.session)
    found.add(fate(broker, message, chosen, [], now, group=name, condition=condition, values=values, ahead=ahead))
    for session in group.members:
        if session is not chosen.session:
            found.add(_passed_over(session, f"it is the turn of {chosen.session.client_id}", [], group=name))


def _tell_unmet(found: Audience, asking: Asking, message: Message, reading: Reading | None) -> None:
    condition, values = _values([asking], message, reading)
    text = "its condition does not hold" if reading is not None else "the payload cannot be read"
    found.add(_passed_over(asking.session, text, [asking], condition=condition, values=values))


def _passed_over(  # as above
    session: Session,
    text: str,
    held: Iterable[Held],
    *,
    group: str = "",
    condition: str = "",
    values: dict[str, object] | None = None,
) -> Receiver:
    return Receiver(
        client=session.client_id,
        fate="passed_over",
        text=text,
        filters=tuple(one.options.filter for one in held),
        group=group,
        condition=condition,
        values=values or {},
        queued=session.queue.messages,
        queued_bytes=session.queue.bytes,
    )


def _values(askings: Iterable[Asking], message: Message, reading: Reading | None) -> tuple[str, dict[str, object]]:
    """The conditions of some subscriptions, and what they were compared with."""
    texts: list[str] = []
    values: dict[str, object] = {}
    for asking in askings:
        texts.append(asking.predicate.text)
        for name in asking.predicate.names:
            values[name] = None if reading is None else reading.get(name)
        before = None if asking.last is None else asking.last.before(message.topic)
        for name in asking.predicate.watched:
            values[f"{name} before"] = None if before is None else before.get(name)
    return " or ".join(texts), values
