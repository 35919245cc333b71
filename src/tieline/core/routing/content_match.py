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

from collections.abc import Generator, Iterable, Iterator, Sequence

from tieline.core.account import Account
from tieline.core.message import Burst, Item, Message
from tieline.core.receiver import ActiveSubscription, Grant, Mark, Receiver, Share
from tieline.core.routing.groups import Group
from tieline.core.routing.match_counts import MatchCounts
from tieline.core.routing.route import ConditionalSubscription, Route, RouteConditions, folded, grant_for
from tieline.core.routing.routes import WORK_PER_READER, Routes
from tieline.match.change import holds
from tieline.match.conditions import ConditionTable
from tieline.match.events import Events, EventType, Reading
from tieline.match.where import Predicate, understood

#: For messages that nobody wants.
_NOWHERE = Route((), (), -1)

#: The tables of conditions that all messages of some routes are looked up in.
Tables = tuple[ConditionTable[ConditionalSubscription], ...]


class ContentMatch:
    """Finds the receivers of single messages, on routes with conditions."""

    __slots__ = ("_account", "_events", "_routes", "counts")

    def __init__(self, routes: Routes, events: Events, account: Account) -> None:
        #: Counts what is looked up and what is wanted, while somebody wants to know.
        self.counts: MatchCounts | None = None
        self._routes = routes
        self._events = events
        self._account = account

    def route_of(self, message: Message, route: Route, foreseen: list[ActiveSubscription] | None = None) -> Route:
        """The route of one message; ``foreseen`` are those whose conditions it meets, where somebody has asked."""
        conditions = route.conditions
        assert conditions is not None
        if foreseen is None:
            conditions.weigh()
            self._routes.work.did(conditions.effort)
        return self._find(route, message.topic, message.payload, message.properties, foreseen)

    def foresee(
        self, route: Route, topic: bytes, payload: bytes, properties: bytes, met: list[ActiveSubscription]
    ) -> Generator[None, float, None]:
        """Find whose conditions a message meets, and add them to ``met``; pauses wherever its share is spent."""
        yield
        conditions = route.conditions
        assert conditions is not None
        reading = conditions.event.read(payload, properties, topic.decode())
        if reading is None:
            return
        for table in conditions.tables:
            met += yield from table.match_in_stretches(reading, topic, self._is_enough)

    def _is_enough(self, units: int) -> bool:
        work = self._routes.work
        work.did(units)
        return work.is_spent()

    @staticmethod
    def look(route: Route, topic: bytes, reading: Reading | None) -> tuple[Route, Sequence[ConditionalSubscription]]:
        """The route of one message that says this, and whose conditions it meets, also of those who may not read it.

        Nothing is learned, remembered or counted.
        """
        conditions = route.conditions
        if conditions is None:
            return route, ()
        met = () if reading is None else _met(conditions, reading, topic)
        return _fold(route, _readers(conditions, met), reading, topic), met

    def parts(self, item: Item, route: Route) -> Iterator[tuple[Item, Route]]:
        """The parts of an item, each with the route of its receivers; what nobody wants is left out."""
        if isinstance(item, Burst):
            yield from _runs(item, self._one_by_one(item, route))
        else:
            yield item, self.route_of(item, route)

    def parts_of_all(self, pending: Sequence[tuple[Burst, Route]]) -> Iterator[tuple[Burst, Route]]:
        """The same for the bursts of a chunk, which are looked up together where that is possible; in their order."""
        batch = _Batch(pending)
        rows = {event: self._decode(event, asked) for event, asked in batch.payloads.items()}
        found_in = {tables: _look_up(tables, rows[tables[0].event], places) for tables, places in batch.places.items()}
        if self.counts is not None:
            for asked, met in found_in.items():
                self.counts.add(asked, met)
        answers = {asked: iter(met) for asked, met in found_in.items()}
        for burst, route in pending:
            conditions = route.conditions
            if conditions is None:
                yield burst, route
                continue
            tables = batch.tables[route]
            if tables is None:
                yield from _runs(burst, self._one_by_one(burst, route))
            elif burst.messages == 1:
                narrowed = self._remembered(route, _readers(conditions, next(answers[tables])))
                if narrowed.has_receivers:
                    yield burst, narrowed
            else:
                found = answers[tables]
                routes = (self._remembered(route, _readers(conditions, next(found))) for _ in range(burst.messages))
                yield from _runs(burst, routes)

    def grant_of_retained(
        self, conditional: ConditionalSubscription, bound: dict[EventType, Predicate], message: Message
    ) -> Grant | None:
        """How a retained message reaches somebody who asks for a condition; None if it does not meet it.

        ``bound`` remembers the condition as each event type understands it, for the next message.
        """
        topic = message.topic.decode()
        event = self._events.of(topic)
        reading = event.read(message.payload, message.properties, topic)
        self._account.examined(1, 0 if reading is not None else 1)
        if reading is None:
            return None
        if event not in bound:
            bound[event] = understood(conditional.predicate, event)
        if not holds(bound[event], reading.get, conditional.last, message.topic):
            return None
        grant = grant_for(conditional.receiver, [conditional])
        grant.marks = _marks((conditional,), reading, message.topic)
        return grant

    def heirs(self, item: Item, share: Share | None) -> Iterator[tuple[Item, Grant | None]]:
        """Who of a group takes over what waited for a member that is gone, message by message; None where nobody can.

        The group is looked up as it is now, and so are the conditions of its members.  Without a group nobody can.
        """
        if share is None:
            yield item, None
            return
        for part, narrowed in self.each(item, self._routes.of(item.topic)):
            yield part, _pick(narrowed, part, share)

    def each(self, item: Item, route: Route) -> Iterator[tuple[Item, Route]]:
        """The messages of an item, each with its route, also those that nobody wants; all together if none is asked."""
        if not route.is_conditional:
            yield item, route
        elif isinstance(item, Burst):
            for number, narrowed in enumerate(self._one_by_one(item, route)):
                yield item.part(number, number + 1), narrowed
        else:
            yield item, self.route_of(item, route)

    def _decode(self, event: EventType, payloads: Sequence[bytes]) -> list[list[float] | None]:
        """What the payloads say, as numbers; None for each that cannot be read.  They count as examined."""
        rows = event.rows(payloads)
        self._account.examined(len(rows), rows.count(None))
        return rows

    def _one_by_one(self, burst: Burst, route: Route) -> Iterator[Route]:
        """The route of each message of a burst; each is delivered before the next one is asked about."""
        for payload in burst.payloads():
            yield self._find(route, burst.topic, payload, b"")

    def _find(
        self,
        route: Route,
        topic: bytes,
        payload: bytes,
        properties: bytes,
        foreseen: list[ActiveSubscription] | None = None,
    ) -> Route:
        conditions = route.conditions
        assert conditions is not None
        name = topic.decode()
        if conditions.is_birth:
            self._events.learn(name, payload)
        if not conditions.tables:
            return self._remembered(route, ())
        reading = conditions.event.read(payload, properties, name)
        self._account.examined(1, 0 if reading is not None else 1)
        if reading is None:
            if self.counts is not None:
                self.counts.add(conditions.tables, ((),))
            return self._remembered(route, ())
        met: Sequence[ConditionalSubscription]
        if foreseen is None:
            met = _met(conditions, reading, topic)
        else:
            # what was delivered meanwhile may have changed what is a change
            met = [
                each
                for each in foreseen
                if isinstance(each, ConditionalSubscription) and _still_holds(each, reading, topic)
            ]
        if self.counts is not None:
            self.counts.add(conditions.tables, (met,))
        if conditions.may_read is not None:
            self._routes.work.did(len(met) * WORK_PER_READER)
        readers = _readers(conditions, met)
        if any(conditional.last is not None for conditional in readers):
            return _fold(route, readers, reading, topic)
        return self._remembered(route, readers)

    def _remembered(self, route: Route, met: Sequence[ConditionalSubscription]) -> Route:
        """The route of those who take everything and of some whose conditions are met."""
        if not route.grants and not route.groups:
            if not met:
                return _NOWHERE
            first = met[0]
            if len(met) == 1 and first.share is None:
                if first.route is None:
                    first.route = Route((folded(first.receiver, [first]),), (), -1)
                return first.route
        conditions = route.conditions
        assert conditions is not None
        key = tuple(met)
        narrowed = self._routes.message_routes.get(conditions, key)
        if narrowed is None:
            narrowed = _fold(route, met)
            self._routes.message_routes.put(conditions, key, narrowed)
        return narrowed


