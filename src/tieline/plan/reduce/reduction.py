"""An instance made smaller, and the way back: what every reduction gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tieline.plan.instance import Instance
from tieline.plan.objective import request_price, unmet_price
from tieline.plan.routes import Route

Lift = Callable[[Sequence[Route]], tuple[Route, ...]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reduction:
    """A smaller instance whose optimal plans, lifted, are optimal plans of the original."""

    original: Instance
    instance: Instance
    #: Routes of the smaller instance as routes of the original; feasible ones stay feasible.
    lift: Lift
    #: The cost of requests whose way is already decided.
    fixed_cost: float = 0.0
    #: The weight (without ``unmet_cost``) or number of requests that no plan serves, or should.
    fixed_unmet: float = 0.0

    def lift_bound(self, bound: float) -> float:
        """A lower bound of the smaller instance's objective as one of the original's.

        Without ``unmet_cost`` both have their own price of an unmet request: the bound is taken apart into a weight
        and a cost, and put together again.
        """
        price, small = unmet_price(self.original), unmet_price(self.instance)
        fixed = self.fixed_cost + self.fixed_unmet * price
        if self.original.unmet_cost is not None:
            return bound + fixed
        weight = float(max(0.0, bound) // small)
        # what is left of a bound that proves too small a weight must not outweigh what it missed
        rest = min(bound - weight * small, price - self.fixed_cost)
        return weight * price + rest + fixed


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
    )


def request_weight(instance: Instance, topic_index: int) -> float:
    """What an unmet request counts in ``fixed_unmet``."""
    return request_price(instance, instance.topics[topic_index]) / unmet_price(instance)
