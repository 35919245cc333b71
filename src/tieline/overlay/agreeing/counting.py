"""What clients of this broker publish and want, counted by its core for a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.core.broker import Broker
from tieline.core.figures.demand import DemandError
from tieline.overlay.agreeing.round import CountedTopic
from tieline.overlay.plans import PlanError

#: How long a count is kept beyond its end, should this broker be busy.
_GRACE_S: Final = 30.0


class Counting:
    """The count of one round after the other."""

    def __init__(self, core: Broker, check: Callable[[], None]) -> None:
        """``check`` raises PlanError while no plan could be followed here."""
        self._core = core
        self._check = check
        self._number = 0

    def begin(self, for_s: float, now: float) -> None:
        """Count from now on; raises PlanError if it cannot be done."""
        self._check()
        try:
            self._number = self._core.demand.begin(for_s + _GRACE_S, now, by="brokers that agree on a plan")
        except DemandError as problem:
            raise PlanError(str(problem)) from None

    def take(self, now: float) -> tuple[list[CountedTopic], list[str], float, bool]:
        """A part of what was counted: flows, filters of clients, for how long, and whether that was the last part."""
        try:
            found = self._core.demand.take(self._number, now)
        except DemandError as problem:
            raise PlanError(str(problem)) from None
        flows = [CountedTopic(flow.topic, flow.level, flow.messages, flow.bytes) for flow in found.flows]
        filters = [subscribed.filter for subscribed in found.subscriptions]
        return flows, filters, found.seconds, found.is_last