class _Batch:
    """What is asked about the bursts of one chunk, collected so that each index is asked once."""

    def __init__(self, pending: Sequence[tuple[Burst, Route]]) -> None:
        self.payloads: dict[EventType, list[bytes]] = {}
        #: Of each conditional route: the tables that are asked about its messages; None if one by one.
        self.tables: dict[Route, Tables | None] = {}
        #: Of each of those: where its messages are among the payloads of its event type.
        self.places: dict[Tables, list[int]] = {}
        for burst, route in pending:
            if route.conditions is not None:
                self._add(burst, route, route.conditions)

    def _add(self, burst: Burst, route: Route, conditions: RouteConditions) -> None:
        if route in self.tables:
            tables = self.tables[route]
        else:
            conditions.weigh()
            tables = self.tables[route] = conditions.tables if _is_batched(conditions) else None
        if tables is None:
            return
        asked = self.payloads.get(conditions.event)
        if asked is None:
            asked = self.payloads[conditions.event] = []
        mine = self.places.get(tables)
        if mine is None:
            mine = self.places[tables] = []
        if burst.messages == 1:
            mine.append(len(asked))
            asked.append(burst.packets[burst.head :])
        else:
            mine.extend(range(len(asked), len(asked) + burst.messages))
            asked.extend(burst.payloads())


