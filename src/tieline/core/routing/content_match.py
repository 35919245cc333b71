"""From a topic's route to a message's: whose conditions are met by what it says.

Theory of operation
-------------------
A route on which somebody asks for conditions is not yet a list of receivers.  The payload is decoded, once, into the
numbers of its event type; the conditions of all filters on the route are looked up with them; and the answer, folded
with those who take everything, is an ordinary route again, remembered under the set of those who asked for it.
Everything behind this step (queues, full ones, shared groups, overlapping subscriptions) works as for plain topics.

The messages of a chunk are decoded and looked up together, because an index answers hundreds of questions in little
more time than ten.  Where a condition compares with what was delivered before, messages are taken one by one instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tieline.core.message import Burst
from tieline.core.routing.routes import Route, folded, grant_for
from tieline.match.conditions import wants
from tieline.match.where import understood

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.message import Item, Message
    from tieline.core.routing.conditional import Asking
    from tieline.core.routing.groups import Group
    from tieline.core.routing.route_conditions import Sifting
    from tieline.core.session import Grant, Held, Mark, Session
    from tieline.match.conditions import Conditions
    from tieline.match.events import EventType, Reading
    from tieline.match.where import Predicate

#: For messages that nobody wants.
_NOWHERE = Route((), (), -1)

Batch = tuple["Conditions[Asking]", ...]


def sift(broker: Broker, item: Item, route: Route) -> Iterator[tuple[Item, Route]]:
    """The parts of an item, each with the route of its receivers; what nobody wants is left out."""
    if isinstance(item, Burst):
        yield from _runs(item, _one_by_one(broker, item, route))
    else:
        yield item, narrow(broker, item, route)


def narrow(broker: Broker, message: Message, route: Route) -> Route:
    """The route of one message."""
    sifting = route.sifting
    assert sifting is not None
    sifting.weigh()
    broker.routes.work += sifting.effort
    return _route_of(broker, route, message.topic, message.payload, message.properties)


def sift_all(broker: Broker, pending: Sequence[tuple[Burst, Route]]) -> Iterator[tuple[Burst, Route]]:
    """The same for the bursts of a chunk, which are looked up together where that is possible; in their order."""
    payloads: dict[EventType, list[bytes]] = {}
    #: Of each conditional route: whose answers its messages take.
    batches: dict[Route, Batch | None] = {}
    #: Of each of those: where its messages are among the payloads of its event type.
    places: dict[Batch, list[int]] = {}
    for burst, route in pending:
        sifting = route.sifting
        if sifting is None:
            continue
        if route in batches:
            batch = batches[route]
        else:
            sifting.weigh()
            batch = batches[route] = sifting.tables if _is_batched(sifting) else None
        if batch is not None:
            event = sifting.event
            asked = payloads.get(event)
            if asked is None:
                asked = payloads[event] = []
            mine = places.get(batch)
            if mine is None:
                mine = places[batch] = []
            if burst.messages == 1:
                mine.append(len(asked))
                asked.append(burst.packets[burst.head :])
            else:
                mine.extend(range(len(asked), len(asked) + burst.messages))
                asked.extend(burst.payloads())
    rows = {event: _decode(broker, event, asked) for event, asked in payloads.items()}
    answers = {batch: iter(_look_up(batch, rows[batch[0].event], mine)) for batch, mine in places.items()}
    for burst, route in pending:
        if not route.is_sifted:
            yield burst, route
            continue
        batch = batches[route]
        if batch is None:
            yield from _runs(burst, _one_by_one(broker, burst, route))
        elif burst.messages == 1:
            narrowed = _folded(broker, route, _readers(route.sifting, next(answers[batch])))  # type: ignore[arg-type]  # sifted
            if narrowed.has_receivers:
                yield burst, narrowed
        else:
            found, sifting = answers[batch], route.sifting
            assert sifting is not None
            yield from _runs(
                burst, (_folded(broker, route, _readers(sifting, next(found))) for _ in range(burst.messages))
            )


def is_wanted(broker: Broker, asking: Asking, bound: dict[EventType, Predicate], message: Message) -> Grant | None:
    """How a retained message reaches somebody who asks for a condition; None if it does not meet it.

    ``bound`` remembers the condition as each event type understands it, for the next message.
    """
    topic = message.topic.decode()
    event = broker.events.of(topic)
    reading = event.read(message.payload, message.properties, topic)
    broker.account.sifted += 1
    if reading is None:
        broker.account.unreadable += 1
        return None
    if event not in bound:
        bound[event] = understood(asking.predicate, event)
    if not wants(asking, bound[event], reading, message.topic):
        return None
    grant = grant_for(asking.session, [asking])
    grant.marks = _marks((asking,), reading, message.topic)
    return grant


def _readers(sifting: Sifting, askings: Sequence[Asking]) -> Sequence[Asking]:
    """Those who may read the topic at all: a condition widens nothing."""
    may_read = sifting.may_read
    return askings if may_read is None else [asking for asking in askings if may_read(asking.session)]


def heirs(broker: Broker, item: Item, group: Group | None) -> Iterator[tuple[Item, Grant | None]]:
    """Who of a group takes over what waited for a member that is gone, message by message; None where nobody can.

    The group is looked up as it is now, and so are the conditions of its members.  Without a group nobody can.
    """
    if group is None:
        yield item, None
        return
    route = broker.routes.known.get(item.topic) or broker.routes.find(item.topic.decode(), item.topic)
    if not route.is_sifted:
        yield item, _pick(route, item, group)
    elif isinstance(item, Burst):
        for number, narrowed in enumerate(_one_by_one(broker, item, route)):
            part = item.part(number, number + 1)
            yield part, _pick(narrowed, part, group)
    else:
        yield item, _pick(narrow(broker, item, route), item, group)


def _pick(route: Route, item: Item, group: Group) -> Grant | None:
    for each in route.groups:
        if each.name == group.name and each.filter == group.filter:
            return each.pick(item)
    return None


def _is_batched(sifting: Sifting) -> bool:
    """Whether the numbers of a message are all that is needed to know its receivers."""
    return not sifting.is_birth and not sifting.event.reads_topic and all(table.is_exact for table in sifting.tables)


def _decode(broker: Broker, event: EventType, payloads: Sequence[bytes]) -> list[list[float] | None]:
    """What the payloads say."""
    rows = event.rows(payloads)
    broker.account.sifted += len(rows)
    broker.account.unreadable += rows.count(None)
    return rows


def _look_up(
    tables: Batch, rows: Sequence[Sequence[float] | None], places: Sequence[int]
) -> Sequence[Sequence[Asking]]:
    """Who wants each of some messages."""
    if len(places) == 1 and len(tables) == 1:
        row = rows[places[0]]
        return ((),) if row is None else (tables[0].match_row(row),)
    mine = rows if len(places) == len(rows) else [rows[place] for place in places]
    readable = [row for row in mine if row is not None]
    found = tables[0].match_rows(readable)
    for table in tables[1:]:
        for place, more in enumerate(table.match_rows(readable)):
            if more:
                found[place] = [*found[place], *more] if found[place] else more
    if len(readable) == len(mine):
        return found
    remaining = iter(found)
    return [() if row is None else next(remaining) for row in mine]


def _one_by_one(broker: Broker, burst: Burst, route: Route) -> Iterator[Route]:
    """The route of each message of a burst; each is delivered before the next one is asked about."""
    for payload in burst.payloads():
        yield _route_of(broker, route, burst.topic, payload, b"")


def _runs(burst: Burst, routes: Iterable[Route]) -> Iterator[tuple[Burst, Route]]:
    """Cut a burst where the receivers change."""
    if burst.messages == 1:
        for route in routes:
            if route.has_receivers:
                yield burst, route
        return
    begin = 0
    last: Route | None = None
    for number, route in enumerate(routes):
        if last is not None and (route is not last or not route.is_simple):
            if last.has_receivers:
                yield burst.part(begin, number), last
            begin = number
        if not route.is_simple:
            # what is asked of the next message may depend on the delivery of this one
            yield burst.part(number, number + 1), route
            begin = number + 1
            last = None
        else:
            last = route
    if last is not None and last.has_receivers:
        yield burst.part(begin, burst.messages), last


def _route_of(broker: Broker, route: Route, topic: bytes, payload: bytes, properties: bytes) -> Route:
    sifting = route.sifting
    assert sifting is not None
    name = topic.decode()
    if sifting.is_birth:
        broker.events.learn(name, payload)
    if not sifting.tables:
        return _folded(broker, route, ())
    reading = sifting.event.read(payload, properties, name)
    broker.account.sifted += 1
    if reading is None:
        broker.account.unreadable += 1
        return _folded(broker, route, ())
    askings: list[Asking] = []
    for table in sifting.tables:
        askings += table.match(reading, topic)
    readers = _readers(sifting, askings)
    if any(asking.last is not None for asking in readers):
        return _fold(route, readers, reading, topic)
    return _folded(broker, route, readers)


def _folded(broker: Broker, route: Route, askings: Sequence[Asking]) -> Route:
    """The route of those who take everything and of some who ask, remembered."""
    if not route.grants and not route.groups:
        if not askings:
            return _NOWHERE
        asking = askings[0]
        if len(askings) == 1 and asking.share is None:
            if asking.route is None:
                asking.route = Route((folded(asking.session, [asking]),), (), -1)
            return asking.route
    sifting = route.sifting
    assert sifting is not None
    key = tuple(askings)
    narrowed = broker.routes.narrowed.get(sifting, key)
    if narrowed is None:
        narrowed = _fold(route, askings)
        broker.routes.narrowed.put(sifting, key, narrowed)
    return narrowed


def _fold(route: Route, askings: Sequence[Asking], reading: Reading | None = None, topic: bytes = b"") -> Route:
    """One grant per session, as for plain subscriptions; shared groups with the members whose conditions are met."""
    sifting = route.sifting
    assert sifting is not None
    asked: dict[Session, list[Asking]] = {}
    shared: dict[Group, dict[Session, list[Asking]]] = {}
    for asking in askings:
        by_session = asked if asking.group is None else shared.setdefault(asking.group, {})
        by_session.setdefault(asking.session, []).append(asking)
    grants = [grant for grant in route.grants if grant.session not in asked]
    grants += [
        _grant(session, [*sifting.matched.get(session, ()), *some], some, reading, topic)
        for session, some in asked.items()
    ]
    groups = [group.part({}) if group.whole.askers else group for group in route.groups if group.whole not in shared]
    parts = {group.whole: group for group in route.groups}
    for group, members in shared.items():
        chosen = {
            session: _grant(session, list(some), some, reading, topic, group) for session, some in members.items()
        }
        groups.append((parts.get(group) or group.readers(sifting.may_read)).part(chosen))
    return Route(tuple(grants), tuple(groups), -1)


def _grant(  # what is folded, who of them asks, and what the message says
    session: Session,
    subscriptions: list[Held],
    askings: Sequence[Asking],
    reading: Reading | None,
    topic: bytes,
    group: Group | None = None,
) -> Grant:
    marks = () if reading is None else _marks(askings, reading, topic)
    if not marks and group is None:
        return folded(session, subscriptions)
    grant = grant_for(session, subscriptions)
    grant.group = group
    grant.marks = marks
    if reading is not None and grant.others is not None:
        # what its own messages are folded from has references of its own
        grant.others.marks = _marks([each for each in askings if not each.options.no_local], reading, topic)
    return grant


def _marks(askings: Iterable[Asking], reading: Reading, topic: bytes) -> tuple[Mark, ...]:
    """The references that move when the message is delivered."""
    return tuple(
        (last, topic, {name: reading.get(name) for name in last.names})
        for last in (asking.last for asking in askings)
        if last is not None
    )
