"""``tieline plan check``: whether every word of a plan is true."""

from __future__ import annotations

from tieline.cli.plan.files import InstanceFile, PlanFile, instance_in, proven_plan_in, sentences


def check(file: InstanceFile, plan: PlanFile) -> None:
    """Compute everything that a plan says again, from the instance alone.

    Feasibility, loop freedom, cost, unmet requests, and that the bound is not above the objective. Exit code 1 and the
    violated rule if anything is not true.
    """
    from tieline.cli.plan.words import summary

    with sentences():
        instance = instance_in(file)
        found = proven_plan_in(instance, plan)
    print(f"proven: {summary(instance, found)}")
