"""How urgent and how hot messages are: everything that the scheduler goes by."""

from __future__ import annotations

from tieline.conf.quantities import seconds
from tieline.conf.schema import Settings
from tieline.core.client import Connection
from tieline.core.routing.classes import UNKNOWN, Claims, Classes, claimed_level
from tieline.core.routing.route import Route
from tieline.sched.levels import URGENT
from tieline.wire.properties import Properties


class Priorities:
    """The rules of one broker about urgency and heat."""

    __slots__ = (
        "_has_heat_table",
        "_period_s",
        "_policy",
        "always_matter",
        "claims",
        "classes",
        "default_level",
        "heat_deliveries",
        "is_ruled",
        "refuses_unknown",
    )

    def __init__(self, settings: Settings) -> None:
        self._has_heat_table = False
        self.default_level = settings.priority.default_level
        self.heat_deliveries = settings.priority.heat_deliveries
        self._period_s = seconds(settings.priority.period)
        self._policy = settings.priority.policy
        #: A message that claims what is no level is refused; otherwise it is taken as if it claimed nothing.
        self.refuses_unknown = settings.priority.unknown == "refuse"
        self.classes = Classes(settings)
        self.claims = Claims(settings)
        #: The configuration gives levels, or an order.
        self.is_ruled = self._has_rules()
        #: Order matters in every queue: because of the configuration, or because of a table of heat.
        self.always_matter = self.is_ruled

    def renew(self, settings: Settings) -> None:
        """Other classes and claims from now on."""
        claims = Claims(settings)
        claims.lowered, claims.throttled = self.claims.lowered, self.claims.throttled
        self.claims = claims
        self.classes = Classes(settings)
        self.is_ruled = self._has_rules()
        self.always_matter = self.is_ruled or self._has_heat_table

    def have_heat_table(self, has_one: bool) -> None:
        """Somebody says which topics are hot, or nobody does any more."""
        self._has_heat_table = has_one
        self.always_matter = self.is_ruled or has_one

    def _has_rules(self) -> bool:
        return len(self.classes) > 0 or not self.claims.is_open or self._policy != "feedback"

    # -- how urgent a message is

    def judge(self, conn: Connection, topic: str | bytes, level: int, messages: int, now: float) -> int:
        """The level that messages of a client really get."""
        if not self.claims.is_open:
            name = topic if isinstance(topic, str) else topic.decode()
            level = self.claims.judge(conn, name, level, messages, now)
        if level == URGENT:
            conn.urgent_at = now
        return level

    @staticmethod
    def claimed(properties: Properties, header_level: int | None) -> int | None:
        """How urgent a message says it is, by header byte or user property; None if it does not, or ``UNKNOWN``."""
        if header_level is not None:
            return header_level
        return claimed_level(properties) if properties else None

    @staticmethod
    def of_message(claimed: int | None, route: Route, own: int) -> int:
        """How urgent a message is: what it says itself, else the topic rule, else its publisher's own level."""
        if claimed is not None and claimed != UNKNOWN:
            return claimed
        return route.level if route.level >= 0 else own

    def of_topic(self, route: Route) -> int:
        """The level that topic rules alone give."""
        return route.level if route.level >= 0 else self.default_level

    # -- how hot a topic is

    def heat(self, route: Route, messages: int, now: float) -> float:
        """How hot the topic of these messages is; they count where deliveries do."""
        if not self.heat_deliveries or route.is_given:
            return route.heat
        return route.heat_with(self.heat_deliveries, messages, int(now / self._period_s))
