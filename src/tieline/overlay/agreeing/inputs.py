"""What a round takes from outside: what clients of this broker publish and want, as its core counts it, and chance."""

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


_WORD: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15


def chances(seed: int) -> Callable[[], float]:
    """Numbers from 0 to 1, the same for the same seed: splitmix64 (Steele, Lea and Flood 2014)."""
    state = seed & _WORD

    def chance() -> float:
        nonlocal state
        state = state + _STEP & _WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
        return ((mixed ^ mixed >> 31) >> 11) / (1 << 53)

    return chance
