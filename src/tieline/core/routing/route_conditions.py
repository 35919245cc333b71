"""What a topic's route knows of conditions, and the memory of what became of it for single messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tieline.core.routing.conditional import Asking
    from tieline.core.routing.routes import Route
    from tieline.core.session import Held, Session
    from tieline.match.conditions import Conditions
    from tieline.match.events import EventType

#: About what a remembered route of messages takes, in bytes: itself, each of those whose conditions they meet, each
#: receiver; and what all of them together may take.
ROUTE_BYTES = 512
ASKING_BYTES = 32
RECEIVER_BYTES = 16
MOST_BYTES = 33_554_432


class Sifting:
    """What a route with conditions on it knows."""

    __slots__ = ("effort", "event", "is_birth", "matched", "may_read", "tables")

    def __init__(
        self,
        event: EventType,
        tables: tuple[Conditions[Asking], ...],
        matched: dict[Session, list[Held]],
        *,
        is_birth: bool,
        may_read: Callable[[Session], bool] | None = None,
    ) -> None:
        self.event = event
        self.tables = tables
        #: Who may read the topic at all; None when everybody may.
        self.may_read = may_read
        #: The subscriptions without a condition, by session.
        self.matched = matched
        #: The topic carries Sparkplug births, which are read whoever is subscribed.
        self.is_birth = is_birth
        #: What asking about one message counts towards the work of a turn; weighed again with every chunk.
        self.effort = 1
        self.weigh()

    def weigh(self) -> None:
        """Conditions come and go, and what they cost is added up for every message: too often to be asked each time."""
        tables = self.tables
        self.effort = tables[0].effort if len(tables) == 1 else sum([table.effort for table in tables]) or 1


class Narrowed:
    """Routes of messages, remembered by the route of their topic and by those whose conditions they meet."""

    __slots__ = ("_bytes", "_most", "_routes", "resets")

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._routes: dict[tuple[Sifting, tuple[Asking, ...]], Route] = {}
        self._bytes = 0
        self._most = most
        #: How often the memory was full and emptied.
        self.resets = 0

    def __len__(self) -> int:
        return len(self._routes)

    def get(self, sifting: Sifting, askings: tuple[Asking, ...]) -> Route | None:
        """The route, if it is remembered."""
        return self._routes.get((sifting, askings))

    def put(self, sifting: Sifting, askings: tuple[Asking, ...], route: Route) -> None:
        """Remember a route."""
        if self._bytes > self._most:
            # sets of askers that come again soon are found again soon; most never do
            self._routes.clear()
            self._bytes = 0
            self.resets += 1
        self._routes[sifting, askings] = route
        self._bytes += ROUTE_BYTES + ASKING_BYTES * len(askings) + RECEIVER_BYTES * len(route.grants)
