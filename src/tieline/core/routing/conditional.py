"""Subscriptions with a condition: what each holds, and all of them on one filter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tieline.core.session import Held
from tieline.match.change import LastValues, Memory
from tieline.match.conditions import Conditions
from tieline.match.cover.filters import overlap

if TYPE_CHECKING:
    from tieline.core.routing.groups import Group
    from tieline.core.routing.routes import Route
    from tieline.core.session import Session
    from tieline.match.events import Events, EventType
    from tieline.match.where import Predicate
    from tieline.wire.packets import Subscription


class Asking(Held):
    """One subscription with a condition."""

    __slots__ = ("filter", "group", "last", "predicate", "route", "session", "share")

    def __init__(  # as a subscription, and what its spelling was taken apart into
        self,
        options: Subscription,
        identifier: int,
        session: Session,
        share: str | None,
        filter_: str,
        predicate: Predicate,
        memory: Memory,
    ) -> None:
        super().__init__(options, identifier)
        self.session = session
        self.share = share
        #: The filter alone, without share and condition.
        self.filter = filter_
        self.predicate = predicate
        watched = predicate.watched
        #: What it was sent last; None if its condition does not care.
        self.last = LastValues(watched, memory) if watched else None
        self.group: Group | None = None
        #: The route of messages that only this subscription wants; made when it is needed.
        self.route: Route | None = None


class Askers:
    """The subscriptions with a condition on one filter."""

    __slots__ = ("_all", "_tables")

    def __init__(self, filter_: str, events: Events) -> None:
        self._all: dict[Asking, None] = {}
        # the index of a declared type grows with the subscriptions: building it when the first message comes would
        # take seconds if there are many
        self._tables: dict[EventType, Conditions[Asking]] = {
            event: Conditions(event) for event in events.types.values() if overlap(filter_, event.topic)
        }

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Asking]:
        return iter(self._all)

    def add(self, asking: Asking) -> None:
        """One more."""
        self._all[asking] = None
        for table in self._tables.values():
            table.add(asking)

    def remove(self, asking: Asking) -> None:
        """One less."""
        del self._all[asking]
        if asking.last is not None:
            asking.last.clear()
        for table in self._tables.values():
            table.remove(asking)

    def tables(self) -> Iterator[Conditions[Asking]]:
        """By event type."""
        return iter(self._tables.values())

    def known(self, event: EventType) -> Conditions[Asking] | None:
        """The table of an event type, if there is one already."""
        return self._tables.get(event)

    def table(self, event: EventType) -> Conditions[Asking]:
        """What the askers want of the messages of one event type."""
        table = self._tables.get(event)
        if table is None:  # of topics that no type claims: nothing is built, the conditions are evaluated
            table = self._tables[event] = Conditions(event)
            for asking in self._all:
                table.add(asking)
        return table
