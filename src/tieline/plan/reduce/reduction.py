"""An instance made smaller, and the way back: what every reduction gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tieline.plan.instance import Instance, request_price, unmet_price
from tieline.plan.routes import Route

Lift = Callable[[Sequence[Route]], tuple[Route, ...]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduction:
    """A smaller instance whose optimal plans, lifted, are optimal plans of the original."""

    original: Instance
    instance: Instance
    #: Routes of the smaller instance as routes of the original; feasible ones stay feasible.
    lift: Lift
    #: The cost of requests whose way is already decided.
    fixed_cost: float = 0.0
    #: Requests that no plan serves, or should: their weight (without ``unmet_cost``) or number, and their number.
    fixed_unmet: float = 0.0
    lost: int = 0

    @property
    def is_smaller(self) -> bool:
        """Whether anything is left out."""
        return self.instance is not self.original

    def lift_value(self, objective: float) -> float:
        """The objective of a lifted plan, from that of the plan."""
        weight, rest = self._apart(objective)
        price, _ = self._prices
        return weight * price + rest + self.fixed_cost + self.fixed_unmet * price

    def lift_bound(self, bound: float) -> float:
        """A lower bound of the smaller instance's objective as one of the original's."""
        weight, rest = self._apart(bound)
        price, _ = self._prices
        if self.original.unmet_cost is None:
            # what is left of a bound that proves too small a weight must not outweigh what it missed
            rest = min(rest, price - self.fixed_cost)
        return weight * price + rest + self.fixed_cost + self.fixed_unmet * price

    @cached_property
    def _prices(self) -> tuple[float, float]:
        """The price of an unmet request in the original and in the smaller instance; every word of progress asks."""
        return unmet_price(self.original), unmet_price(self.instance)

    def _apart(self, objective: float) -> tuple[float, float]:
        """The weight of unmet requests in an objective, and the rest.

        Without ``unmet_cost`` both instances have their own price of an unmet request: it exceeds all costs by at
        least 1, so that the weight can be told.
        """
        if self.original.unmet_cost is not None or not math.isfinite(objective):
            return 0.0, objective
        _, small = self._prices
        weight = max(0.0, (objective + 0.5) // small)
        return weight, objective - weight * small


def unchanged(instance: Instance) -> Reduction:
    """The reduction that reduces nothing."""
    return Reduction(original=instance, instance=instance, lift=tuple)


def chained(first: Reduction, second: Reduction) -> Reduction:
    """One reduction after the other; ``second`` reduces what ``first`` left."""
    return Reduction(
        original=first.original,
        instance=second.instance,
        lift=lambda routes: first.lift(second.lift(routes)),
        fixed_cost=first.fixed_cost + second.fixed_cost,
        fixed_unmet=first.fixed_unmet + second.fixed_unmet,
        lost=first.lost + second.lost,
    )


def request_weight(instance: Instance, topic_index: int) -> float:
    """What an unmet request counts in ``fixed_unmet``."""
    return request_price(instance, instance.topics[topic_index]) / unmet_price(instance)
