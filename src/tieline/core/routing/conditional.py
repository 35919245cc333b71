"""The subscriptions with a condition on one filter, and the memory of who wanted which messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tieline.core.routing.route import ConditionalSubscription, Route, RouteConditions
from tieline.match.conditions import ConditionTable
from tieline.match.cover.filters import covers, overlap
from tieline.match.events import Events, EventType

#: About what a remembered route of messages takes, in bytes: itself, each of those whose conditions they meet, each
#: receiver; and what all of them together may take.
ROUTE_BYTES = 512
CONDITIONAL_BYTES = 32
RECEIVER_BYTES = 16
MOST_BYTES = 33_554_432


class ConditionalSubscriptions:
    """The subscriptions with a condition on one filter."""

    __slots__ = ("_all", "_tables", "remote")

    def __init__(self, filter_: str, events: Events) -> None:
        #: How many of them are those of other brokers.
        self.remote = 0
        self._all: dict[ConditionalSubscription, None] = {}
        # tables grow with the subscriptions: making them when the first message comes would take seconds if there are
        # many, and the publisher would pay for what subscribers have asked
        self._tables: dict[EventType, ConditionTable[ConditionalSubscription]] = {
            event: ConditionTable(event) for event in events.types.values() if overlap(filter_, event.topic)
        }
        if not any(covers(event.topic, filter_) for event in self._tables):
            self._tables[events.untyped] = ConditionTable(events.untyped)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[ConditionalSubscription]:
        return iter(self._all)

    def add(self, conditional: ConditionalSubscription) -> int:
        """Add a subscription to every table there is; what that cost, in units of work."""
        self._all[conditional] = None
        self.remote += conditional.receiver.is_broker
        return sum([table.add(conditional) for table in self._tables.values()])

    def remove(self, conditional: ConditionalSubscription) -> None:
        """Take a subscription out of every table, and forget what it was sent last."""
        del self._all[conditional]
        self.remote -= conditional.receiver.is_broker
        if conditional.last is not None:
            conditional.last.clear()
        for table in self._tables.values():
            table.remove(conditional)

    def tables(self) -> Iterator[ConditionTable[ConditionalSubscription]]:
        """What they want, one table for each event type that was asked about or that the filter can meet."""
        return iter(self._tables.values())

    def table(self, event: EventType) -> ConditionTable[ConditionalSubscription]:
        """What they want of the messages of one event type."""
        table = self._tables.get(event)
        if table is None:
            table = self._tables[event] = self._make(event, self._all)
        return table

    def look(self, event: EventType, most: int) -> ConditionTable[ConditionalSubscription]:
        """The same, but a table that is not there yet is made of the first ``most`` of them and not kept."""
        table = self._tables.get(event)
        return self._make(event, islice(self._all, most)) if table is None else table

    @staticmethod
    def _make(event: EventType, some: Iterable[ConditionalSubscription]) -> ConditionTable[ConditionalSubscription]:
        """A table of topics that no type claims: no index is built, the conditions are evaluated."""
        table: ConditionTable[ConditionalSubscription] = ConditionTable(event)
        for conditional in some:
            table.add(conditional)
        return table


class MessageRoutes:
    """Routes of messages, remembered by the route of their topic and by those whose conditions they meet."""

    __slots__ = ("_most", "_routes", "bytes", "resets")

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._routes: dict[tuple[RouteConditions, tuple[ConditionalSubscription, ...]], Route] = {}
        self.bytes = 0
        self._most = most
        #: How often the memory was full and emptied.
        self.resets = 0

    def __len__(self) -> int:
        return len(self._routes)

    def get(self, conditions: RouteConditions, conditionals: tuple[ConditionalSubscription, ...]) -> Route | None:
        """The route, if it is remembered."""
        return self._routes.get((conditions, conditionals))

    def put(self, conditions: RouteConditions, conditionals: tuple[ConditionalSubscription, ...], route: Route) -> None:
        """Remember a route; everything else is forgotten first if it takes too much memory."""
        if self.bytes > self._most:
            # sets of subscriptions that come again soon are found again soon; most never do
            self._routes.clear()
            self.bytes = 0
            self.resets += 1
        self._routes[conditions, conditionals] = route
        self.bytes += ROUTE_BYTES + CONDITIONAL_BYTES * len(conditionals) + RECEIVER_BYTES * len(route.grants)
