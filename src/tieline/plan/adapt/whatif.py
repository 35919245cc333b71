"""What a change would do to a plan, before it happens."""

from __future__ import annotations

from dataclasses import dataclass

from tieline.plan.adapt.changes import without_link
from tieline.plan.adapt.replan import Replanned, replan
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A plan before and after a change that has not happened."""

    before: Plan
    after: Replanned
    #: Requests (topic, subscriber) that would be lost, and those that would be gained.
    lost: tuple[tuple[str, str], ...]
    gained: tuple[tuple[str, str], ...]

    @property
    def cost_change(self) -> float:
        return self.after.plan.cost - self.before.cost


def what_if_removed(instance: Instance, plan: Plan, a: str, b: str, *, seed: int = 0) -> WhatIf:
    """What the loss of a link would mean for a plan."""
    after = replan(without_link(instance, a, b), plan, seed=seed)
    unmet_before, unmet_after = set(plan.unmet_requests()), set(after.plan.unmet_requests())
    return WhatIf(
        before=plan,
        after=after,
        lost=tuple(sorted(unmet_after - unmet_before)),
        gained=tuple(sorted(unmet_before - unmet_after)),
    )