def _met(conditions: RouteConditions, reading: Reading, topic: bytes) -> list[ConditionalSubscription]:
    """Those whose conditions hold for what one message says."""
    met: list[ConditionalSubscription] = []
    for table in conditions.tables:
        met += table.match(reading, topic)
    return met


def _still_holds(conditional: ConditionalSubscription, reading: Reading, topic: bytes) -> bool:
    """Whether a condition that held a moment ago does so now; only those that compare with what was sent can change."""
    return conditional.last is None or holds(conditional.predicate, reading.get, conditional.last, topic)


def _readers(conditions: RouteConditions, met: Sequence[ConditionalSubscription]) -> Sequence[ConditionalSubscription]:
    """Those who may read the topic at all: a condition widens nothing."""
    may_read = conditions.may_read
    return met if may_read is None else [each for each in met if may_read(each.receiver)]


def _pick(route: Route, item: Item, share: Share) -> Grant | None:
    for group in route.groups:
        if group.share == share:
            return group.pick(item)
    return None


def _is_batched(conditions: RouteConditions) -> bool:
    """Whether the numbers of a message are all that is needed to know its receivers."""
    return (
        not conditions.is_birth
        and not conditions.event.reads_topic
        and all(table.is_exact for table in conditions.tables)
    )


def _look_up(
    tables: Tables, rows: Sequence[Sequence[float] | None], places: Sequence[int]
) -> Sequence[Sequence[ConditionalSubscription]]:
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


def _fold(
    route: Route, met: Sequence[ConditionalSubscription], reading: Reading | None = None, topic: bytes = b""
) -> Route:
    """One grant per receiver, as for plain subscriptions; shared groups with the members whose conditions are met."""
    conditions = route.conditions
    assert conditions is not None
    alone: dict[Receiver, list[ConditionalSubscription]] = {}
    shared: dict[Group, dict[Receiver, list[ConditionalSubscription]]] = {}
    for conditional in met:
        by_receiver = alone if conditional.group is None else shared.setdefault(conditional.group, {})
        by_receiver.setdefault(conditional.receiver, []).append(conditional)
    grants = [grant for grant in route.grants if grant.receiver not in alone]
    grants += [
        _grant([*conditions.matched.get(receiver, ()), *some], some, reading, topic) for receiver, some in alone.items()
    ]
    groups = [
        group.part({}) if group.whole.conditionals else group for group in route.groups if group.whole not in shared
    ]
    parts = {group.whole: group for group in route.groups}
    for group, members in shared.items():
        chosen = {receiver: _grant([*some], some, reading, topic, group.share) for receiver, some in members.items()}
        groups.append((parts.get(group) or group.readers(conditions.may_read)).part(chosen))
    return Route(tuple(grants), tuple(groups), -1)


def _grant(
    subscriptions: list[ActiveSubscription],
    met: Sequence[ConditionalSubscription],
    reading: Reading | None,
    topic: bytes,
    share: Share | None = None,
) -> Grant:
    """The subscriptions of one receiver, folded; some have a condition, and what a message says has met it."""
    receiver = met[0].receiver
    marks = () if reading is None else _marks(met, reading, topic)
    if not marks and share is None:
        return folded(receiver, subscriptions)
    grant = grant_for(receiver, subscriptions)
    grant.share = share
    grant.marks = marks
    if reading is not None and grant.others is not None:
        # what its own messages are folded from has references of its own
        grant.others.marks = _marks([each for each in met if not each.options.no_local], reading, topic)
    return grant


def _marks(met: Iterable[ConditionalSubscription], reading: Reading, topic: bytes) -> tuple[Mark, ...]:
    """The references that move when the message is delivered."""
    return tuple(
        (last, topic, last.compared(reading.get))
        for last in (conditional.last for conditional in met)
        if last is not None
    )
