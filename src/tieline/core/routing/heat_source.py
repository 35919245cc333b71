"""Whose heat counts: the broker's own, or that of a table from outside while its time lasts."""

from __future__ import annotations

from tieline.core.account import Account, Event
from tieline.core.routing.heat_table import HeatError, HeatTable, check_period
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timer, Timers


class HeatSource:
    """Whose heat counts: the broker's own, or that of a table until its time is over."""

    __slots__ = ("_account", "_priorities", "_routes", "_timer", "_timers", "ends", "period_s", "table")

    def __init__(self, routes: Routes, priorities: Priorities, timers: Timers, account: Account) -> None:
        self._routes = routes
        self._priorities = priorities
        self._timers = timers
        self._account = account
        self._timer: Timer | None = None
        #: What was given; None while the broker's own heat counts.
        self.table: HeatTable | None = None
        self.period_s = 0.0
        #: When the table ends, in the broker's time.
        self.ends = 0.0

    @property
    def name(self) -> str:
        """Whose heat counts, in the words of ``$SYS``: ``own`` or ``given``."""
        return "own" if self.table is None else "given"

    def left_s(self, now: float) -> float:
        """For how long the table still holds; zero without one."""
        return 0.0 if self.table is None else max(0.0, self.ends - now)

    def put(self, table: HeatTable, period_s: float, now: float, *, by: str = "") -> None:
        """Let a table count from now on, in place of the one before it; raises HeatError, and then nothing changes.

        While it does, congested queues are ordered by the policy even where nobody uses levels: that is what the table
        is given for.
        """
        check_period(period_s)
        if not len(table):
            raise HeatError("the table is empty: to return to the broker's own heat, clear it")
        self._timers.cancel(self._timer)
        self.table, self.period_s, self.ends = table, period_s, now + period_s
        self._timer = self._timers.at(self.ends, self._expire)
        self._take(table, f"{len(table):,} entries for {period_s:g} s", by)

    def clear(self, *, by: str = "") -> bool:
        """Return to the broker's own heat; False when that counted already."""
        if self.table is None:
            return False
        self._timers.cancel(self._timer)
        self._leave("cleared: the broker's own counts again", by)
        return True

    def _expire(self, now: float) -> None:
        self._leave("expired: the broker's own counts again", "")

    def _leave(self, text: str, by: str) -> None:
        self._timer = None
        self.table, self.period_s, self.ends = None, 0.0, 0.0
        self._take(None, text, by)

    def _take(self, table: HeatTable | None, text: str, by: str) -> None:
        self._priorities.have_heat_table(table is not None)
        self._routes.warm(table)
        self._account.tell(Event("heat", by, "", text))
